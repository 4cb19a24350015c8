"""SQL for plans."""

from dataclasses import asdict

from asyncpg import ForeignKeyViolationError, UniqueViolationError

from headrace.billing.plans.errors import PlanInUse, PlanNameTaken
from headrace.billing.plans.model import Plan, PlanFacts
from headrace.database import Row, Tx
from headrace.sql import Mark, Where

COLUMNS = """id, name, price_cents, currency, monthly_quota, features_json, is_active, sort_order, version, created_at,
  updated_at"""


def plan_of(row: Row) -> Plan:
    return Plan(**{name: row[name] for name in Plan.__dataclass_fields__})


def _name_taken(exc: UniqueViolationError) -> None:
    if exc.constraint_name != "uk_plans_name":
        raise exc
    raise PlanNameTaken(field="name") from exc


INSERT = f"""
INSERT INTO headrace.plans
  (id, name, price_cents, currency, monthly_quota, features_json, is_active, sort_order)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING {COLUMNS}
"""


async def insert_plan(tx: Tx, plan_id: str, facts: PlanFacts) -> Plan:
    try:
        row = await tx.fetchrow(INSERT, plan_id, *asdict(facts).values())
    except UniqueViolationError as exc:
        _name_taken(exc)
    assert row is not None
    return plan_of(row)


FIND = f"SELECT {COLUMNS} FROM headrace.plans WHERE id = $1"


async def find_plan(tx: Tx, plan_id: str) -> Plan | None:
    row = await tx.fetchrow(FIND, plan_id)
    return None if row is None else plan_of(row)


async def lock_plan(tx: Tx, plan_id: str) -> Plan | None:
    """Read and lock it until this transaction ends."""
    row = await tx.fetchrow(f"{FIND} FOR NO KEY UPDATE", plan_id)
    return None if row is None else plan_of(row)


FIND_BY_NAME = f"SELECT {COLUMNS} FROM headrace.plans WHERE name = $1"


async def find_by_name(tx: Tx, name: str) -> Plan | None:
    row = await tx.fetchrow(FIND_BY_NAME, name)
    return None if row is None else plan_of(row)


UPDATE = f"""
UPDATE headrace.plans
SET name = $3, price_cents = $4, currency = $5, monthly_quota = $6, features_json = $7, is_active = $8, sort_order = $9,
    version = version + 1
WHERE id = $1 AND version = $2
RETURNING {COLUMNS}
"""


async def update_plan(tx: Tx, old: Plan, facts: PlanFacts) -> Plan | None:
    try:
        row = await tx.fetchrow(UPDATE, old.id, old.version, *asdict(facts).values())
    except UniqueViolationError as exc:
        _name_taken(exc)
    return None if row is None else plan_of(row)


DELETE = "DELETE FROM headrace.plans WHERE id = $1 AND version = $2"


async def delete_plan(tx: Tx, old: Plan) -> bool:
    try:
        return await tx.count(DELETE, old.id, old.version) == 1
    except ForeignKeyViolationError as exc:
        raise PlanInUse from exc


OFFERED = f"SELECT {COLUMNS} FROM headrace.plans WHERE is_active ORDER BY sort_order, price_cents, id LIMIT $1"


async def list_offered(tx: Tx, *, limit: int) -> list[Plan]:
    """Plans on offer, in the order of the price list."""
    return [plan_of(row) for row in await tx.fetch(OFFERED, limit)]


SELECT_PLANS = f"SELECT {COLUMNS} FROM headrace.plans"


async def list_plans(tx: Tx, *, is_active: bool | None, older_than: Mark | None, limit: int) -> list[Plan]:
    """All plans, newest first."""
    where = Where().eq("is_active", is_active).older_than(("created_at", "id"), older_than)
    rows = await tx.fetch(
        f"{SELECT_PLANS} {where.sql} ORDER BY created_at DESC, id DESC LIMIT ${where.next}", *where.args, limit
    )
    return [plan_of(row) for row in rows]
