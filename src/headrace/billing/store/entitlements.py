"""SQL for entitlements."""

from headrace.billing.model import Balance, Entitlement, EntitlementStatus
from headrace.database import Row, Tx
from headrace.sql import Mark, Where

COLUMNS = """id, user_id, plan_id, subscription_id, quota_total, quota_left, period_start, period_end, status,
  created_at, updated_at"""


def entitlement_of(row: Row) -> Entitlement:
    fields = {name: row[name] for name in Entitlement.__dataclass_fields__}
    return Entitlement(**fields | {"status": EntitlementStatus(row["status"])})


FIND = f"SELECT {COLUMNS} FROM headrace.entitlements WHERE id = $1"


async def find_entitlement(tx: Tx, entitlement_id: str) -> Entitlement | None:
    row = await tx.fetchrow(FIND, entitlement_id)
    return None if row is None else entitlement_of(row)


async def lock_entitlement(tx: Tx, entitlement_id: str) -> Entitlement | None:
    """Read and lock it until this transaction ends."""
    row = await tx.fetchrow(f"{FIND} FOR NO KEY UPDATE", entitlement_id)
    return None if row is None else entitlement_of(row)


SELECT = f"SELECT {COLUMNS} FROM headrace.entitlements"


async def list_entitlements(
    tx: Tx, *, user_id: str | None, status: EntitlementStatus | None, older_than: Mark | None, limit: int
) -> list[Entitlement]:
    """Newest first, ordered by id, which is in the order of time: a user has few, and the list of all has an index."""
    before = None if older_than is None else older_than[1]
    where = Where().eq("user_id", user_id).eq("status", status).below("id", before)
    rows = await tx.fetch(f"{SELECT} {where.sql} ORDER BY id DESC LIMIT ${where.next}", *where.args, limit)
    return [entitlement_of(row) for row in rows]


# The guard: held and used units cannot be removed.
ADJUST = f"""
UPDATE headrace.entitlements
SET quota_total = quota_total + $2, quota_left = quota_left + $2, updated_at = now()
WHERE id = $1 AND quota_left + $2 >= 0
RETURNING {COLUMNS}
"""


async def adjust_quota(tx: Tx, entitlement_id: str, units: int) -> Entitlement | None:
    """Add to a quota, or remove remaining units; None if too few remain. The caller writes the ledger entry."""
    row = await tx.fetchrow(ADJUST, entitlement_id, units)
    return None if row is None else entitlement_of(row)


# Held units are read from the queue, which avoids summing up the ledger.
BALANCE = """
SELECT coalesce(sum(quota_total), 0)::bigint AS total, coalesce(sum(quota_left), 0)::bigint AS left,
       min(period_end) AS renews_at, (
         SELECT coalesce(sum(queued.units), 0)::bigint
         FROM headrace.tasks AS task
         JOIN headrace.task_queue AS queued ON queued.seq = task.queue_seq
         -- States are spelled out to use the index of lists: there may be millions of ended tasks.
         WHERE task.user_id = $1
           AND task.status IN ('QUEUED', 'RUNNING', 'PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING')
       ) AS held
FROM headrace.entitlements
WHERE user_id = $1 AND status = 'ACTIVE' AND period_start <= now() AND period_end > now()
"""


async def get_balance(tx: Tx, user_id: str) -> Balance:
    row = await tx.fetchrow(BALANCE, user_id)
    assert row is not None
    return Balance(row["total"], row["left"], row["held"], row["renews_at"])
