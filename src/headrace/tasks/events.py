"""The follower that tells of tasks through the outbox. docs/reference/events.md says what an event holds.

The payload is made in SQL from the task's row, by the function that ``headrace.submit`` calls, too: a task tells the
same, whoever submitted it.
"""

from collections.abc import Sequence

from headrace import ids
from headrace.database import Tx
from headrace.tasks.model import Transition

EMIT = "SELECT headrace.emit_task_events($1, $2, $3, $4, $5)"


class OutboxFollower:
    """Writes one event for each transition, in their order and with one statement for a batch."""

    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:
        await tx.execute(
            EMIT,
            [ids.new("evt") for _ in transitions],
            [transition.change for transition in transitions],
            [transition.task_id for transition in transitions],
            [transition.attempt for transition in transitions],
            [transition.request_id for transition in transitions],
        )
