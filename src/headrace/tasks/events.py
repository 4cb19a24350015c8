"""The follower that tells of tasks through the outbox. docs/reference/events.md says what an event holds.

An event is written where somebody wants it, which the database decides in the same transaction (outbox.interests), or
always, for types that demand it. The payload is made in SQL from the task's row, by the function that
``headrace.submit`` calls, too: a task tells the same, whoever submitted it.
"""

from collections.abc import Sequence

from headrace.database import Tx
from headrace.tasks.model import Transition

EMIT = "SELECT headrace.emit_task_events(NULL, $1, $2, $3, $4, $5)"


class OutboxFollower:
    """Writes an event for each transition that somebody wants to know of, in their order and with one statement for a
    batch; with ``always`` for each of them."""

    def __init__(self, *, always: bool = False) -> None:
        self._always = always

    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:
        await tx.execute(
            EMIT,
            [transition.change for transition in transitions],
            [transition.task_id for transition in transitions],
            [transition.attempt for transition in transitions],
            [transition.request_id for transition in transitions],
            self._always,
        )
