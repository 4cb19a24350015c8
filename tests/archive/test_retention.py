"""What is too old goes, in batches or by months, and nothing else. S-15, W-17, W-18."""

from datetime import UTC, date, datetime, timedelta

import pytest

from headrace import ids
from headrace.admin.health import read_health
from headrace.archive.config import RetentionConfig
from headrace.archive.model import MONTHLY, ArchiveState
from headrace.archive.retention import due_months, purge_rows, retain, retire_expired, walk_rows
from headrace.assembly.retention import ROWS
from headrace.database import Database, DatabaseConfig
from headrace.outbox.nats import store
from headrace.storage import StorageConfig
from tests.archive.months import MONTH, fill_audit, make_month, name_of
from tests.conftest import TestServer

AUDIT = MONTHLY["audit_events"]
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("now", "due"),
    [
        (datetime(2025, 4, 1, tzinfo=UTC) + 180 * DAY, True),
        (datetime(2025, 4, 1, tzinfo=UTC) + 180 * DAY - timedelta(microseconds=1), False),
    ],
)
async def test_a_month_is_due_when_its_last_moment_is_old_enough(
    db: Database, owner: DatabaseConfig, now: datetime, due: bool
) -> None:  # W-18
    assert await due_months(db, AUDIT, RetentionConfig().audit_events, now=now) == [MONTH] * due


async def test_a_table_that_is_kept_for_ever_has_nothing_due(db: Database, owner: DatabaseConfig) -> None:
    assert await due_months(db, AUDIT, None) == []


async def test_old_months_leave_and_the_run_is_told(
    server: TestServer, db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:
    await make_month(server, name_of(db), "audit_events", date(2025, 4, 1))
    await fill_audit(db, 20)
    await fill_audit(db, 30, date(2025, 4, 1))
    run = await retain(db, place, RetentionConfig(), ROWS, "audit_events")
    assert [gone.archive.period for gone in run.retired] == [MONTH, date(2025, 4, 1)]
    assert (run.removed_rows, run.error) == (50, None)
    health = await read_health(db)
    (told,) = health.runs
    assert (told.table_name, told.removed_rows, told.removed_total, told.error) == ("audit_events", 50, 50, None)
    assert told.finished_at is not None
    assert health.archives == {ArchiveState.DROPPED: 2}
    again = await retain(db, place, RetentionConfig(), ROWS, "audit_events")
    assert (again.removed_rows, again.retired) == (0, ())
    (told,) = (await read_health(db)).runs
    assert (told.removed_rows, told.removed_total) == (0, 50)


async def test_a_month_that_cannot_go_does_not_keep_the_others(
    server: TestServer, db: Database, owner: DatabaseConfig, place: StorageConfig
) -> None:
    await make_month(server, name_of(db), "audit_events", date(2025, 4, 1))
    await server.run(  # somebody made a month's archive unreadable before it was dropped
        "INSERT INTO headrace.archives (id, table_name, period, state, location, row_count, size_bytes, sha256, "
        "archived_at) VALUES ('arc_1', 'audit_events', '2025-03-01', 'ARCHIVED', 'gone', 0, 1, repeat('0', 64), now())",
        database=name_of(db),
    )
    run = await retire_expired(db, place, "audit_events", 180 * DAY)
    assert [gone.archive.period for gone in run.retired] == [date(2025, 4, 1)]
    assert [kept.period for kept in run.kept] == [MONTH]
    (told,) = (await read_health(db)).runs
    assert (told.error or "").startswith("2025-03: The file of audit_events_y2025m03")


EXECUTION = """
WITH schedule AS (
  INSERT INTO headrace.scheduled_tasks (uid, user_id, name, type, is_recurring, cron_expr, max_duration_seconds)
  VALUES ($1, $2, $1, 'x', true, '* * * * *', 60) RETURNING uid
)
INSERT INTO headrace.task_executions
  (task_uid, task_name, task_type, execution_uid, run_by, scheduled_at, started_at, finished_at, state, trigger_type,
   created_at)
SELECT uid, 'x', 'x', 'exe_' || lpad(days::text, 26, '0'), 'host:1', at, at, CASE WHEN days <> 100 THEN at END,
       CASE WHEN days = 100 THEN 'running' ELSE 'success' END, 'scheduled', at
FROM schedule, unnest(ARRAY[1, 89, 91, 100, 500]) AS days,
  LATERAL (SELECT now() - days * interval '1 day' AS at) AS made
"""


async def test_ended_runs_go_after_ninety_days(db: Database) -> None:  # S-15
    async with db.transaction() as tx:
        await tx.execute(EXECUTION, ids.new("sch"), ids.SYSTEM_USER)
    run = await purge_rows(db, ROWS["task_executions"], RetentionConfig().task_executions, batch=1)
    assert run.removed_rows == 2
    async with db.transaction() as tx:
        left = await tx.fetch("SELECT execution_uid FROM headrace.task_executions ORDER BY created_at DESC")
    assert [int(row[0][4:]) for row in left] == [1, 89, 100], "what still runs stays"


LOCKS = """
INSERT INTO headrace.task_locks (lock_key, fence, holder_id, token, state, acquired_at, expires_at, released_at)
SELECT state || days, 1, 'h', 't', state, at - interval '1 hour', at, CASE WHEN state = 'released' THEN at END
FROM unnest(ARRAY['active', 'expired', 'released']) AS state, unnest(ARRAY[6, 8]) AS days,
  LATERAL (SELECT now() - days * interval '1 day' AS at) AS made
"""


async def test_locks_that_nobody_holds_go_after_seven_days(db: Database) -> None:  # S-15
    async with db.transaction() as tx:
        await tx.execute(LOCKS)
    assert (await purge_rows(db, ROWS["task_locks"], RetentionConfig().task_locks)).removed_rows == 2
    async with db.transaction() as tx:
        left = await tx.fetch("SELECT lock_key FROM headrace.task_locks ORDER BY 1")
    assert [row[0] for row in left] == ["active6", "active8", "expired6", "released6"]


OUTBOX = """
INSERT INTO headrace.outbox_events
  (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json, status, published_at, created_at)
SELECT status || days, 'x', 1, 'task', 't', '{}', status, CASE WHEN status = 'PUBLISHED' THEN now() END,
       now() - days * interval '1 day'
FROM unnest(ARRAY['PENDING', 'FAILED', 'PUBLISHED', 'DEAD']) AS status, unnest(ARRAY[6, 8]) AS days
"""


async def test_events_that_were_told_go_after_seven_days(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute(OUTBOX)
    assert (await purge_rows(db, ROWS["outbox_events"], RetentionConfig().outbox_events)).removed_rows == 2
    oldest = (await read_health(db)).outbox.oldest_waiting
    assert oldest is not None
    assert oldest > 8 * DAY - timedelta(minutes=1)
    async with db.transaction() as tx:
        assert await tx.fetchval("SELECT count(*) FROM headrace.outbox_events") == 6


async def test_an_event_that_the_broker_has_not_confirmed_stays(db: Database) -> None:  # W-12
    async with db.transaction() as tx:
        await tx.execute(OUTBOX)
        old = await tx.fetch(
            "SELECT id FROM headrace.outbox_events WHERE event_id IN ('PUBLISHED8', 'DEAD8') ORDER BY 1"
        )
        await store.add(tx, [row["id"] for row in old])
        await tx.execute(
            "UPDATE headrace.broker_messages SET given_up_at = now() WHERE event_position = $1", old[1]["id"]
        )
    assert (await purge_rows(db, ROWS["outbox_events"], RetentionConfig().outbox_events)).removed_rows == 1
    batch = await store.claim(db, limit=10, lease=timedelta(minutes=1))
    assert ([message.event.position for message in batch.messages], batch.orphans) == ([old[0]["id"]], ())


@pytest.mark.parametrize("table", ROWS)
async def test_what_is_kept_for_ever_stays(db: Database, table: str) -> None:
    assert (await purge_rows(db, ROWS[table], None)).removed_rows == 0


TASKS = """
INSERT INTO headrace.tasks (id, user_id, task_type, title, status, created_at, updated_at, finished_at)
SELECT 'tsk_' || state || days, $1, 'x', 'x', state, now() - days * interval '1 day', now() - days * interval '1 day',
       CASE WHEN state <> 'QUEUED' THEN now() - days * interval '1 day' END
FROM unnest(ARRAY['SUCCEEDED', 'QUEUED']) AS state, unnest(ARRAY[89, 91]) AS days
"""
LINES = "INSERT INTO headrace.task_logs (task_id, status) SELECT $1, 'LOG' FROM generate_series(1, $2::integer)"


async def test_tasks_go_after_ninety_days_with_their_logs_however_many(db: Database) -> None:  # W-18
    async with db.transaction() as tx:
        await tx.execute(TASKS, ids.SYSTEM_USER)
        await tx.execute(LINES, "tsk_SUCCEEDED91", 450)
        await tx.execute(LINES, "tsk_SUCCEEDED89", 3)
    assert (await walk_rows(db, ROWS["tasks"], RetentionConfig().tasks_by_status)).removed_rows == 1
    async with db.transaction() as tx:
        left = await tx.fetch("SELECT id FROM headrace.tasks ORDER BY id")
        assert [row["id"] for row in left] == ["tsk_QUEUED89", "tsk_QUEUED91", "tsk_SUCCEEDED89"]
        assert await tx.fetchval("SELECT count(*) FROM headrace.task_logs") == 3


async def test_workers_that_ended_go_after_seven_days(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute(
            "INSERT INTO headrace.workers (id, host, pid, types, concurrency, lease, ended_at, ending) "
            "SELECT 'wrk_' || days, 'h', 1, '{}'::text[], 1, interval '15 s', now() - make_interval(days => days), "
            "'STOPPED' "
            "FROM unnest(ARRAY[6, 8]) AS days UNION ALL SELECT 'wrk_alive', 'h', 1, '{}', 1, '15 s', NULL, NULL"
        )
    assert (await purge_rows(db, ROWS["workers"], RetentionConfig().workers)).removed_rows == 1
    async with db.transaction() as tx:
        left = await tx.fetch("SELECT id FROM headrace.workers ORDER BY id")
    assert [row["id"] for row in left] == ["wrk_6", "wrk_alive"]
