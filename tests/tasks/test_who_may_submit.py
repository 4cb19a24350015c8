"""Who may submit which type, by every way to submit; and what users may ask for at the most."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import httpx2
import pytest
from fastapi import FastAPI

from headrace.access import ScopeMissing
from headrace.database import Database
from headrace.library.program import Headrace
from headrace.schedules.loop import Scheduler
from headrace.schedules.routes import create_router as schedule_routes
from headrace.tasks import live
from headrace.tasks.caps import Caps
from headrace.tasks.catalog import StoredCatalog, declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import TypeDenied, UnknownTaskType
from headrace.tasks.execution import BadTaskType
from headrace.tasks.followers import Followers
from headrace.tasks.registry import Registry
from headrace.tasks.routes import create_router
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand

ADMINS, USERS, SCOPED = "closed.report", "open.report", "finance.report"
ALL = {ADMINS, USERS, SCOPED}
CAPS = Caps(open_tasks=100, schedules=20)


def registry_of(**changes: str) -> Registry:
    registry = Registry()

    async def nothing(context: TaskContext, payload: dict[str, Any]) -> None: ...

    registry.task(ADMINS)(nothing)  # as if nobody had thought of it
    registry.task(USERS, submit=changes.get(USERS, "users"), queue="declared", priority=5)(nothing)
    registry.task(SCOPED, submit="tasks:submit:finance")(nothing)
    return registry


@pytest.fixture
async def people(db: Database) -> Mapping[str, str]:
    async with db.transaction() as tx:
        await declare_types(tx, registry_of())
    ada, root = await stand.user(db, "ada"), await stand.user(db, "root")
    await db.fetch_alone("UPDATE headrace.users SET role = 'ADMIN' WHERE id = $1", root)
    return {"ada": ada, "root": root}


@pytest.fixture
async def app(db: Database, people: Mapping[str, str]) -> AsyncIterator[FastAPI]:
    catalog = StoredCatalog()
    ours = Tasks(Submitter(catalog, Followers()), catalog, Followers(), CAPS)
    async with live.open_watch(db) as watch:
        routers = [create_router(ours, watch), schedule_routes(ours)]
        yield create_app(stand.services(db), WebConfig(), routers=routers)


# Who calls over REST (a name, and of an API key what it was given), and what they may submit as tasks and as schedules.
CALLERS: list[tuple[str, set[str], set[str]]] = [
    ("", set(), set()),
    ("ada", {USERS, SCOPED}, {USERS, SCOPED}),
    ("root,ADMIN", ALL, ALL),
    ("ada,tasks:write", {USERS}, set()),
    ("ada,tasks:write,schedules:write", {USERS}, {USERS}),
    ("ada,schedules:write", set(), {USERS}),
    ("ada,tasks:read,schedules:read", set(), set()),
    (f"ada,tasks:submit:{USERS}", {USERS}, set()),
    (f"ada,tasks:submit:{USERS},schedules:write", {USERS}, {USERS}),
    ("ada,tasks:submit:open.*,schedules:write", {USERS}, {USERS}),
    ("ada,tasks:submit:other.*,schedules:write", set(), set()),
    ("ada,tasks:submit:finance,schedules:write", {SCOPED}, {SCOPED}),
    (f"ada,tasks:submit:{SCOPED},schedules:write", {SCOPED}, {SCOPED}),
    (f"ada,tasks:submit:{ADMINS},schedules:write", set(), set()),
    ("ada,tasks:write,tasks:submit:finance,schedules:write", {USERS, SCOPED}, {USERS, SCOPED}),
    ("root,ADMIN,tasks:write,schedules:write", {USERS}, {USERS}),  # a key without the scope admin is a user's
    ("root,ADMIN,admin,tasks:write,schedules:write", ALL, ALL),
    (f"root,ADMIN,admin,tasks:submit:{USERS},schedules:write", {USERS}, {USERS}),  # held to what it names
    ("root,ADMIN,admin,tasks:read", set(), set()),
]


async def test_over_rest_everybody_submits_what_is_for_them(
    app: FastAPI, people: Mapping[str, str], subtests: pytest.Subtests
) -> None:
    for number, (caller, tasks, schedules) in enumerate(CALLERS):
        name, _, rest = caller.partition(",")
        bearer = f"{people[name]},{rest}" if name else "nobody"
        async with stand.client(app, Authorization=f"Bearer {bearer}") as client:
            for kind in sorted(ALL):
                plan = {"name": f"{number} {kind}", "type": kind, "interval": 60}
                bodies = {
                    "/v1/tasks": ({"type": kind}, kind in tasks),
                    "/v1/tasks/batch": ({"tasks": [{"type": kind}, {"type": kind}]}, kind in tasks),
                    "/v1/schedules": (plan, kind in schedules),
                }
                for path, (body, allowed) in bodies.items():
                    with subtests.test(caller=caller or "nobody", type=kind, path=path):
                        reply = await client.post(path, json=body)
                        assert reply.status_code == (201 if allowed else 403 if name else 401), reply.text
                        if not allowed and name:
                            assert reply.json()["code"] in {TypeDenied.code, ScopeMissing.code}


Submit = Callable[..., Awaitable[object]]


async def test_programs_submit_everything_and_for_a_user_what_is_for_them(
    database_url: str, db: Database, people: Mapping[str, str], subtests: pytest.Subtests
) -> None:
    # In whose name, and what may be submitted so. A program that is trusted may submit anything for anybody.
    named: list[tuple[dict[str, Any], set[str]]] = [
        ({}, ALL),
        ({"user_id": people["root"]}, ALL),
        ({"user_id": people["ada"]}, {USERS, SCOPED}),
        ({"user_id": people["ada"], "trusted": True}, ALL),
    ]
    connection = await asyncpg.connect(database_url)
    async with Headrace(database_url, registry_of()) as own, Headrace(database_url) as foreign:

        async def in_sql(kind: str, **how: Any) -> object:
            arguments = "".join(f", {name} => ${number}" for number, name in enumerate(how, start=2))
            return await db.fetch_alone(f"SELECT headrace.submit($1{arguments})", kind, *how.values())

        ways: dict[str, Submit] = {
            "Headrace": own.submit,
            "Headrace, types of others": foreign.submit,
            "Headrace, own transaction": lambda kind, **how: own.submit(kind, connection=connection, **how),
            "SQL": in_sql,
        }
        for way, submit in ways.items():
            for how, allowed in named:
                for kind in sorted(ALL):
                    with subtests.test(way=way, type=kind, **how):
                        if kind in allowed:
                            await submit(kind, **how)
                            continue
                        with pytest.raises(
                            (TypeDenied, asyncpg.PostgresError), match="administrators alone"
                        ) as refused:
                            await submit(kind, **how)
                        assert getattr(refused.value, "sqlstate", "HR008") == "HR008"
    await connection.close()


async def test_who_may_submit_an_undeclared_type_is_unknown(database_url: str, people: Mapping[str, str]) -> None:
    async with Headrace(database_url) as hr:
        with pytest.raises(UnknownTaskType, match="No worker has ever registered the task type late"):
            await hr.submit("late")
        await hr.submit("late", unknown_type="wait")
        with pytest.raises(TypeDenied, match="is not declared yet"):
            await hr.submit("late", unknown_type="wait", user_id=people["ada"])
        await hr.submit("late", unknown_type="wait", user_id=people["ada"], trusted=True)


async def test_a_schedule_runs_with_the_rights_that_its_owner_has_then(
    app: FastAPI, db: Database, people: Mapping[str, str]
) -> None:
    async with stand.client(app, Authorization=f"Bearer {people['ada']}") as ada:
        made = await ada.post("/v1/schedules", json={"name": "mine", "type": USERS, "interval": 60})
        async with db.transaction() as tx:
            await declare_types(tx, registry_of(**{USERS: "admins"}))
        scheduler = Scheduler(db, Submitter(StoredCatalog(), Followers()))
        await scheduler.run_once(now=datetime.now(UTC) + timedelta(seconds=90))
        [run] = (await ada.get("/v1/executions", params={"schedule_id": made.json()["id"]})).json()["items"][:1]
        assert (run["status"], "administrators alone" in run["error_message"]) == ("FAILED", True)
        assert await db.fetch_alone("SELECT FROM headrace.tasks") == []


OVER: list[tuple[dict[str, Any], str, str | None]] = [
    ({"priority": 6}, "over_cap", "priority"),  # the type's own is 5
    ({"max_attempts": 11}, "over_cap", "max_attempts"),
    ({"timeout_seconds": 86_401}, "over_cap", "timeout"),
    ({"run_at": "2999-01-01T00:00:00Z"}, "over_cap", "delay"),
    ({"payload": {"x": "y" * 66_000}}, "over_cap", "payload_bytes"),
    ({"queue": "made.up"}, "queue_undeclared", None),
    ({"queue": "headrace"}, "queue_undeclared", None),  # the product's own
]
WITHIN: dict[str, Any] = {
    "priority": 5,
    "max_attempts": 10,
    "timeout_seconds": 86_400,
    "run_at": "2020-01-01T00:00:00Z",
    "payload": {"x": "y" * 60_000},
    "queue": "declared",
}


async def test_users_are_held_to_caps_and_administrators_are_not(
    app: FastAPI, db: Database, people: Mapping[str, str], subtests: pytest.Subtests
) -> None:
    await db.fetch_alone("INSERT INTO headrace.task_types (name, queue) VALUES ('headrace.own', 'headrace')")
    async with (
        stand.client(app, Authorization=f"Bearer {people['ada']}") as ada,
        stand.client(app, Authorization=f"Bearer {people['root']},ADMIN") as root,
    ):
        assert (await ada.post("/v1/tasks", json={"type": USERS, **WITHIN})).status_code == 201
        for body, code, cap in OVER:
            with subtests.test(**{name: str(value)[:30] for name, value in body.items()}):
                reply = await ada.post("/v1/tasks", json={"type": USERS, **body})
                assert (reply.json()["code"], reply.json()["details"].get("cap")) == (code, cap), reply.text
                batch = {"tasks": [{"type": USERS}, {"type": USERS, **body}]}
                assert (await ada.post("/v1/tasks/batch", json=batch)).json()["details"]["index"] == 1
                assert (await root.post("/v1/tasks", json={"type": USERS, **body})).status_code == 201
        await _fill(ada)
        for name, change in {"priority": 6, "max_retries": 10, "max_duration_seconds": 86_401, "interval": 59}.items():
            with subtests.test(schedule=name):
                plan = {"name": f"by {name}", "type": USERS, "interval": 60, name: change}
                reply = await ada.post("/v1/schedules", json=plan)
                assert "cap" in reply.json()["details"], reply.text
                assert (await root.post("/v1/schedules", json=plan)).status_code == 201


async def _fill(ada: httpx2.AsyncClient) -> None:
    """Have as many open tasks and schedules as users may, and no more."""
    left = CAPS.open_tasks - len((await ada.get("/v1/tasks", params={"limit": 100})).json()["items"])
    batch = [{"type": USERS}] * (left + 1)
    reply = await ada.post("/v1/tasks/batch", json={"tasks": batch})
    assert (reply.status_code, reply.json()["code"]) == (429, "too_many_open_tasks")
    assert (await ada.post("/v1/tasks/batch", json={"tasks": batch[:left]})).status_code == 201
    assert (await ada.post("/v1/tasks", json={"type": USERS})).json()["details"]["cap"] == "open_tasks"
    # Nor by canceling one, submitting another in its place, and trying the first again.
    canceled = (await ada.get("/v1/tasks", params={"limit": 1})).json()["items"][0]["id"]
    assert (await ada.post(f"/v1/tasks/{canceled}/cancel")).status_code == 200
    assert (await ada.post("/v1/tasks", json={"type": USERS})).status_code == 201
    again = await ada.post(f"/v1/tasks/{canceled}/retry")
    assert (again.status_code, again.json()["code"]) == (429, "too_many_open_tasks")
    replies = [
        await ada.post("/v1/schedules", json={"name": f"{number}", "type": USERS, "interval": 60})
        for number in range(CAPS.schedules + 1)
    ]
    assert {reply.status_code for reply in replies[:-1]} == {201}
    assert (replies[-1].status_code, replies[-1].json()["code"]) == (429, "too_many_schedules")


@pytest.mark.parametrize("submit", ["everybody", "", "tasks:write", "tasks:submit:", "tasks:submit:a b", None, 1])
def test_a_type_says_it_in_words_that_are_known(submit: Any) -> None:
    with pytest.raises(BadTaskType, match='it is "admins", "users", or a scope'):
        Registry().task("t", submit=submit)(nothing)


async def nothing(context: Any, payload: Any) -> None: ...
