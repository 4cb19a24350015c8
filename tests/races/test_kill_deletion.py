"""Must be seen: kill -9 at any point of the deletion of an account; it completes afterwards, once. W-16."""

import asyncio
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from headrace import ids
from headrace.accounts.deletion import service
from headrace.audit import Who
from headrace.database import Database
from headrace.tasks.catalog import StoredCatalog
from headrace.tasks.events import OutboxFollower
from headrace.tasks.followers import Followers
from headrace.tasks.model import TaskSpec
from headrace.tasks.submit import Submitter
from tests.e2e.program import CHEAP, SECRET_KEY, Program
from tests.outbox.hearing import want
from tests.races.nursery import Start, nursery

pytestmark = pytest.mark.long

# Transactions of the deletion that ``doomed_user`` asks for, from the claim to the end.
TRANSACTIONS = 73
POINTS = list(itertools.product(range(1, TRANSACTIONS + 1), ("before", "after")))
SOME = POINTS[::8]  # sixteen of them

STEPS = [
    "webhooks", "schedules", "tasks.cancel", "files", "removals", "tasks.erase", "bulk_actions", "billing", "locks",
    "notifications",
    "configs", "accounts.credentials",
]  # fmt: skip


@pytest.fixture
async def carry_out(database_url: str) -> AsyncIterator[Start]:
    async with nursery("tests.races.deletion_process", database_url) as starting:
        yield starting


_numbers = itertools.count()


async def doomed_user(db: Database) -> str:
    """Somebody with two tasks that wait, one that is over, a session and an API key, who is to be deleted now."""
    await want(db)
    user_id, n = ids.new("u"), next(_numbers)
    followers = Followers({"outbox": OutboxFollower()})
    submitter = Submitter(StoredCatalog(), followers)
    async with db.transaction() as tx:
        await tx.execute(
            "INSERT INTO headrace.users (id, username, email, password_hash) VALUES ($1, $2, 'ada@example.org', '!')",
            user_id,
            f"ada{n}",
        )
        await tx.execute("INSERT INTO headrace.task_types (name) VALUES ('note') ON CONFLICT DO NOTHING")
        await tx.execute(
            "INSERT INTO headrace.sessions (id, user_id, token_hash, expires_at) "
            "VALUES ($1, $2, $3, now() + interval '1 day')",
            ids.new("ses"),
            user_id,
            os.urandom(32),
        )
        for _ in range(2):
            await submitter.submit(tx, TaskSpec("note", {"of": "ada"}, title="ada's"), user_id=user_id)
        await tx.execute(
            "INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, result, status, finished_at) "
            "VALUES ($1, $2, 'note', 'ada''s', '{\"of\": \"ada\"}', '\"ada\"', 'SUCCEEDED', now())",
            ids.new("tsk"),
            user_id,
        )
        await tx.execute(
            "INSERT INTO headrace.scheduled_tasks (uid, user_id, name, type, is_recurring, cron_expr, next_run) "
            "VALUES ($1, $2, $3, 'note', true, '0 4 * * *', now() + interval '1 day')",
            ids.new("sch"),
            user_id,
            f"ada's {n}",
        )
        await service.delete_account(tx, Who.system(), user_id, grace=timedelta(0))
    return user_id


async def check_gone_once(db: Database, user_id: str) -> None:
    (deletion,) = await db.fetch_alone("SELECT * FROM headrace.account_deletions WHERE user_id = $1", user_id)
    assert deletion["status"] == "COMPLETED"
    assert deletion["steps_done"] == STEPS
    (user,) = await db.fetch_alone("SELECT * FROM headrace.users WHERE id = $1", user_id)
    assert (user["status"], user["username"], user["email"], user["password_hash"]) == ("DELETED", None, None, None)
    tasks = await db.fetch_alone("SELECT * FROM headrace.tasks WHERE user_id = $1", user_id)
    assert sorted(task["status"] for task in tasks) == ["CANCELED", "CANCELED", "SUCCEEDED"]
    for task in tasks:
        assert (task["title"], task["payload"], task["result"]) == ("(deleted)", None, None)
    for table in ("sessions", "api_keys", "scheduled_tasks"):
        assert await db.fetch_alone(f"SELECT FROM headrace.{table} WHERE user_id = $1", user_id) == []
    told = await db.fetch_alone(
        "SELECT event_type FROM headrace.outbox_events WHERE payload_json ->> 'user_id' = $1 ORDER BY id", user_id
    )
    assert [row["event_type"] for row in told][-3:] == ["task.canceled", "task.canceled", "account.deleted"]
    assert len(told) == 5  # and the two that were created
    notes = await db.fetch_alone("SELECT type FROM headrace.notifications WHERE user_id = $1", user_id)
    assert [row["type"] for row in notes] == ["ACCOUNT_DELETE_COMPLETED"]
    trail = await db.fetch_alone(
        "SELECT action, data FROM headrace.audit_events WHERE resource ->> 'identifier' = $1 ORDER BY seq", user_id
    )
    assert [row["action"] for row in trail] == ["disabled", *["updated"] * len(STEPS), "deleted"]
    assert [row["data"].get("step") for row in trail][1:-1] == STEPS


@pytest.mark.parametrize("points", [SOME, pytest.param(POINTS, marks=pytest.mark.slow)], ids=["some", "every"])
@pytest.mark.timeout(300)
async def test_killed_at_any_point_it_completes_afterwards_once(
    db: Database, carry_out: Start, points: list[tuple[int, str]]
) -> None:
    for number, when in points:
        user_id = await doomed_user(db)
        assert await carry_out(number, when) == -signal.SIGKILL, f"{number} {when}: it was over before"
        assert await carry_out(0, "never") == 0
        await check_gone_once(db, user_id)


async def test_the_points_are_all_there_are(db: Database, carry_out: Start) -> None:
    user_id = await doomed_user(db)
    assert await carry_out(TRANSACTIONS, "after") == -signal.SIGKILL
    await check_gone_once(db, user_id)  # the last of them was the end


@pytest.mark.slow
async def test_killed_ten_times_in_a_row_it_completes_once(db: Database, carry_out: Start) -> None:
    user_id = await doomed_user(db)
    for number in (1, 1, 2, 3, 4, 2, 5, 3, 4, 2):
        assert await carry_out(number, "before") == -signal.SIGKILL
    assert await carry_out(0, "never") == 0
    await check_gone_once(db, user_id)


@pytest.mark.timeout(120)
async def test_a_killed_api_leaves_it_to_the_next(db: Database, database_url: str, tmp_path: Path) -> None:
    settings = {
        **CHEAP,
        **SECRET_KEY,
        "HEADRACE_DATABASE_URL": database_url,
        "HEADRACE_ACCOUNT_DELETION_GRACE": "0s",
        "HEADRACE_REGISTRATION": "open",
    }
    doomed = Program("api", folder=tmp_path, settings=settings)
    try:
        await asyncio.to_thread(doomed.until_ready)
        ada = {"username": "ada", "password": "correct horse battery"}
        async with httpx2.AsyncClient(base_url=doomed.url(), timeout=60) as client:
            assert (await client.post("/v1/auth/register", json=ada)).status_code == 201
            entered = (await client.post("/v1/auth/login", json=ada)).json()
            client.cookies.clear()
            headers = {"Authorization": f"Bearer {entered['token']}"}
            body = {"password": ada["password"]}
            asked = await client.post("/v1/me/deletion", json=body, headers=headers)
            doomed.process.kill()
        assert asked.status_code == 202, asked.text
        user_id = asked.json()["user_id"]
    finally:
        doomed.close()
    # It may have begun: then its lease has to end first.
    await db.fetch_alone("UPDATE headrace.account_deletions SET next_try_at = now() WHERE status = 'RUNNING'")
    survivor = Program("api", folder=tmp_path, settings=settings)
    try:
        await until_deleted(db, user_id)
    finally:
        survivor.close()
    assert len(await db.fetch_alone("SELECT FROM headrace.notifications")) == 1


async def until_deleted(db: Database, user_id: str) -> None:
    deadline = time.monotonic() + 60
    while not await db.fetch_alone("SELECT FROM headrace.users WHERE id = $1 AND status = 'DELETED'", user_id):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
