"""A month leaves: detached, archived, verified, dropped; whatever stops it, nothing is lost. W-17, W-18."""

import asyncio
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from headrace import ids
from headrace.archive import archives, store
from headrace.archive.config import LockConfig
from headrace.archive.errors import (
    ArchiveDamaged,
    MonthNeeded,
    MonthNotFound,
    NotMonthly,
    OwnerNeeded,
    PartitionBusy,
    RetiredElsewhere,
)
from headrace.archive.model import Archive, ArchiveState, Retired
from headrace.audit import Who, sealing, verifying
from headrace.audit.findings import Flaw
from headrace.audit.sealing import Sealer
from headrace.audit.seals import Seal
from headrace.audit.verifying import Verification, Verified
from headrace.database import Database, DatabaseConfig, connect_alone
from headrace.extras import ExtraMissing
from headrace.storage import Storage, StorageConfig, StorageUnreachable
from tests.archive.months import (
    LAST,
    MONTH,
    NAME,
    archive_of,
    fill_audit,
    fingerprint,
    make_month,
    name_of,
    retire,
    stop_after,
)
from tests.conftest import TestServer

ROOT = Path(__file__).parents[2]

IMPATIENT = LockConfig(
    wait=timedelta(milliseconds=20), pause=timedelta(milliseconds=20), patience=timedelta(seconds=0.2)
)


async def attached(db: Database, name: str = NAME) -> bool | None:
    async with db.transaction(readonly=True) as tx:
        return await store.is_attached(tx, name)


def the_file(place: StorageConfig) -> Path:
    (file,) = Path(place.url.removeprefix("file://")).rglob("*.parquet")
    return file


async def test_a_month_leaves_and_comes_back_the_same(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:  # W-18
    await fill_audit(db, 4500)
    before = await fingerprint(db, NAME)
    gone = await retire(db.config, place)
    archive = gone.archive
    assert (archive.state, archive.row_count, await attached(db)) == (ArchiveState.DROPPED, 4500, None)
    assert archive.size_bytes == the_file(place).stat().st_size
    assert archive.min_id is not None
    assert archive.min_at == datetime(2025, 3, 1, tzinfo=UTC) == ids.time_of(archive.min_id)
    assert timedelta(0) < gone.locked < timedelta(milliseconds=100)
    name = await archives.restore(owner, Storage(place), archive, who=Who.system())
    assert await fingerprint(db, name) == before
    assert await retire(db.config, place) == Retired(await find(db), timedelta(0)), "once gone, it is gone"


async def find(db: Database) -> Archive:
    async with db.transaction(readonly=True) as tx:
        return await archives.get_archive(tx, NAME)


async def test_each_step_is_in_the_trail(db: Database, owner: DatabaseConfig, place: StorageConfig) -> None:
    await fill_audit(db, 1)
    archive = (await retire(db.config, place)).archive
    await archives.restore(owner, Storage(place), archive, who=Who.system())
    await archives.discard(owner, await find(db), who=Who.system())
    async with db.transaction() as tx:
        events = await tx.fetch("SELECT action, resource ->> 'identifier' FROM headrace.audit_events ORDER BY seq")
    assert [tuple(event) for event in events] == [
        ("disabled", NAME),
        ("created", archive.id),
        ("deleted", NAME),
        ("created", f"{NAME}_restored"),
        ("deleted", f"{NAME}_restored"),
    ]


async def test_events_leave_only_when_they_are_sealed(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:
    await fill_audit(db, 5)
    await fill_audit(db, 1, seal=False)
    with pytest.raises(MonthNeeded, match="not sealed yet"):
        await retire(db.config, place)
    assert await attached(db) is True
    await Sealer(db).run_once()
    assert (await retire(db.config, place)).archive.row_count == 6


async def verify_trail(db: Database, place: StorageConfig) -> Verified:
    return await verifying.verify(db, against=archive_of(db, place))


@pytest.mark.parametrize("last", ["detached", "archived", None])
async def test_the_trail_is_verified_wherever_its_months_are(
    db: Database, owner: DatabaseConfig, place: StorageConfig, last: str | None
) -> None:
    await fill_audit(db, 2500)
    if last is not None:
        await stop_after(last, db.config, place)
    else:
        await retire(db.config, place)
    found = await verify_trail(db, place)
    assert (found.finding, found.events, found.not_looked_at) == (None, 2500, [])


async def test_a_missing_archive_is_named_with_its_month(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:
    await fill_audit(db, 10)
    done = await retire(db.config, place)
    assert done.archive.location is not None
    (Path(place.url.removeprefix("file://")) / done.archive.location).unlink()
    found = (await verify_trail(db, place)).finding
    assert found is not None
    assert (found.flaw, found.message.partition(":")[0]) == (Flaw.MISSING, "The archive of 2025-03 is missing")
    assert done.archive.location in found.message


@pytest.mark.parametrize("seals_before", [0, 2, 4])
async def test_a_month_that_leaves_while_it_is_verified_is_no_alarm(
    db: Database, owner: DatabaseConfig, place: StorageConfig, monkeypatch: pytest.MonkeyPatch, seals_before: int
) -> None:
    """Wherever the reading is when the month goes: so many of its seals have been read by then."""
    monkeypatch.setattr(sealing, "BATCH", 100)
    monkeypatch.setattr(verifying, "_WINDOW", 1)
    await fill_audit(db, 400)
    read, lock, number = Verification._read, asyncio.Lock(), 0

    async def read_and_retire(self: Verification, window: Sequence[Seal]) -> dict[int, bytes]:
        nonlocal number
        async with lock:
            if number == seals_before:
                await retire(db.config, place)
            number += 1
        return await read(self, window)

    monkeypatch.setattr(Verification, "_read", read_and_retire)
    found = await verify_trail(db, place)
    assert (found.finding, found.events, found.not_looked_at) == (None, 400, [])
    assert number >= 4


async def test_verifying_all_the_time_while_months_leave_raises_no_alarm(
    db: Database, owner: DatabaseConfig, place: StorageConfig, server: TestServer
) -> None:
    months = [date(2025, month, 1) for month in range(3, 7)]
    for month in months:
        await make_month(server, name_of(db), "audit_events", month)
        await fill_audit(db, 300, month)
    over = asyncio.Event()

    async def verify_on() -> int:
        rounds = 0
        while not over.is_set():
            found = await verify_trail(db, place)
            assert (found.finding, found.events >= 1200, found.not_looked_at) == (None, True, [])
            rounds += 1
        return rounds

    verifying_on = [asyncio.create_task(verify_on()) for _ in range(2)]
    for month in months:
        await retire(db.config, place, month=month)
    over.set()
    assert sum(await asyncio.gather(*verifying_on)) > 2


async def test_one_changed_value_on_the_way_into_the_archive_is_found(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:
    await fill_audit(db, 300)
    await stop_after("detached", db.config, place)
    async with connect_alone(owner) as connection:  # by somebody who may do anything
        changed = f"UPDATE headrace.{NAME} SET client_ip = '192.0.2.1' WHERE {LAST} RETURNING id"
        event_id = await connection.fetchval(changed)
    finding = (await verify_trail(db, place)).finding
    assert finding is not None
    assert (finding.flaw, finding.event_id) == (Flaw.CHANGED, event_id)
    await retire(db.config, place)  # what the event was is no longer known, but its seal does
    finding = (await verify_trail(db, place)).finding
    assert finding is not None
    assert finding.seal == 1


async def run_until_killed(owner: DatabaseConfig, place: StorageConfig, step: str) -> None:
    words = [owner.url, place.url.removeprefix("file://"), "audit_events", MONTH.isoformat(), step]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.archive.retiring_process", *words, cwd=ROOT
    )
    assert await process.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("step", "state"),
    [
        ("detached", ArchiveState.DETACHED),
        pytest.param("written", ArchiveState.DETACHED, marks=pytest.mark.slow),
        ("stored", ArchiveState.DETACHED),
        pytest.param("archived", ArchiveState.ARCHIVED, marks=pytest.mark.slow),
        ("verified", ArchiveState.ARCHIVED),
        pytest.param("dropped", ArchiveState.DROPPED, marks=pytest.mark.slow),
    ],
)
async def test_a_killed_run_is_taken_up_where_it_stopped(
    db: Database, owner: DatabaseConfig, place: StorageConfig, step: str, state: ArchiveState
) -> None:
    await fill_audit(db, 300)
    before = await fingerprint(db, NAME)
    await run_until_killed(db.config, place, step)
    assert (await find(db)).state is state
    if state is not ArchiveState.DROPPED:
        assert await fingerprint(db, NAME) == before, "the rows are still here"
    archive = (await retire(db.config, place)).archive
    assert (archive.state, archive.row_count, await attached(db)) == (ArchiveState.DROPPED, 300, None)
    assert the_file(place).exists(), "and no other file was left behind"
    name = await archives.restore(owner, Storage(place), archive, who=Who.system())
    assert await fingerprint(db, name) == before


async def test_an_archive_with_another_hash_is_never_dropped(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:
    await fill_audit(db, 300)
    before = await fingerprint(db, NAME)
    await stop_after("archived", db.config, place)
    content = bytearray(the_file(place).read_bytes())
    content[len(content) // 2] ^= 1
    the_file(place).write_bytes(content)
    for _ in range(2):
        with pytest.raises(ArchiveDamaged, match="is not the file that was written"):
            await retire(db.config, place)
    assert ((await find(db)).state, await fingerprint(db, NAME)) == (ArchiveState.ARCHIVED, before)
    with pytest.raises(ArchiveDamaged):
        await archives.verify(db.config, Storage(place), await find(db))
    with pytest.raises(ArchiveDamaged):
        await archives.restore(owner, Storage(place), await find(db), who=Who.system())
    assert (await retire(db.config, place, write_again=True)).archive.state is ArchiveState.DROPPED


async def test_rows_that_are_not_in_the_file_are_never_dropped(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:
    await fill_audit(db, 300)
    await stop_after("archived", db.config, place)
    async with connect_alone(owner) as connection:  # by somebody who may do anything
        await connection.execute(f"UPDATE headrace.{NAME} SET user_agent = 'x' WHERE {LAST}")
    with pytest.raises(ArchiveDamaged, match="the rows from number 1 on are not the same"):
        await retire(db.config, place)
    async with connect_alone(owner) as connection:
        await connection.execute(f"DELETE FROM headrace.{NAME} WHERE {LAST}")
    with pytest.raises(ArchiveDamaged):
        await retire(db.config, place)
    assert await attached(db) is False


async def test_a_busy_table_is_left_alone_and_nobody_waits_for_long(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:
    await fill_audit(db, 10)
    async with db.transaction() as tx:  # a report that runs for minutes
        await tx.fetchval("SELECT count(*) FROM headrace.audit_events")
        retiring = asyncio.create_task(retire(db.config, place, lock=IMPATIENT))
        reads = 0
        while not retiring.done():
            # Behind one that waits for the report without an end this would wait for it, too.
            async with db.transaction() as other:
                await other.fetchval("SELECT count(*) FROM headrace.audit_events")
            reads += 1
        with pytest.raises(PartitionBusy):
            await retiring
    assert reads > 0
    assert await attached(db) is True
    assert (await retire(db.config, place)).archive.state is ArchiveState.DROPPED


async def test_one_of_many_processes_does_it(db: Database, owner: DatabaseConfig, place: StorageConfig) -> None:
    await fill_audit(db, 500)
    outcomes = await asyncio.gather(*(retire(db.config, place) for _ in range(5)), return_exceptions=True)
    done = [outcome for outcome in outcomes if isinstance(outcome, Retired)]
    assert {outcome.archive.state for outcome in done} == {ArchiveState.DROPPED}
    assert all(isinstance(outcome, RetiredElsewhere) for outcome in outcomes if outcome not in done)
    assert the_file(place).exists()


async def test_only_the_owner_makes_a_table_of_an_archive(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:
    await fill_audit(db, 1)
    archive = (await retire(db.config, place)).archive
    with pytest.raises(OwnerNeeded, match="set HEADRACE_DATABASE_OWNER_URL to a member of headrace_owner for this"):
        await archives.restore(db.config, Storage(place), archive, who=Who.system())
    with pytest.raises(OwnerNeeded, match="PostgreSQL itself"):
        await archives.restore(replace(owner, pooled=True), Storage(place), archive, who=Who.system())


async def test_a_month_stays_when_there_is_no_place_for_it(db: Database, owner: DatabaseConfig, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageUnreachable):
        await retire(db.config, StorageConfig(f"file://{tmp_path}/file/folder"))
    assert await attached(db) is True


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=31)], ids=["this month", "the next"])
async def test_a_month_that_is_not_over_stays(
    db: Database, owner: DatabaseConfig, place: StorageConfig, ahead: timedelta
) -> None:
    month = (datetime.now(UTC).replace(day=1) + ahead).date().replace(day=1)
    with pytest.raises(MonthNeeded, match="it is not over yet"):
        await retire(db.config, place, month=month)
    async with db.transaction() as tx:
        assert await store.is_attached(tx, f"audit_events_y{month:%Ym%m}")


async def test_what_is_not_there_is_not_retired(db: Database, owner: DatabaseConfig, place: StorageConfig) -> None:
    with pytest.raises(MonthNotFound):
        await retire(db.config, place, month=date(1999, 1, 1))
    with pytest.raises(NotMonthly):
        await retire(db.config, place, table="users")


# -- the tables with foreign keys

LEDGER = """
INSERT INTO headrace.usage_ledger
  (id, period, user_id, entitlement_id, consume_unit, direction, status, source, idempotency_key)
VALUES ($1, '2025-03-01', $2, $3, 1, 'DEBIT', 'COMMITTED', 'MANUAL_ADJUST', '202503:x')
"""
ENTITLEMENT = """
WITH plan AS (INSERT INTO headrace.plans (id, name, price_cents, monthly_quota) VALUES ('p', 'p', 0, 1) RETURNING id)
INSERT INTO headrace.entitlements (id, user_id, plan_id, quota_total, quota_left, period_start, period_end, status)
SELECT 'e', $1, id, 1, 1, '2025-03-01', now() + interval '1 day', 'ACTIVE' FROM plan
"""


async def test_the_ledger_stays_while_it_explains_something_and_then_leaves(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:  # W-17
    async with db.transaction() as tx:
        await tx.execute(ENTITLEMENT, ids.SYSTEM_USER)
        await tx.execute(LEDGER, ids.new("led", at=datetime(2025, 3, 9, tzinfo=UTC)), ids.SYSTEM_USER, "e")
    before = await fingerprint(db, "usage_ledger_y2025m03")
    with pytest.raises(MonthNeeded, match="an entitlement that has not ended"):
        await retire(db.config, place, "usage_ledger")
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.entitlements SET period_end = now() - interval '1 day'")
    archive = (await retire(db.config, place, "usage_ledger")).archive
    assert await fingerprint(db, await archives.restore(owner, Storage(place), archive, who=Who.system())) == before


DELIVERY = """
WITH endpoint AS (
  INSERT INTO headrace.webhook_endpoints (id, user_id, name, url, status, secret_ciphertext)
  VALUES ('we', $1, 'x', 'https://example.com', 'ACTIVE', 'x') RETURNING id
), event AS (
  INSERT INTO headrace.outbox_events
    (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json, status)
  VALUES ($2, 'task.created', 1, 'task', 't', '{}', 'PENDING') RETURNING event_id
)
INSERT INTO headrace.webhook_deliveries
  (period, delivery_id, endpoint_id, event_id, event_type, attempt, status, response_body)
SELECT '2025-03-01', $3, endpoint.id, event.event_id, 'task.created', 1, 'PENDING', '' FROM endpoint, event
"""


async def test_deliveries_leave_when_none_is_under_way(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:  # W-17
    at = datetime(2025, 3, 31, 23, 59, tzinfo=UTC)
    async with db.transaction() as tx:
        await tx.execute(DELIVERY, ids.SYSTEM_USER, ids.new("evt", at=at), ids.new("dlv", at=at))
    with pytest.raises(MonthNeeded, match="still under way"):
        await retire(db.config, place, "webhook_deliveries")
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.webhook_deliveries SET status = 'DEAD'")
    before = await fingerprint(db, "webhook_deliveries_y2025m03")
    archive = (await retire(db.config, place, "webhook_deliveries")).archive
    assert await fingerprint(db, await archives.restore(owner, Storage(place), archive, who=Who.system())) == before


async def test_nothing_is_detached_without_the_libraries_to_archive_it(
    db: Database, owner: DatabaseConfig, place: StorageConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ExtraMissing):
        await retire(db.config, place)
    assert await attached(db) is True


async def test_a_month_that_is_made_again_is_not_taken_for_gone(
    db: Database, server: TestServer, owner: DatabaseConfig, place: StorageConfig
) -> None:
    await fill_audit(db, 1)
    await retire(db.config, place)
    await make_month(server, name_of(db), "audit_events")
    with pytest.raises(MonthNeeded, match="made again"):
        await retire(db.config, place)
