"""Money for tests: users with quota, and the equations that must hold after whatever was done."""

from datetime import UTC, datetime, timedelta

from headrace import ids
from headrace.database import Database, Row, Tx

PLAN = "pln_test"
ADD_PLAN = """
INSERT INTO headrace.plans (id, name, price_cents, monthly_quota) VALUES ($1, $1, 0, 0) ON CONFLICT DO NOTHING
"""
ADD_ENTITLEMENT = """
INSERT INTO headrace.entitlements (id, user_id, plan_id, quota_total, quota_left, period_start, period_end, status)
VALUES ($1, $2, $3, $4, $4, $5, $6, 'ACTIVE')
"""
ADD_CREDIT = """
INSERT INTO headrace.usage_ledger
  (id, period, user_id, entitlement_id, consume_unit, direction, status, source, idempotency_key)
VALUES ($1, $2, $3, $4, $5, 'CREDIT', 'COMMITTED', 'SUBSCRIPTION_GRANT', $6)
"""


async def grant(
    tx: Tx,
    user_id: str,
    units: int,
    *,
    starts_in: timedelta = timedelta(days=-1),
    ends_in: timedelta = timedelta(days=29),
) -> str:
    """Units for a period, as a subscription grants them; gives the entitlement."""
    now = datetime.now(UTC)
    entitlement_id, entry = ids.new("ent"), ids.new("led")
    await tx.execute(ADD_PLAN, PLAN)
    await tx.execute(ADD_ENTITLEMENT, entitlement_id, user_id, PLAN, units, now + starts_in, now + ends_in)
    if units:
        period = ids.time_of(entry).date().replace(day=1)
        key = f"{period:%Y%m}:grant:{entitlement_id}"
        await tx.execute(ADD_CREDIT, entry, period, user_id, entitlement_id, units, key)
    return entitlement_id


async def grant_alone(db: Database, user_id: str, units: int, **period: timedelta) -> str:
    async with db.transaction() as tx:
        return await grant(tx, user_id, units, **period)


async def left(db: Database, entitlement_id: str) -> int:
    [row] = await db.fetch_alone("SELECT quota_left FROM headrace.entitlements WHERE id = $1", entitlement_id)
    found: int = row["quota_left"]
    return found


async def entries(db: Database, task_id: str) -> list[tuple[str, int, str]]:
    """What the ledger says of a task: holds first, then commits, then releases; each with its units and why."""
    rows: list[Row] = await db.fetch_alone(
        "SELECT status, consume_unit, source FROM headrace.usage_ledger WHERE task_id = $1 ORDER BY status <> 'HELD', "
        "status, idempotency_key",
        task_id,
    )
    return [(row["status"], row["consume_unit"], row["source"]) for row in rows]
