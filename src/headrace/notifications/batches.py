"""One notification for a batch of removals: written when its last file has ended, with how all of them ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headrace.database import Tx
from headrace.notifications.model import NewNotification, NotificationType
from headrace.tasks.model import INPUT_CODES


@dataclass(frozen=True, slots=True)
class EndedBatch:
    """How the files of a batch ended."""

    batch_id: str
    user_id: str
    total: int
    succeeded: int
    needs_input: int
    failed: int
    last_end: datetime

    def notification(self) -> NewNotification | None:
        """None for a batch that its owner stopped before any file was ready or failed."""
        if self.succeeded + self.needs_input + self.failed == 0:
            return None
        counts = {name: getattr(self, name) for name in ("total", "succeeded", "needs_input", "failed")}
        return NewNotification(
            self.user_id,
            NotificationType.TASK_SUCCEEDED if self.succeeded else NotificationType.TASK_FAILED,
            # Two relays may both see the last end: the same id makes it one notification. A retried file ends later,
            # and makes another.
            f"{self.batch_id}.{int(self.last_end.timestamp() * 1000)}",
            {"batch_id": self.batch_id, **counts},
        )


# Relays insert the same batches in the same order: two that have two ends in common would deadlock otherwise.
ENDED_BATCHES = """
SELECT removal.batch_id, removal.user_id, count(*) AS total,
  count(*) FILTER (WHERE task.status = 'SUCCEEDED') AS succeeded,
  count(*) FILTER (WHERE task.status = 'FAILED' AND task.error_code = ANY ($2)) AS needs_input,
  count(*) FILTER (WHERE task.status = 'FAILED' AND (task.error_code = ANY ($2)) IS NOT TRUE) AS failed,
  max(task.finished_at) AS last_end
FROM headrace.removals AS removal JOIN headrace.tasks AS task ON task.id = removal.task_id
WHERE removal.batch_id = ANY ($1)
GROUP BY removal.batch_id, removal.user_id
HAVING bool_and(task.status IN ('SUCCEEDED', 'FAILED', 'CANCELED'))
ORDER BY removal.batch_id, removal.user_id
"""


async def list_ended(tx: Tx, batch_ids: Sequence[str]) -> list[EndedBatch]:
    """Those of these batches whose files have all ended."""
    rows = await tx.fetch(ENDED_BATCHES, list(batch_ids), list(INPUT_CODES))
    return [EndedBatch(**dict(row)) for row in rows]
