"""Rows are in the archive before they are deleted, and nothing is lost whenever it is killed. W-18"""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from headrace.admin.health import read_health
from headrace.archive.config import RetentionConfig
from headrace.archive.errors import ArchiveDamaged
from headrace.archive.retention import purge_rows, retain
from headrace.archive.row_archives import archive_rows
from headrace.assembly.retention import ROWS
from headrace.database import Database, DatabaseConfig
from headrace.purging import RowRetention
from headrace.storage import Storage, StorageConfig

FILL = {
    "task_executions": """
INSERT INTO headrace.scheduled_tasks (uid, name, type, is_recurring, cron_expr)
VALUES ('sch_1', 'x', 'x', true, '* * * * *');
INSERT INTO headrace.task_executions (task_uid, task_name, task_type, execution_uid, run_by, scheduled_at, started_at,
                                      finished_at, state, trigger_type, result, created_at)
SELECT 'sch_1', 'x', 'x', 'exe_' || lpad(n::text, 26, '0'), 'host:1', at, at, at, 'success', 'scheduled',
       '{"n": 1.50, "täxt": "ü"}', at
FROM generate_series(1, 7) AS n, LATERAL (SELECT now() - (500 - n) * interval '1 day' AS at) AS made
""",
    "outbox_events": """
INSERT INTO headrace.outbox_events (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json,
                                    status, published_at, created_at)
SELECT 'evt_' || n, 'task.succeeded', 1, 'task', 'tsk_1', '{"a": [1, null]}', 'PUBLISHED', at, at
FROM generate_series(1, 6) AS n, LATERAL (SELECT now() - (500 - n) * interval '1 day' AS at) AS made
""",
    "task_locks": """
INSERT INTO headrace.task_locks (lock_key, fence, holder_id, token, state, acquired_at, expires_at, created_at)
SELECT 'key-' || n, 1, 'h', 't', 'expired', at - interval '1 hour', at, at
FROM generate_series(1, 6) AS n, LATERAL (SELECT now() - (500 - n) * interval '1 day' AS at) AS made
""",
}
DUE = 6  # of each; the last run of a schedule stays
KEEP = timedelta(days=90)


@pytest.fixture(params=FILL)
async def rule(request: pytest.FixtureRequest, db: Database) -> RowRetention:
    async with db.transaction() as tx:
        await tx.execute(FILL[request.param])
    return ROWS[request.param]


def line() -> datetime:
    return datetime.now(UTC) - KEEP


async def names(db: Database, rule: RowRetention) -> set[str]:
    async with db.transaction() as tx:
        return {row[0] for row in await tx.fetch(f"SELECT {rule.name} FROM headrace.{rule.table}")}


async def noted(db: Database) -> list[tuple[str, int]]:
    async with db.transaction() as tx:
        rows = await tx.fetch("SELECT location, row_count FROM headrace.row_archives ORDER BY min_at")
    return [(row[0], row[1]) for row in rows]


def folder_of(place: StorageConfig) -> Path:
    return Path(place.url.removeprefix("file://"))


async def test_what_is_deleted_is_in_a_file_that_is_noted(
    db: Database, owner: DatabaseConfig, place: StorageConfig, rule: RowRetention
) -> None:
    before = await names(db, rule)
    config = RetentionConfig(archived_rows=(rule.table,))
    assert (await retain(db, place, config, ROWS, rule.table)).removed_rows == DUE
    ((location, count),) = await noted(db)
    table = pq.read_table(folder_of(place) / location)
    assert count == DUE
    assert set(table.column(rule.name).to_pylist()) == before - await names(db, rule)
    async with db.transaction() as tx:
        summary = await tx.fetchrow("SELECT * FROM headrace.row_archives")
    assert summary is not None
    assert (summary["min_at"], summary["max_at"]) == (
        min(table["created_at"].to_pylist()),
        max(table["created_at"].to_pylist()),
    )
    again = await retain(db, place, config, ROWS, rule.table)
    assert (again.removed_rows, len(await noted(db))) == (0, 1)


async def test_without_the_setting_they_are_only_deleted(
    db: Database, owner: DatabaseConfig, place: StorageConfig, rule: RowRetention
) -> None:
    assert (await retain(db, place, RetentionConfig(), ROWS, rule.table)).removed_rows == DUE
    assert await noted(db) == []


async def test_a_batch_is_a_file(db: Database, place: StorageConfig, rule: RowRetention) -> None:
    results = [await archive_rows(db, Storage(place), rule, line(), batch=4) for _ in range(3)]
    assert results == [(4, True), (2, False), (0, False)]
    assert [count for _, count in await noted(db)] == [4, 2]


@pytest.mark.parametrize("step", ["written", "stored", "verified"])
async def test_who_is_killed_has_deleted_nothing_and_the_next_one_does_it(
    db: Database, place: StorageConfig, rule: RowRetention, step: str
) -> None:
    before = await names(db, rule)

    def stop(reached: str) -> None:
        if reached == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await archive_rows(db, Storage(place), rule, line(), on_step=stop)
    assert (await names(db, rule), await noted(db)) == (before, [])
    assert (await purge_rows(db, rule, KEEP, archive=place)).removed_rows == DUE
    ((location, _),) = await noted(db)
    assert set(pq.read_table(folder_of(place) / location)[rule.name].to_pylist()) == before - await names(db, rule)


async def test_a_row_that_changed_after_it_was_written_stays(
    db: Database, place: StorageConfig, rule: RowRetention
) -> None:
    changed = min(await names(db, rule))

    async def change() -> None:
        async with db.transaction() as tx:
            await tx.execute(
                f"UPDATE headrace.{rule.table} SET created_at = created_at WHERE {rule.name} = $1", changed
            )

    class Changing(Storage):
        async def put(self, name: str, file: Path) -> None:
            await super().put(name, file)
            await change()

    assert (await archive_rows(db, Changing(place), rule, line()))[0] == DUE - 1
    assert changed in await names(db, rule)


async def test_a_file_that_reads_back_differently_deletes_nothing(
    db: Database, place: StorageConfig, rule: RowRetention
) -> None:
    before = await names(db, rule)

    class Damaging(Storage):
        async def put(self, name: str, file: Path) -> None:
            shutil.copy(__file__, file)
            await super().put(name, file)

    with pytest.raises(ArchiveDamaged):
        await archive_rows(db, Damaging(place), rule, line())
    assert (await names(db, rule), await noted(db)) == (before, [])


async def test_without_an_archive_to_write_to_the_rows_stay_and_the_run_says_why(
    db: Database, tmp_path: Path, rule: RowRetention
) -> None:
    before = await names(db, rule)
    (tmp_path / "a file").write_text("and no folder")
    run = await purge_rows(db, rule, KEEP, archive=StorageConfig(f"file://{tmp_path / 'a file'}"))
    assert run.removed_rows == 0
    assert "cannot be read or written" in (run.error or "")
    assert await names(db, rule) == before
    (told,) = (await read_health(db)).runs
    assert told.error == run.error
    assert told.finished_at is not None


async def test_archived_events_have_no_words_of_people(
    db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:
    """Names of files stayed in row archives for ever, also when their owner's account was deleted."""
    payload = {"name": "my divorce.pdf", "title": "my divorce.pdf", "labels": {"case": "x"}, "asset_id": "ast_1"}
    async with db.transaction() as tx:
        await tx.execute(FILL["outbox_events"])
        await tx.execute("UPDATE headrace.outbox_events SET payload_json = $1", payload)
    config = RetentionConfig(archived_rows=("outbox_events",))
    assert (await retain(db, place, config, ROWS, "outbox_events")).removed_rows == DUE
    ((location, _),) = await noted(db)
    assert (
        pq.read_table(folder_of(place) / location).column("payload_json").to_pylist() == ['{"asset_id": "ast_1"}'] * DUE
    )
