"""The limit per key holds however a task comes in, and nobody evades it or uses up another's."""

import asyncio
import random
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

import asyncpg
import httpx2
import orjson
import pytest

from headrace import ids
from headrace.database import Database, Json, Tx
from headrace.tasks import live
from headrace.tasks.catalog import StoredCatalog, declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import PayloadInvalid, TaskSpecInvalid
from headrace.tasks.execution import BadTaskType
from headrace.tasks.limit_keys import is_rule, limit_key
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry, TaskType
from headrace.tasks.routes import create_router
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.tasks.why import Code
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand
from tests.tasks.conftest import Bench
from tests.tasks.people import have_labels, hire, take

ADA = "u_01h455vb4pex5vsknk084sn02q"


async def nothing(context: TaskContext, payload: Any) -> None: ...


# -- one rule in two languages


@dataclass
class Order:
    customer: object


class Size(StrEnum):
    LARGE = "large"


REFUSED = object()
KEYS: list[tuple[str, Any, object]] = [
    ("user", {"user": "eve"}, ADA),
    ("user", None, ADA),
    ("payload.a", {"a": "acme"}, "acme"),
    ("payload.a", {"a": " Ä\U0001f600 "}, " Ä\U0001f600 "),
    ("payload.a", {"a": "x" * 255}, "x" * 255),
    ("payload.a", {"a": "\U0001f600" * 255}, "\U0001f600" * 255),
    ("payload.a", {"a": "x" * 256}, REFUSED),
    ("payload.a.b-c._d", {"a": {"b-c": {"_d": 1}}}, "1"),
    ("payload.a", {"a": True}, "true"),
    ("payload.a", {"a": False}, "false"),
    ("payload.a", {"a": 0}, "0"),
    ("payload.a", {"a": -(2**63)}, "-9223372036854775808"),
    ("payload.a", {"a": 1.0}, "1"),
    ("payload.a", {"a": 1.5}, "1.5"),
    ("payload.a", {"a": -0.0}, "0"),
    ("payload.a", {"a": 1e23}, "1" + "0" * 23),
    ("payload.a", {"a": 1e-7}, "0.0000001"),
    ("payload.a", {"a": 1e254}, "1" + "0" * 254),
    ("payload.a", {"a": 1e255}, REFUSED),
    ("payload.a", {"a": 5e-324}, REFUSED),
    ("payload.a", {"a": float("nan")}, ""),
    ("payload.a", {"a": float("inf")}, ""),
    ("payload.a", {"a": None}, ""),
    ("payload.a", {"a": ""}, ""),
    ("payload.a", {"b": "acme"}, ""),
    ("payload.a", {}, ""),
    ("payload.a.b", {"a": "acme"}, ""),
    ("payload.a.b", {"a": None}, ""),
    ("payload.a.b", {"a": [{"b": 1}]}, ""),
    ("payload.a", [1, 2], ""),
    ("payload.a", "acme", ""),
    ("payload.a", 7, ""),
    ("payload.a", {"a": {}}, REFUSED),
    ("payload.a", {"a": []}, REFUSED),
    ("payload.a", {"a": ("x",)}, REFUSED),
    ("payload.customer", Order("acme"), "acme"),
    ("payload.a.customer", {"a": Order(3)}, "3"),
    ("payload.a", {"a": Order("acme")}, REFUSED),
    ("payload.a", {"a": Size.LARGE}, "large"),
    ("payload.a", {"a": date(2026, 3, 1)}, "2026-03-01"),
]


def in_python(rule: str, payload: Any) -> object:
    try:
        return limit_key("t", rule, None, payload=payload, user_id=ADA)
    except PayloadInvalid:
        return REFUSED


async def in_sql(tx: Tx, rule: str, payload: Any) -> object:
    try:
        async with tx.savepoint():
            key = await tx.fetchval("SELECT headrace.limit_key($1, $2, $3)", rule, Json(orjson.dumps(payload)), ADA)
    except asyncpg.PostgresError as refused:
        return REFUSED if refused.sqlstate == "HR004" else refused
    return "" if key is None else key


async def test_python_and_sql_find_the_same_key(tx: Tx) -> None:
    for rule, payload, key in KEYS:
        assert in_python(rule, payload) == key, (rule, payload)
        assert await in_sql(tx, rule, payload) == key, (rule, payload)


async def test_any_number_is_one_key_in_both(tx: Tx) -> None:
    bits = [struct.pack("Q", random.getrandbits(64)) for _ in range(300)]
    numbers = [struct.unpack("d", each)[0] for each in bits] + [random.uniform(-1e6, 1e6) for _ in range(300)]
    numbers = [each for each in numbers if in_python("payload.a", {"a": each}) is not REFUSED]
    assert len(numbers) > 300
    rows = await tx.fetch(
        "SELECT headrace.limit_key('payload.a', jsonb_build_object('a', n), '') AS key"
        " FROM jsonb_array_elements($1) WITH ORDINALITY AS given (n, position) ORDER BY position",
        Json(orjson.dumps(numbers)),
    )
    assert [row["key"] or "" for row in rows] == [in_python("payload.a", {"a": each}) for each in numbers]


async def test_a_number_has_one_key_however_it_is_written(tx: Tx) -> None:
    for written in ("100", "100.0", "100.000", "1e2", "1.0E+2"):
        assert await tx.fetchval(f"SELECT headrace.limit_key('payload.a', '{{\"a\": {written}}}', '')") == "100"
        assert in_python("payload.a", orjson.loads(f'{{"a": {written}}}')) == "100"


GOOD = ["user", "payload.a", "payload.a.b.c", "payload._a-1", "payload.A9", "payload." + "x" * 247]
BAD = [
    "", "users", "USER", "user.id", "payload", "payload.", "payload..a", "payload.a.", "payload.0", "payload.a.0b",
    "payload.a b", "payload.ä", "payload.a\n", "payload.$", "a", ".a", " payload.a", "payload.-a",
]  # fmt: skip


async def test_python_and_the_table_take_the_same_rules(tx: Tx) -> None:
    for number, rule in enumerate([*GOOD, *BAD]):
        try:
            async with tx.savepoint():
                await tx.execute(
                    "INSERT INTO headrace.task_types (name, queue, priority, max_attempts, emits_events, limit_key)"
                    " VALUES ($1, 'default', 0, 1, true, $2)",
                    f"t{number}",
                    rule,
                )
            taken = True
        except asyncpg.CheckViolationError:
            taken = False
        assert (taken, is_rule(rule)) == (rule in GOOD, rule in GOOD), rule


@pytest.mark.parametrize(
    "rule",
    [*BAD, "payload." + "x" * 248, 7, lambda payload, _: payload["key"]],
    ids=lambda rule: str(rule)[:20] if isinstance(rule, str) else type(rule).__name__,
)
def test_a_bad_rule_is_refused_when_it_is_declared(rule: Any) -> None:
    with pytest.raises(BadTaskType, match=r'is no limit_key for t: it is "user", or "payload\.FIELD"'):
        Registry().task("t", limit_key=rule)(nothing)
    with pytest.raises(BadTaskType):
        Registry().add(TaskType("t", nothing, "async", limit_key=rule))


# -- the same key, whichever way a task comes in


@pytest.fixture
async def limited(bench: Bench) -> Bench:
    """Types with a limit of one: for each user, for each customer, for each key that is given."""
    bench.registry.task("by.user", max_running_per_key=1, limit_key="user")(nothing)
    bench.registry.task("by.customer", max_running_per_key=1, limit_key="payload.customer.id")(nothing)
    bench.registry.task("by.given", max_running_per_key=1)(nothing)
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    return bench


@pytest.fixture
async def people(limited: Bench) -> AsyncIterator[dict[str, httpx2.AsyncClient]]:
    """Clients of an API that has none of the types' code."""
    catalog = StoredCatalog()
    async with live.open_watch(limited.db) as watch, AsyncExitStack() as stack:
        router = create_router(Tasks(Submitter(catalog, limited.followers), catalog, limited.followers), watch)
        app = create_app(stand.services(limited.db), WebConfig(), routers=[router])
        yield {
            name: await stack.enter_async_context(
                stand.client(app, Authorization=f"Bearer {await limited.user(name)}{',ADMIN' * (name == 'root')}")
            )
            for name in ("ada", "eve", "root")
        }


def id_of(client: httpx2.AsyncClient) -> str:
    return client.headers["Authorization"].removeprefix("Bearer ").partition(",")[0]


async def post(client: httpx2.AsyncClient, name: str, payload: Any = None, **body: Any) -> str:
    reply = await client.post("/v1/tasks", json={"type": name, "payload": payload or {}, **body})
    assert reply.status_code == 201, reply.text
    task_id: str = reply.json()["id"]
    return task_id


async def taken(bench: Bench) -> set[str]:
    """What a worker with many free hands gets."""
    return {claimed.task_id for claimed in await take(bench, await hire(bench))}


async def keys(db: Database, *task_ids: str) -> list[str | None]:
    rows = await db.fetch_alone(
        "SELECT task.limit_key, lane.limit_key AS counted"
        " FROM unnest($1::text[]) WITH ORDINALITY AS given (id, position)"
        " JOIN headrace.tasks AS task ON task.id = given.id"
        " JOIN headrace.task_queue AS q ON q.seq = task.queue_seq"
        " JOIN headrace.task_lanes AS lane ON lane.id = q.lane_id"
        " ORDER BY position",
        list(task_ids),
    )
    assert [row["limit_key"] or "" for row in rows] == [row["counted"] for row in rows]
    return [row["limit_key"] for row in rows]


@pytest.mark.parametrize(
    ("name", "payload", "key"),
    [
        ("by.user", {}, "{user}"),
        ("by.customer", {"customer": {"id": 7}}, "7"),
        ("by.customer", {"customer": {"id": "acme"}}, "acme"),
        ("by.customer", {}, None),
    ],
)
async def test_every_way_in_gives_the_same_key(
    limited: Bench, people: dict[str, httpx2.AsyncClient], name: str, payload: Any, key: str | None
) -> None:
    ada = id_of(people["ada"])
    spec = TaskSpec(name, payload)
    stored = Submitter(StoredCatalog(), limited.followers)
    made = [
        await post(people["ada"], name, payload),
        await limited.submit(name, payload, user_id=ada),
        *await limited.submitter.submit_now(limited.db, [spec], user_id=ada),
        *await limited.submitter.submit_now(limited.db, [spec], user_id=ada),  # by what is remembered
        *await stored.submit_now(limited.db, [spec], user_id=ada),
    ]
    [row] = await limited.db.fetch_alone("SELECT headrace.submit($1, $2, user_id => $3) AS id", name, payload, ada)
    batch = await people["ada"].post("/v1/tasks/batch", json={"tasks": [{"type": name, "payload": payload}]})
    made += [row["id"], *batch.json()["ids"]]
    assert await keys(limited.db, *made) == [None if key is None else key.format(user=ada)] * 7
    assert len(await taken(limited)) == (7 if key is None else 1)


async def test_a_limit_holds_for_tasks_over_rest_and_users_do_not_share_it(
    limited: Bench, people: dict[str, httpx2.AsyncClient]
) -> None:
    for _ in range(3):
        await post(people["ada"], "by.user")
    eves = await post(people["eve"], "by.user")
    got = await taken(limited)
    assert (len(got), eves in got) == (2, True)
    assert await taken(limited) == set()


@pytest.mark.parametrize("name", ["by.user", "by.customer"])
async def test_nobody_evades_a_limit_by_a_key_of_their_own(
    limited: Bench, people: dict[str, httpx2.AsyncClient], name: str
) -> None:
    said = f"limit_key must be left out for {name}: the type takes it from"
    for who in ("ada", "root"):
        reply = await people[who].post("/v1/tasks", json={"type": name, "limit_key": "random"})
        assert (reply.status_code, reply.json()["code"]) == (400, "task_invalid")
        assert said in reply.json()["detail"]
    with pytest.raises(TaskSpecInvalid, match=said):
        await limited.submit(name, limit_key="random")
    with pytest.raises(asyncpg.PostgresError, match=said) as refused:
        await limited.db.fetch_alone("SELECT headrace.submit($1, limit_key => 'random')", name)
    assert refused.value.sqlstate == "HR005"
    assert await taken(limited) == set()


async def test_nobody_uses_up_the_slots_of_somebody_elses_key(
    limited: Bench, people: dict[str, httpx2.AsyncClient]
) -> None:
    eve, ada = id_of(people["eve"]), id_of(people["ada"])
    held = await post(people["eve"], "by.given", limit_key="k")
    tricky = await post(people["eve"], "by.given", limit_key=f"{ada}/k")
    assert await taken(limited) == {held, tricky}
    first, second = [await post(people["ada"], "by.given", limit_key="k") for _ in range(2)]
    assert await keys(limited.db, held, tricky, first) == [f"{eve}/k", f"{eve}/{ada}/k", f"{ada}/k"]
    assert len(await taken(limited) & {first, second}) == 1


async def test_administrators_and_programs_share_keys_over_users(
    limited: Bench, people: dict[str, httpx2.AsyncClient]
) -> None:
    made = [
        await post(people["root"], "by.given", limit_key="k"),
        await limited.submit("by.given", user_id=id_of(people["ada"]), limit_key="k"),
    ]
    assert await keys(limited.db, *made) == ["k", "k"]
    assert len(await taken(limited)) == 1


async def test_a_field_that_cannot_be_a_key_is_named(limited: Bench, people: dict[str, httpx2.AsyncClient]) -> None:
    for bad in ({"a": 1}, "x" * 256):
        payload = {"customer": {"id": bad}}
        reply = await people["ada"].post("/v1/tasks", json={"type": "by.customer", "payload": payload})
        assert (reply.status_code, reply.json()["code"]) == (400, "payload_invalid")
        assert "customer.id is the key of a limit" in reply.json()["detail"]
        with pytest.raises(asyncpg.PostgresError, match=r"customer\.id is the key of a limit") as refused:
            await limited.db.fetch_alone("SELECT headrace.submit('by.customer', $1)", payload)
        assert refused.value.sqlstate == "HR004"


async def test_everybody_is_told_what_the_key_is(limited: Bench, people: dict[str, httpx2.AsyncClient]) -> None:
    types = (await people["ada"].get("/v1/task-types")).json()["items"]
    assert {each["name"]: each["limit_key"] for each in types} == {
        "by.customer": "payload.customer.id",
        "by.given": None,
        "by.user": "user",
    }
    await post(people["ada"], "by.customer", {"customer": {"id": 7}})
    assert len(await taken(limited)) == 1
    waits = await post(people["ada"], "by.customer", {"customer": {"id": 7}})
    reasons = (await people["ada"].get(f"/v1/tasks/{waits}/why")).json()["reasons"]
    assert [(each["code"], each["facts"]["scope"], each["facts"]["name"]) for each in reasons] == [
        (Code.LIMIT_REACHED, "key", "7")
    ]


async def test_a_repetition_is_one_task_though_it_comes_by_another_way(limited: Bench) -> None:  # D-06
    ada = await limited.user("ada")
    payload = {"customer": {"id": 7}}
    [row] = await limited.db.fetch_alone(
        "SELECT headrace.submit('by.customer', $1, user_id => $2, idempotency_key => 'k') AS id", payload, ada
    )
    assert await limited.submit("by.customer", payload, user_id=ada, idempotency_key="k") == row["id"]


async def test_a_changed_rule_counts_for_what_is_submitted_from_then_on(limited: Bench) -> None:
    before = await limited.submit("by.user")
    changed = Registry()
    changed.task("by.user", max_running_per_key=1, limit_key="payload.customer")(nothing)
    async with limited.db.transaction() as tx:
        await declare_types(tx, changed)
    [row] = await limited.db.fetch_alone("""SELECT headrace.submit('by.user', '{"customer": "acme"}') AS id""")
    assert await keys(limited.db, before, row["id"]) == [ids.SYSTEM_USER, "acme"]


# -- labels, too, have one rule


LABELS = [
    {"gpu": "a100"}, {"a.b/c-d_e": "1"}, {"0": "0"}, {"x" * 63: "y" * 63},
    {".gpu": "a"}, {"-gpu": "a"}, {"_gpu": "a"}, {"/gpu": "a"}, {"gpu": ".a"}, {"gpu": "-a"}, {"gpu": "_"}, {"": "a"},
    {"gpu": ""}, {"x" * 64: "a"}, {"gpu": "y" * 64}, {"g pu": "a"}, {"gpu": "a\n"}, {"ü": "a"}, {"gpu": "ü"},
]  # fmt: skip


async def test_python_sql_and_rest_take_the_same_labels(limited: Bench, people: dict[str, httpx2.AsyncClient]) -> None:
    async def by_sql(labels: dict[str, str]) -> None:
        await limited.db.fetch_alone("SELECT headrace.submit('by.given', labels => $1)", labels)

    async def is_taken(labels: dict[str, str]) -> list[bool]:
        reply = await people["ada"].post("/v1/tasks", json={"type": "by.given", "labels": labels})
        tried = await asyncio.gather(limited.submit("by.given", labels=labels), by_sql(labels), return_exceptions=True)
        for outcome in tried:
            assert isinstance(outcome, str | None | TaskSpecInvalid) or getattr(outcome, "sqlstate", "") == "HR005"
        return [reply.status_code == 201, *(not isinstance(outcome, Exception) for outcome in tried)]

    for labels in LABELS[:4]:  # users may name only labels of workers
        await have_labels(limited.db, **labels)
    assert [await is_taken(labels) for labels in LABELS] == [[True] * 3] * 4 + [[False] * 3] * (len(LABELS) - 4)
