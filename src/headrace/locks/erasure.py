"""Erases a deleted user's locks. Keys are names among the user's own, so no later holder needs their growing fences."""

from collections.abc import AsyncGenerator

from headrace.database import Database

_BATCH = 1000

DELETE_LOCKS = """
DELETE FROM headrace.task_locks WHERE id IN (
  SELECT id FROM headrace.task_locks WHERE user_id = $1 ORDER BY id LIMIT $2
)
"""
DELETE_FENCES = """
DELETE FROM headrace.lock_fences WHERE user_id = $1 AND lock_key IN (
  SELECT lock_key FROM headrace.lock_fences WHERE user_id = $1 ORDER BY lock_key LIMIT $2
)
"""


class ForgetLocks:
    """Deletes the user's locks, their history and fences."""

    name = "locks"

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        for statement in (DELETE_LOCKS, DELETE_FENCES):
            while True:
                async with db.transaction() as tx:
                    gone = await tx.count(statement, user_id, _BATCH)
                yield gone
                if gone < _BATCH:
                    break
