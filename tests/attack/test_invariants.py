"""The invariants themselves: none is broken by ordinary work, each finds what breaks it, and no table is forgotten."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from headrace import ids
from headrace.audit.sealing import Sealer
from headrace.database import Database
from headrace.locks.service import acquire_lock, release_lock
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Snooze
from headrace.tasks.service import cancel_task, delete_task, retry_task
from tests.attack import invariants, payment_invariants
from tests.attack.model import Invariant
from tests.billing.stand import grant_alone
from tests.conftest import TestServer
from tests.outbox.hearing import want
from tests.schedules.conftest import Clockwork
from tests.tasks.conftest import AT_ONCE

TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = 'headrace'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""


async def test_every_table_is_read_by_an_invariant_or_named_as_having_none(db: Database) -> None:
    tables = {row["relname"] for row in await db.fetch_alone(TABLES)}
    read = {table for each in invariants.ALL for table in each.tables} | set(invariants.SEALED_TABLES)
    unknown = tables - read - invariants.NOT_READ.keys()
    assert not unknown, (
        f"say in tests/attack/invariants.py what must hold of {unknown}, or in NOT_READ why nothing must"
    )
    assert not (read | invariants.NOT_READ.keys()) - tables, "these are gone"
    assert not read & invariants.NOT_READ.keys(), "these are read after all"


async def work_for_a_day(clockwork: Clockwork) -> None:
    """A bit of everything that tasks, schedules and locks can do, until all of it is over."""
    db, running = clockwork.db, asyncio.Event()
    await want(db)

    @clockwork.registry.task("shaky", max_attempts=3, backoff=AT_ONCE)
    async def shaky(context: TaskContext, payload: Any) -> None:
        await context.log("here I am")
        if context.attempt < 3:
            raise Snooze(timedelta(0)) if context.attempt == 1 else RuntimeError("not yet")

    @clockwork.registry.task("hopeless", max_attempts=1)
    async def hopeless(context: TaskContext, payload: Any) -> None:
        async with context.step("trying"):
            raise RuntimeError("never")

    @clockwork.registry.task("long", max_attempts=1)
    async def long(context: TaskContext, payload: Any) -> None:
        await context.progress(10)
        running.set()
        await asyncio.sleep(60)

    @clockwork.registry.task("job", max_attempts=1)
    async def job(context: TaskContext, payload: Any) -> None: ...

    @clockwork.registry.task("metered", units=2)
    async def metered(context: TaskContext, payload: Any) -> None: ...

    await grant_alone(db, ids.SYSTEM_USER, 10)
    schedule = await clockwork.create(interval=3600)
    waiting = await clockwork.submit("job", run_at=datetime.now(UTC) + timedelta(days=1))
    async with db.transaction() as tx:
        await cancel_task(tx, clockwork.tasks, clockwork.caller, waiting)
    tasks = [await clockwork.submit(name) for name in ("job", "shaky", "hopeless", "long", "metered")]
    async with clockwork.working():
        await running.wait()
        async with db.transaction() as tx:
            await cancel_task(tx, clockwork.tasks, clockwork.caller, tasks[3])
        await clockwork.over(*tasks)
        async with db.transaction() as tx:
            await retry_task(tx, clockwork.tasks, clockwork.caller, tasks[2])
        await clockwork.fire((await clockwork.schedule(schedule.uid))["next_run"])
        await clockwork.over(tasks[2])
        await clockwork.until_runs(schedule.uid, "success")
    async with db.transaction() as tx:
        await delete_task(tx, clockwork.caller, waiting)
    for _ in range(2):
        async with db.transaction() as tx:
            held = await acquire_lock(tx, clockwork.caller, "door", ttl=timedelta(minutes=1))
        async with db.transaction() as tx:
            await release_lock(tx, clockwork.caller, "door", held.token)
    await Sealer(db).run_once()


# One way to break each invariant, past every trigger and foreign key, on the tables that a day of work has left.
TASK = "(SELECT id FROM tasks WHERE task_type = 'shaky')"
QUEUE = "INSERT INTO task_queue (run_at, lane_id, precedence, attempt, task_id, worker, claimed_at)"
OUTCOME = "INSERT INTO task_logs (task_id, attempt, status)"
UNTELL = f"DELETE FROM outbox_events WHERE aggregate_id = {TASK} AND event_type ="
EVENT = "evt_01kf0000000000000000000000"
DELIVERY = f"""
INSERT INTO webhook_deliveries (period, delivery_id, endpoint_id, event_id, event_type, attempt, status)
VALUES (typeid_month('{EVENT}'), 'whd{EVENT[3:]}', 'whe_1', '{EVENT}', 'task.created'"""
ENDPOINT = """
INSERT INTO webhook_endpoints (id, user_id, name, url, status, secret_ciphertext, deleted_at)
VALUES ('whe_1', 'u_1', '', '', 'ACTIVE'"""
ASSET = """INSERT INTO assets (id, user_id, media_type, origin_name, mime_type, size_bytes, sha256, storage_key, status,
  deleted_at, purged_at) SELECT"""
UPLOAD = """INSERT INTO uploads (id, user_id, asset_id, method, origin_name, size_bytes, part_bytes, storage_key,
  status, expire_at) SELECT"""
DAMAGE = {
    "a file and an upload under way never": f"{UPLOAD} 'upl', id, 'ast', 'PARTS', 'n', 1, 1, 'k', 'COMPLETED', now() "
    "FROM users LIMIT 1",
    "the key of a file begins with its owner": f"{ASSET} 'ast', id, 'PDF', 'n', 'm', 1, NULL, 'k', 'DELETED', now(), "
    "now() FROM users LIMIT 1",
    "a file that is there has not been purged": f"{ASSET} 'ast', id, 'PDF', 'n', 'm', 1, NULL, id || '/k', 'UPLOADED', "
    "NULL, NULL::timestamptz FROM users LIMIT 1",
    "no part is larger than its upload's parts": f"{UPLOAD} 'upl', id, 'ast', 'PARTS', 'n', 1, 1, 'k', 'OPEN', now() "
    "FROM users LIMIT 1; INSERT INTO upload_parts (upload_id, number, size_bytes, sha256) "
    "VALUES ('upl', 2, 1, repeat('0', 64))",
    "a media task has its declaration": "UPDATE tasks SET task_type = 'IMAGE', input_asset_id = 'ast', "
    "quality_level = 'HIGH', mode = 'AUTO', output_format = 'png' WHERE task_type = 'shaky'",
    "a document's password is there no longer": "INSERT INTO removal_passwords (task_id, sealed) "
    f"VALUES ({TASK}, '0123abcd.c2VhbGVk')",
    "the result file of a task lies under": f"INSERT INTO task_results (task_id, result_key) VALUES ({TASK}, 'k')",
    "a task has one place in the queue until": f"{QUEUE} VALUES (now(), 1, 0, 1, {TASK}, NULL, NULL)",
    "a place in the queue has the route of its lane": f"{QUEUE} SELECT now(), min(id), 0, 1, 'tsk_nobody', NULL, NULL "
    "FROM task_lanes; UPDATE task_queue SET route_id = 1000000 WHERE task_id = 'tsk_nobody'",
    "a task that waits for its time is held by nobody": f"{QUEUE} VALUES (now(), 1, 0, 1, 'tsk_nobody', 1, now()); "
    "UPDATE task_queue SET delayed = true WHERE task_id = 'tsk_nobody'",
    "a place in the queue belongs to a task": f"{QUEUE} VALUES (now(), 1, 0, 1, 'tsk_nobody', NULL, NULL)",
    "nobody who has ended holds a task": f"{QUEUE} VALUES (now(), 1, 0, 1, 'tsk_nobody', 1, now())",
    "nothing that a worker did counts after": "UPDATE workers SET ending = 'DEAD', ended_at = started_at",
    "attempts are numbered from 1": f"{OUTCOME} VALUES ({TASK}, 2, 'SUCCEEDED')",
    "nothing follows a success": f"{OUTCOME} VALUES ({TASK}, 4, 'FAILED')",
    "a task that is over has an outcome": f"DELETE FROM task_logs WHERE task_id = {TASK} AND status = 'SUCCEEDED'",
    "no task failed more often": "UPDATE tasks SET retries = 3 WHERE task_type = 'shaky'",
    "what a handler logged": f"{OUTCOME} VALUES ({TASK}, 9, 'LOG')",
    "no step is left running": "UPDATE task_steps SET status = 'RUNNING', ended_at = NULL",
    "everything that was submitted is over": "UPDATE tasks SET status = 'QUEUED', finished_at = NULL",
    "each attempt that ended was told of once": f"{UNTELL} 'task.started' AND payload_json ->> 'attempt' = '2'",
    "each outcome was told of once": f"{UNTELL} 'task.succeeded'",
    "a task's events begin with its creation": f"{UNTELL} 'task.created'",
    "an event of a task is of a task": "UPDATE outbox_events SET aggregate_id = 'tsk_nobody'",
    "no event was published before": """
        UPDATE outbox_events SET status = 'PUBLISHED', published_at = now() WHERE event_type = 'task.started'
        """,
    "a due time has one chain": "UPDATE task_executions SET retry_count = 1",
    "a schedule's statistics": "UPDATE scheduled_tasks SET total_executions = total_executions + 1",
    "never more runs at once": """
        INSERT INTO task_executions
          (task_uid, task_name, task_type, execution_uid, task_id, scheduled_at, state, trigger_type, user_id)
        SELECT task_uid, '', '', new_id(split_part(execution_uid, '_', 1)), 'tsk_' || n, now() + n * interval '1 s',
               'pending', 'scheduled', user_id
        FROM task_executions, generate_series(1, 2) AS n
        """,
    "no more runs wait than": """
        UPDATE scheduled_tasks SET overlap_policy = 'skip';
        UPDATE task_executions
        SET state = 'pending', task_id = NULL, run_by = NULL, started_at = NULL, finished_at = NULL
        """,
    "no run is left waiting": "UPDATE task_executions SET state = 'running', finished_at = NULL",
    "the attempts of an event at an endpoint": f"{DELIVERY}, 2, 'SUCCESS')",
    "what is open in the record": f"{DELIVERY}, 1, 'PENDING')",
    "exactly endpoints that are active or paused": f"{ENDPOINT}, 's', NULL)",
    "a deleted endpoint keeps no secret": f"{ENDPOINT}, 's', now())",
    "what is known of an endpoint's health": f"""
        {ENDPOINT}, '', now()); INSERT INTO webhook_health (endpoint_id) VALUES ('whe_1')
        """,
    "nobody is told of one event twice": """
        DROP INDEX uk_notifications_event;
        INSERT INTO notifications (user_id, type, title, body, event_id)
        SELECT 'u_1', 'TASK_FAILED', '', '', 'evt_1' FROM generate_series(1, 2)
        """,
    "a lock is taken only after": "UPDATE task_locks SET acquired_at = acquired_at - interval '1 h' WHERE fence = 2",
    "a key's fence is at least": "UPDATE lock_fences SET fence = 1",
    "who is not active": """
        INSERT INTO sessions (id, user_id, token_hash, expires_at)
        VALUES ('ses_1', 'u_gone', sha256(''), now() + interval '1 day');
        INSERT INTO users (id, status, username, password_hash) VALUES ('u_gone', 'SUSPENDED', 'gone', '!')
        """,
    "who has a second factor has its secret": "UPDATE users SET second_factor_at = now() WHERE username IS NOT NULL",
    "the deletion of an account": """
        INSERT INTO account_deletions (id, user_id, requested_by, status_before, due_at, next_try_at)
        SELECT 'del_1', id, id, 'ACTIVE', now(), now() FROM users
        """,
    "a kept answer that made a task": """
        INSERT INTO idempotency_keys (scope, idempotency_key, request_hash, http_status, result_task_id, expires_at)
        VALUES ('tasks.create', 'k', repeat('0', 64), 201, 'tsk_nobody', now())
        """,
    "every event of the trail": "ALTER TABLE audit_events DROP CONSTRAINT ck_audit_events_seq; "
    "UPDATE audit_events SET seq = 0 WHERE seq = (SELECT max(seq) FROM audit_events)",
    "for every entitlement": "UPDATE entitlements SET quota_left = quota_left - 1",
    "what is held is settled whole": "UPDATE usage_ledger SET consume_unit = 1 WHERE hold_id IS NOT NULL",
    "the days that were added up": "DELETE FROM usage_days_horizon; "
    "INSERT INTO usage_days_horizon (day) VALUES (current_date + 2)",
    **payment_invariants.DAMAGE,
    "a task that somebody deleted": "UPDATE tasks SET deleted_at = now() WHERE task_type = 'shaky'",
}


async def test_ordinary_work_breaks_no_invariant_and_damage_breaks_its_own(
    db: Database, server: TestServer, tmp_path: Path
) -> None:
    await work_for_a_day(Clockwork(db, tmp_path))
    assert await invariants.broken(db, at_rest=True) == []
    connection = await asyncpg.connect(server.url(urlsplit(db.config.url).path.strip("/")))
    try:
        for each in invariants.ALL:
            if each.tables[0] not in invariants.UNWRITTEN:
                assert await rows_after(connection, damage_to(each), each.sql), f"not found out: {each.holds}"
    finally:
        await connection.close()


def damage_to(invariant: Invariant) -> str:
    fitting = [sql for beginning, sql in DAMAGE.items() if invariant.holds.startswith(beginning)]
    assert len(fitting) == 1, f"say in DAMAGE how to break: {invariant.holds}"
    return fitting[0]


async def rows_after(connection: "asyncpg.Connection[Any]", damage: str, sql: str) -> int:
    """How many rows break it after the damage, which is then undone."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(
            f"SET LOCAL session_replication_role = replica; SET LOCAL search_path = headrace; {damage}"
        )
        return len(await connection.fetch(sql))
    finally:
        await transaction.rollback()
