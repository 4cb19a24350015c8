"""One call acts on all that a filter matches: only what is the caller's, once, and until it is stopped."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from headrace import ids
from headrace.access import Role
from headrace.admin.bulk import execution
from headrace.admin.bulk import routes as bulk_routes
from headrace.admin.bulk.execution import add_handlers
from headrace.admin.bulk.schemas import TaskFilterIn
from headrace.admin.bulk.selection import count_tasks
from headrace.assembly.followers import followers
from headrace.database import Database, Row
from headrace.schedules import routes as schedule_routes
from headrace.tasks import routes as task_routes
from headrace.tasks.catalog import StoredCatalog, declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.live import open_watch
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks
from headrace.tasks.store.counts import Counted
from headrace.tasks.submit import Submitter
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.billing import stand as billing
from tests.edge import stand
from tests.tasks.people import trail

MADE = "INSERT INTO headrace.tasks (id, user_id, task_type, title) VALUES ($1, $2, $3, 't') RETURNING id"


class Site:
    """The routes, a worker for the product's own tasks alone, and people."""

    def __init__(self, db: Database, client: httpx2.AsyncClient, scratch: Path) -> None:
        self.db, self.client, self.scratch = db, client, scratch
        following = followers()
        self.tasks = Tasks(Submitter(StoredCatalog(), following), StoredCatalog(), following)
        self.held = asyncio.Event()
        self.registry, self.own = Registry(), Registry()
        add_handlers(self.own, db, lambda: self.tasks, queue="headrace")

        @self.registry.task("work", max_attempts=1, submit="users")
        async def work(context: TaskContext, payload: Any) -> None:
            if payload == "fail":
                raise ValueError("<script>alert(1)</script>")
            await self.held.wait()

    async def submit(self, user: str, many: int, payload: Any = None, **spec: Any) -> list[str]:
        async with self.db.transaction() as tx:
            return await self.tasks.submitter.submit_many(
                tx, [TaskSpec("work", payload, **spec) for _ in range(many)], user_id=user
            )

    async def send(self, who: str, method: str, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {who}", **more.pop("headers", {})}
        return await self.client.request(method, path, json=body, headers=headers, **more)

    async def bulk(self, who: str, action: str, expected: int, noun: str = "tasks", **wanted: Any) -> dict[str, Any]:
        body = {"action": action, "filter": wanted, "expected": expected}
        reply = await self.send(who, "POST", f"/v1/{noun}/bulk", body)
        assert reply.status_code == 201, reply.text
        made: dict[str, Any] = reply.json()
        return made

    @asynccontextmanager
    async def working(self, registry: Registry, **config: Any) -> AsyncIterator[None]:
        stop = asyncio.Event()
        chosen = WorkerConfig(poll_every=timedelta(milliseconds=50), scratch=self.scratch, **config)
        running = asyncio.create_task(Worker(self.db, registry, self.tasks.followers, chosen).run(stop))
        try:
            yield
        finally:
            stop.set()
            await running

    async def finished(self, who: str, made: dict[str, Any]) -> dict[str, Any]:
        """Run a worker until it is done; gives how it went."""
        async with self.working(self.own), asyncio.timeout(60):
            while True:
                task = (await self.send(who, "GET", f"/v1/tasks/{made['task_id']}")).json()
                if task["status"] in ("SUCCEEDED", "FAILED", "CANCELED"):
                    assert task["status"] == "SUCCEEDED", task
                    found: dict[str, Any] = (await self.send(who, "GET", f"/v1/tasks/bulk/{made['task_id']}")).json()
                    return found
                await asyncio.sleep(0.02)

    async def statuses(self, task_ids: list[str]) -> set[str]:
        rows = await self.db.fetch_alone("SELECT DISTINCT status FROM headrace.tasks WHERE id = ANY ($1)", task_ids)
        return {row["status"] for row in rows}

    async def rows(self, sql: str, *args: object) -> list[Row]:
        return await self.db.fetch_alone(sql, *args)


@pytest.fixture
async def site(db: Database, tmp_path: Path) -> AsyncIterator[Site]:
    async with open_watch(db) as watch:
        opened = Site(db, httpx2.AsyncClient(), tmp_path)
        routers = [
            bulk_routes.create_router(opened.tasks),
            task_routes.create_router(opened.tasks, watch),
            schedule_routes.create_router(opened.tasks),
        ]
        async with db.transaction() as tx:
            await declare_types(tx, opened.registry)
            await declare_types(tx, opened.own)
        async with stand.client(create_app(stand.services(db), WebConfig(), routers=routers)) as client:
            opened.client = client
            yield opened


async def admin_of(db: Database) -> str:
    user_id = await stand.user(db, f"boss-{ids.new('req')[-6:]}")
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.users SET role = 'ADMIN' WHERE id = $1", user_id)
    return f"{user_id},{Role.ADMIN}"


async def test_cancels_all_that_match_and_nothing_else(site: Site, db: Database) -> None:
    ada, bob = await stand.user(db, "ada"), await stand.user(db, "bob")
    meant = await site.submit(ada, 620)  # more than a batch
    delayed = await site.submit(ada, 3, queue="other")
    foreign = await site.submit(bob, 5)
    count = (await site.send(ada, "GET", "/v1/tasks/count", params={"action": "cancel", "queue": "default"})).json()
    assert count == {"count": 620, "exact": True}
    assert (await site.send(ada, "GET", "/v1/tasks/count")).json()["count"] == 623
    made = await site.bulk(ada, "cancel", 620, queue="default")
    later = await site.submit(ada, 2)  # after it was asked for
    found = await site.finished(ada, made)
    assert (found["matched"], found["done"], found["refused"]) == (620, 620, 0)
    assert await site.statuses(meant) == {"CANCELED"}
    assert await site.statuses(delayed + foreign + later) == {"QUEUED"}
    assert not await site.rows("SELECT FROM headrace.task_queue WHERE task_id = ANY ($1)", meant)
    told = [row for row in await trail(db) if (row["data"] or {}).get("bulk") == made["task_id"]]
    assert [row["data"]["count"] for row in told] == ["620", "500", "120"]
    assert {row["user"]["uid"] for row in told} == {ada}


async def test_running_ones_are_told_to_stop_and_those_that_are_over_are_left(site: Site, db: Database) -> None:
    ada = await stand.user(db, "ada")
    running = await site.submit(ada, 4)
    async with site.working(site.registry), asyncio.timeout(60):
        while len(await site.rows("SELECT FROM headrace.task_queue WHERE worker IS NOT NULL")) < 4:
            await asyncio.sleep(0.02)
        found = await site.finished(ada, await site.bulk(ada, "cancel", 4, ids=running))
        assert found["done"] == 4
        while await site.statuses(running) != {"CANCELED"}:
            await asyncio.sleep(0.02)
    again = await site.finished(ada, await site.bulk(ada, "delete", 4, status=["CANCELED"], type="work"))
    assert again["done"] == 4
    assert (await site.send(ada, "GET", f"/v1/tasks/{running[0]}")).status_code == 404


async def test_failed_ones_are_tried_again_each_by_itself(site: Site, db: Database) -> None:
    ada = await stand.user(db, "ada")
    failed = await site.submit(ada, 3, "fail")
    async with site.working(site.registry), asyncio.timeout(60):
        while await site.statuses(failed) != {"FAILED"}:
            await asyncio.sleep(0.02)
    # A deletion that was stopped is no task like others: it does not go on with them.
    stopped = (await site.bulk(ada, "delete", 3))["task_id"]
    await site.send(ada, "POST", f"/v1/tasks/{stopped}/cancel")
    found = await site.finished(ada, await site.bulk(ada, "retry", 4, status=["FAILED", "CANCELED"]))
    assert (found["done"], found["skipped"], found["refused"]) == (3, 0, 1)
    assert await site.statuses(failed) == {"QUEUED"}
    assert await site.statuses([stopped]) == {"CANCELED"}


async def test_what_failed_again_meanwhile_is_not_tried_a_second_time(site: Site, db: Database) -> None:
    ada = await stand.user(db, "ada")
    failed = await site.submit(ada, 3, "fail")
    async with site.working(site.registry), asyncio.timeout(60):
        while await site.statuses(failed) != {"FAILED"}:
            await asyncio.sleep(0.02)
        made = await site.bulk(ada, "retry", 3, status=["FAILED"])
        assert (await site.send(ada, "POST", f"/v1/tasks/{failed[0]}/retry")).status_code == 200
        attempts = "SELECT attempt FROM headrace.tasks WHERE id = $1 AND status = 'FAILED'"
        while [row["attempt"] for row in await site.rows(attempts, failed[0])] != [2]:
            await asyncio.sleep(0.02)
    found = await site.finished(ada, made)
    assert (found["done"], found["skipped"], found["refused"]) == (2, 1, 0)
    assert await site.statuses(failed[:1]) == {"FAILED"}
    assert await site.statuses(failed[1:]) == {"QUEUED"}


async def test_more_than_was_shown_is_asked_again(site: Site, db: Database) -> None:
    ada = await stand.user(db, "ada")
    await site.submit(ada, 40)
    body = {"action": "cancel", "filter": {}, "expected": 20}
    refused = await site.send(ada, "POST", "/v1/tasks/bulk", body)
    assert (refused.status_code, refused.json()["code"], refused.json()["details"]["count"]) == (409, "count_grew", 40)
    assert not await site.rows("SELECT FROM headrace.bulk_actions")
    # a few that came meanwhile are no other question, and the same request again is no second action
    key = {"Idempotency-Key": "once"}
    first, second = [
        await site.send(ada, "POST", "/v1/tasks/bulk", {**body, "expected": 38}, headers=key) for _ in range(2)
    ]
    assert first.status_code == 201
    assert first.json() == second.json()
    assert len(await site.rows("SELECT FROM headrace.bulk_actions")) == 1
    wrong = await site.send(ada, "POST", "/v1/tasks/bulk", {**body, "filter": {"status": ["SUCCEEDED"]}})
    assert wrong.status_code == 422


async def test_each_reaches_only_their_own_and_administrators_everybodys(site: Site, db: Database) -> None:
    ada, bob, boss = await stand.user(db, "ada"), await stand.user(db, "bob"), await admin_of(db)
    hers, his = await site.submit(ada, 2), await site.submit(bob, 2)
    for owner in (bob, "*"):
        body = {"action": "cancel", "filter": {"owner": owner}, "expected": 9}
        assert (await site.send(ada, "POST", "/v1/tasks/bulk", body)).status_code == 403
        query = {"action": "cancel", "user_id": owner}
        assert (await site.send(ada, "GET", "/v1/tasks/count", params=query)).status_code == 403
    named = await site.finished(ada, await site.bulk(ada, "cancel", 4, ids=hers + his))
    assert (named["matched"], named["done"]) == (2, 2)  # the others are as good as not there
    assert await site.statuses(his) == {"QUEUED"}
    made = await site.bulk(boss, "cancel", 2, owner="*", type="work")
    assert (await site.send(ada, "GET", f"/v1/tasks/bulk/{made['task_id']}")).status_code == 404
    assert (await site.finished(boss, made))["done"] == 2
    listed = (await site.send(ada, "GET", "/v1/tasks/bulk")).json()["items"]
    assert [each["task_id"] for each in listed] == [named["task_id"]]


async def test_whoever_lost_the_right_meanwhile_does_nothing(site: Site, db: Database) -> None:
    ada, boss = await stand.user(db, "ada"), await admin_of(db)
    hers = await site.submit(ada, 2)
    made = await site.bulk(boss, "cancel", 2, owner=ada)
    await site.rows("UPDATE headrace.users SET role = 'USER' WHERE id = $1", boss.split(",")[0])
    forged = await site.send(ada, "POST", "/v1/tasks", {"type": "headrace.bulk"})
    assert forged.status_code in (400, 403)  # nobody submits it by hand
    async with site.working(site.own), asyncio.timeout(60):
        while await site.statuses([made["task_id"]]) != {"FAILED"}:
            await asyncio.sleep(0.02)
    assert await site.statuses(hers) == {"QUEUED"}


async def test_another_worker_goes_on_where_one_was_stopped(site: Site, db: Database) -> None:
    """It is canceled after its first batch, as a person would stop it; tried again, it does the rest."""
    ada = await stand.user(db, "ada")
    meant = await site.submit(ada, 1200)
    made = await site.bulk(ada, "cancel", 1200)
    async with db.transaction() as held, asyncio.timeout(60):
        # somebody else holds what comes in the second batch, so that it is met in the middle
        await held.fetch(
            "SELECT FROM headrace.task_queue WHERE task_id = ANY ($1) FOR UPDATE",
            [row["id"] for row in await site.rows(
                "SELECT id FROM headrace.tasks WHERE id = ANY ($1) ORDER BY created_at, id LIMIT 1", meant
            )],
        )  # fmt: skip
        async with site.working(site.own):
            while not (await site.rows("SELECT FROM headrace.bulk_actions WHERE done >= 1000")):
                await asyncio.sleep(0.02)
            await site.send(ada, "POST", f"/v1/tasks/{made['task_id']}/cancel")
            while await site.statuses([made["task_id"]]) != {"CANCELED"}:
                await asyncio.sleep(0.02)
    assert await site.statuses(meant) == {"CANCELED", "QUEUED"}
    assert (await site.send(ada, "POST", f"/v1/tasks/{made['task_id']}/retry")).status_code == 200
    found = await site.finished(ada, made)
    assert found["done"] == 1200
    assert await site.statuses(meant) == {"CANCELED"}


async def test_schedules_are_disabled_and_enabled_together(site: Site, db: Database) -> None:
    ada = await stand.user(db, "ada")
    for name in ("one", "two", "three"):
        body = {"name": name, "type": "work", "interval": 3600}
        assert (await site.send(ada, "POST", "/v1/schedules", body)).status_code == 201
    found = await site.finished(ada, await site.bulk(ada, "disable", 3, "schedules", name="t"))
    assert (found["matched"], found["done"]) == (2, 2)
    rows = await site.rows("SELECT name FROM headrace.scheduled_tasks WHERE user_id = $1 AND enabled", ada)
    assert [row["name"] for row in rows] == ["one"]
    assert (await site.finished(ada, await site.bulk(ada, "enable", 2, "schedules")))["done"] == 2


async def test_named_or_not_tasks_of_the_product_itself_are_left_out(db: Database) -> None:
    user_id = await stand.user(db, "ada")
    made = [
        (await db.fetch_alone(MADE, ids.new("tsk"), user_id, task_type))[0]["id"]
        for task_type in ("greet", "headrace.bulk")
    ]
    for named in (made, None):
        for internal, count in ((True, 2), (False, 1)):
            given = TaskFilterIn(ids=named, internal=internal)
            async with db.transaction(readonly=True) as tx:
                assert await count_tasks(tx, given, given.wanted(user_id, None), most=9) == Counted(count, exact=True)


async def test_tasks_whose_owners_units_are_locked_hold_up_nobody_elses_and_are_refused(
    site: Site, db: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them was waited for by itself, for up to eleven seconds, before the next batch began."""
    monkeypatch.setattr(execution, "_MAX_WAIT_FOR_UNITS_S", 0.3)

    @site.registry.task("render", units=1, submit="users")
    async def render(context: TaskContext, payload: Any) -> None: ...

    async with db.transaction() as tx:
        await declare_types(tx, site.registry)
    ada, bob, boss = await stand.user(db, "ada"), await stand.user(db, "bob"), await admin_of(db)
    for user in (ada, bob):
        await billing.grant_alone(db, user, 1000)
    async with db.transaction() as tx:
        hers = await site.tasks.submitter.submit_many(tx, [TaskSpec("render")] * 400, user_id=ada)
        his = await site.tasks.submitter.submit_many(tx, [TaskSpec("render")] * 200, user_id=bob)
    program = await asyncpg.connect(database_url)
    async with program.transaction():
        await program.execute("SELECT headrace.submit('render', '{}', user_id => $1, trusted => true)", ada)
        found = await site.finished(boss, await site.bulk(boss, "cancel", 600, type="render", owner="*"))
        assert (found["done"], found["refused"]) == (200, 400)
        assert {each["code"] for each in found["refusals"]} == {"rows_locked"}
        assert await site.statuses(his) == {"CANCELED"}
        assert await site.statuses(hers) == {"QUEUED"}
    await program.close()
    again = await site.finished(boss, await site.bulk(boss, "cancel", 401, type="render", owner="*"))
    assert (again["done"], again["refused"]) == (401, 0)
