"""What tasks forget of a user whose account goes: at once everything that the user or a handler wrote into them. The
blank rows count as deleted and are purged soon after; ledger and trail keep their ids."""

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime

from headrace.database import Database
from headrace.erasure import NotYet
from headrace.sql import Mark
from headrace.tasks import service
from headrace.tasks.errors import TaskChanged
from headrace.tasks.model import ENDS
from headrace.tasks.service import Tasks

_BATCH = 200

_NOT_OVER = "('UPLOADED', 'QUEUED', 'RUNNING', 'PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING')"
TO_CANCEL = f"""
SELECT id FROM headrace.tasks
WHERE user_id = $1 AND status IN {_NOT_OVER} AND cancel_requested_at IS NULL LIMIT $2
"""
COUNT_NOT_OVER = f"SELECT count(*) FROM headrace.tasks WHERE user_id = $1 AND status IN {_NOT_OVER}"


class CancelTasks:
    """Cancels what waits and what runs, and waits for the workers to let go of it."""

    name = "tasks.cancel"

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        while True:
            async with db.transaction(readonly=True) as tx:
                batch = await tx.fetch(TO_CANCEL, user_id, _BATCH)
            for row in batch:
                await self._stop(db, row["id"])
            yield len(batch)
            if not batch:
                break
        async with db.transaction(readonly=True) as tx:
            running = await tx.fetchval(COUNT_NOT_OVER, user_id)
        if running:
            raise NotYet(f"{running} tasks were asked to stop and have not ended.")

    async def _stop(self, db: Database, task_id: str) -> None:
        try:
            async with db.transaction() as tx:
                await service.stop_task(tx, self._tasks, task_id)
        except TaskChanged:
            pass  # it moved at this very moment: the next look finds it where it is now


# Newest first, from where the last batch ended, in the order of the index: each task is looked at once. Rows that an
# interrupted run has blanked are left out; a task that its user deleted still has a title, labels and a limit key.
TO_BLANK = """
SELECT id, created_at FROM headrace.tasks
WHERE user_id = $1 AND status = $2 AND (created_at, id) < ($4, $5)
  AND (deleted_at IS NULL OR title <> '(deleted)'
       OR num_nonnulls(payload, result, error_message, labels, limit_key, idempotency_key) > 0)
ORDER BY created_at DESC, id DESC LIMIT $3
"""
BLANK = """
WITH blanked AS (
  UPDATE headrace.tasks AS task
  SET title = '(deleted)', payload = NULL, result = NULL, error_message = NULL, labels = NULL, limit_key = NULL,
      idempotency_key = NULL,
      deleted_at = coalesce(task.deleted_at, now()), updated_at = now(), version = task.version + 1
  WHERE task.id = ANY ($1)
)
UPDATE headrace.task_steps SET detail_json = NULL WHERE task_id = ANY ($1)
"""
# Apart from the rows, and before them: a single task may have written millions of lines, and a row that is blank counts
# as done.
DELETE_LOGS = """
DELETE FROM headrace.task_logs WHERE id IN (SELECT id FROM headrace.task_logs WHERE task_id = ANY ($1) LIMIT $2)
"""
_LINES = 5000
_THE_END_OF_TIME: Mark = (datetime.max.replace(tzinfo=UTC), "")


class EraseTasks:
    """Blanks titles, payloads, results and messages, and removes the logs."""

    name = "tasks.erase"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        for status in sorted(ENDS):
            last = _THE_END_OF_TIME
            while True:
                async with db.transaction(readonly=True) as tx:
                    batch = await tx.fetch(TO_BLANK, user_id, status, _BATCH, *last)
                task_ids = [row["id"] for row in batch]
                async for _ in _delete_logs(db, task_ids):
                    yield 0  # alive; only tasks are counted
                async with db.transaction() as tx:
                    await tx.execute(BLANK, task_ids)
                yield len(batch)
                if len(batch) < _BATCH:
                    break
                last = (batch[-1]["created_at"], batch[-1]["id"])


async def _delete_logs(db: Database, task_ids: Sequence[str]) -> AsyncGenerator[int, None]:
    gone = _LINES if task_ids else 0
    while gone == _LINES:
        async with db.transaction() as tx:
            gone = await tx.count(DELETE_LOGS, task_ids, _LINES)
        yield gone
