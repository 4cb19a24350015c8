"""The follower that writes events about tasks to the outbox. docs/reference/events.md lists the contents of an event.

An event is written if it has a subscriber, which the database decides in the same transaction (outbox.interests), or
always, for types that demand it. A SQL function makes the payload from the task's row; ``headrace.submit`` calls the
same function, so that the payload does not depend on how a task was submitted.
"""

from collections.abc import Sequence

from headrace.database import Tx
from headrace.tasks.model import Transition

EMIT = "SELECT headrace.emit_task_events(NULL, $1, $2, $3, $4, $5)"


class OutboxFollower:
    """Writes an event for each transition with a subscriber, in order and with one statement for a batch; with
    ``always`` for each transition."""

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
