"""Removals that are not charged: of the sample picture, and those whose result the user already has."""

from typing import Any

from headrace.assets.results import FIELD
from headrace.database import Database, Tx
from headrace.removal.order import RemovalOrder
from headrace.removal.service.orders.free_limits import WaiversUsedUp, count_waived_repeat, count_waived_sample
from headrace.tasks.context import TaskContext

# Along the index of a user's orders of one file; of the same bytes uploaded again there are few, too.
FIND_SAME = """
SELECT earlier.task_id
FROM headrace.removals AS earlier
JOIN headrace.tasks AS task ON task.id = earlier.task_id AND task.status = 'SUCCEEDED' AND task.deleted_at IS NULL
JOIN headrace.task_results AS result ON result.task_id = earlier.task_id AND result.deleted_at IS NULL
  AND (result.expire_at IS NULL OR result.expire_at > now())
WHERE earlier.user_id = $1 AND earlier.asset_sha256 = $2 AND earlier.task_id <> $3 AND result.sha256 = $4
ORDER BY earlier.declared_at, earlier.task_id
LIMIT 1
"""


async def find_same(tx: Tx, user_id: str, asset_sha256: str, task_id: str, result_sha256: str) -> str | None:
    """Another removal of these bytes whose result, which the user can download, has this hash."""
    found = await tx.fetchval(FIND_SAME, user_id, asset_sha256, task_id, result_sha256)
    return None if found is None else str(found)


async def waive_if_same(db: Database, context: TaskContext, order: RemovalOrder, result: dict[str, Any]) -> None:
    """Report no used units for such a result, a few times a day for each file. Its metrics name the earlier removal as
    ``same_as``."""
    file = result[FIELD]
    async with db.transaction(readonly=True) as tx:
        same = await find_same(tx, context.user_id, order.sha256, context.task_id, file["sha256"])
    if same is None:
        return
    try:
        async with db.transaction() as tx:
            await count_waived_repeat(tx, context.task_id, context.user_id, order.sha256)
    except WaiversUsedUp:
        return
    file["metrics"] = {**(file["metrics"] or {}), "same_as": same}
    await context.used(0)


async def waive_sample(db: Database, context: TaskContext) -> None:
    """Report no used units for the sample picture, a few times a day for each user."""
    try:
        async with db.transaction() as tx:
            await count_waived_sample(tx, context.task_id, context.user_id)
    except WaiversUsedUp:
        return
    await context.used(0)
