"""The ledger is proved with the months that have left the database, too. W-10, W-18"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace import ids
from headrace.archive.ledger import verify_ledger
from headrace.audit import Who
from headrace.billing.verifying import FaultKind
from headrace.database import Database, DatabaseConfig
from headrace.storage import StorageConfig
from tests.archive.months import MONTH, retire
from tests.billing import stand

ADD = """
INSERT INTO headrace.usage_ledger
  (id, period, user_id, task_id, entitlement_id, hold_id, consume_unit, direction, status, source, idempotency_key)
VALUES ($1::varchar, $2, $3, 'tsk_1', $4, $5, $6, $7, $8, $9, to_char($2::date, 'YYYYMM') || ':' || $1::varchar)
"""
WHO = Who.system()


@pytest.fixture
async def old(db: Database, owner: DatabaseConfig) -> str:
    """An entitlement that ended long ago, with all its entries in one month: 10 granted, 4 held, 3 of them used."""
    entitlement, hold = ids.new("ent"), ids.new("led", at=_at())
    commit, release = [
        (await db.fetch_alone("SELECT headrace.settlement_id($1, $2) AS id", hold, status))[0]["id"]
        for status in ("COMMITTED", "RELEASED")
    ]
    rows = [
        (ids.new("led", at=_at()), None, 10, "CREDIT", "COMMITTED", "SUBSCRIPTION_GRANT"),
        (hold, None, 4, "DEBIT", "HELD", "TASK_CREATE"),
        (commit, hold, 3, "DEBIT", "COMMITTED", "TASK_COMPLETE"),
        (release, hold, 1, "CREDIT", "RELEASED", "TASK_COMPLETE"),
    ]
    async with db.transaction() as tx:
        await tx.execute(stand.ADD_PLAN, stand.PLAN)
        await tx.execute(
            stand.ADD_ENTITLEMENT, entitlement, ids.SYSTEM_USER, stand.PLAN, 10, _at(), _at() + timedelta(days=20)
        )
        await tx.execute("UPDATE headrace.entitlements SET quota_left = 7, created_at = $1, status = 'EXPIRED'", _at())
        for entry, hold_id, *rest in rows:
            await tx.execute(ADD, entry, MONTH, ids.SYSTEM_USER, entitlement, hold_id, *rest)
    return entitlement


def _at() -> datetime:
    return datetime(MONTH.year, MONTH.month, 2, tzinfo=UTC)


async def test_archived_months_count(db: Database, owner: DatabaseConfig, place: StorageConfig, old: str) -> None:
    assert (await verify_ledger(db, WHO, place)).entries == 4
    await retire(db.config, place, "usage_ledger")
    found = await verify_ledger(db, WHO, place)
    assert (found.entries, found.archived_months, found.faults) == (0, 1, ())
    await db.fetch_alone("UPDATE headrace.entitlements SET quota_left = 8 WHERE id = $1", old)
    [fault] = (await verify_ledger(db, WHO, place)).faults
    assert (fault.kind, fault.about) == (FaultKind.QUOTA_UNEXPLAINED, old)


async def test_without_the_archives_what_they_explain_is_left_out_and_the_rest_is_not(
    db: Database, owner: DatabaseConfig, place: StorageConfig, old: str
) -> None:
    await retire(db.config, place, "usage_ledger")
    live = await stand.grant_alone(db, ids.SYSTEM_USER, 5)
    assert (await verify_ledger(db, WHO, place, read_archives=False)).is_clean
    await db.fetch_alone("UPDATE headrace.entitlements SET quota_left = 3 WHERE id = ANY ($1)", [old, live])
    found = await verify_ledger(db, WHO, place, read_archives=False)
    assert [fault.about for fault in found.faults] == [live]


async def test_an_archive_that_cannot_be_read_is_named(
    db: Database, owner: DatabaseConfig, place: StorageConfig, old: str, tmp_path: Path
) -> None:
    await retire(db.config, place, "usage_ledger")
    [file] = (tmp_path / "an archive").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-20])
    [fault] = (await verify_ledger(db, WHO, place)).faults
    assert (fault.kind, fault.about) == (FaultKind.DAMAGED_ARCHIVE, f"{MONTH:%Y-%m}")
