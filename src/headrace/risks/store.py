"""SQL for tech_risk_ledger."""

from collections.abc import Sequence
from dataclasses import asdict

from asyncpg import UniqueViolationError

from headrace.database import Row, Tx
from headrace.risks.errors import RiskIdTaken
from headrace.risks.model import OPEN, Category, Facts, Risk, RiskStatus, Severity, Square, Trace
from headrace.sql import Mark, Where

COLUMNS = """id, risk_id, category, severity, status, trigger_condition, mitigation_plan, owner, refs_json, version,
  created_at, updated_at"""


def risk_of(row: Row) -> Risk:
    fields = {name: row[name] for name in Risk.__dataclass_fields__}
    return Risk(
        **fields
        | {
            "category": Category(row["category"]),
            "severity": Severity(row["severity"]),
            "status": RiskStatus(row["status"]),
        }
    )


INSERT = f"""
INSERT INTO headrace.tech_risk_ledger
  (risk_id, category, severity, status, trigger_condition, mitigation_plan, owner, refs_json)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING {COLUMNS}
"""


async def insert_risk(tx: Tx, risk_id: str, facts: Facts) -> Risk:
    try:
        row = await tx.fetchrow(INSERT, risk_id, *asdict(facts).values())
    except UniqueViolationError as exc:
        if exc.constraint_name != "uk_tech_risk_ledger_risk_id":
            raise
        raise RiskIdTaken(field="risk_id") from exc
    assert row is not None
    return risk_of(row)


FIND = f"SELECT {COLUMNS} FROM headrace.tech_risk_ledger WHERE risk_id = $1"


async def find_risk(tx: Tx, risk_id: str) -> Risk | None:
    row = await tx.fetchrow(FIND, risk_id)
    return None if row is None else risk_of(row)


async def lock_risk(tx: Tx, risk_id: str) -> Risk | None:
    """Read and lock it until this transaction ends."""
    row = await tx.fetchrow(f"{FIND} FOR NO KEY UPDATE", risk_id)
    return None if row is None else risk_of(row)


UPDATE = f"""
UPDATE headrace.tech_risk_ledger
SET category = $3, severity = $4, status = $5, trigger_condition = $6, mitigation_plan = $7, owner = $8,
    refs_json = $9, version = version + 1
WHERE id = $1 AND version = $2
RETURNING {COLUMNS}
"""


async def update_risk(tx: Tx, old: Risk, facts: Facts) -> Risk | None:
    row = await tx.fetchrow(UPDATE, old.id, old.version, *asdict(facts).values())
    return None if row is None else risk_of(row)


DELETE = "DELETE FROM headrace.tech_risk_ledger WHERE id = $1 AND version = $2"


async def delete_risk(tx: Tx, old: Risk) -> bool:
    return await tx.count(DELETE, old.id, old.version) == 1


SELECT_RISKS = f"SELECT {COLUMNS} FROM headrace.tech_risk_ledger"


async def list_risks(
    tx: Tx,
    *,
    statuses: Sequence[RiskStatus] | None,
    severities: Sequence[Severity] | None,
    category: Category | None,
    owner: str | None,
    trace_id: str | None,
    older_than: Mark | None,
    limit: int,
) -> list[Risk]:
    """Newest first."""
    where = (
        Where()
        .among("status", statuses)
        .among("severity", severities)
        .eq("category", category)
        .eq("owner", owner)
        .contains("refs_json", {"trace_ids": [trace_id]} if trace_id is not None else None)
        .older_than(("created_at", "id"), None if older_than is None else (older_than[0], int(older_than[1])))
    )
    rows = await tx.fetch(
        f"{SELECT_RISKS} {where.sql} ORDER BY created_at DESC, id DESC LIMIT ${where.next}", *where.args, limit
    )
    return [risk_of(row) for row in rows]


# Closed risks may be most of the table; the partial index excludes them.
BOARD = "SELECT owner, status, severity, count(*) AS count FROM headrace.tech_risk_ledger"


def board(owner: str | None) -> tuple[str, tuple[object, ...]]:
    where = Where().among("status", OPEN).eq("owner", owner)
    return f"{BOARD} {where.sql} GROUP BY owner, status, severity", where.args


async def count_open(tx: Tx, *, owner: str | None) -> list[Square]:
    sql, args = board(owner)
    return [
        Square(row["owner"], RiskStatus(row["status"]), Severity(row["severity"]), row["count"])
        for row in await tx.fetch(sql, *args)
    ]


TRACES = """
SELECT id AS event_id, trace_id, action, resource_type, resource ->> 'identifier' AS resource_id,
       "user" ->> 'uid' AS actor_id, created_at
FROM headrace.audit_events
WHERE trace_id = ANY ($1)
ORDER BY created_at DESC, id DESC LIMIT $2
"""


async def list_traces(tx: Tx, trace_ids: Sequence[str], *, limit: int) -> list[Trace]:
    """Audit events with these trace ids, newest first."""
    return [Trace(**dict(row)) for row in await tx.fetch(TRACES, list(trace_ids), limit)]
