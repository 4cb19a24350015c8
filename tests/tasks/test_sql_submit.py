"""``headrace.submit``: a program in any language submits in its own transaction. D-02, D-06."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import orjson
import pytest

from headrace import ids
from headrace.database import Database, Row
from headrace.embedded import binaries
from headrace.errors import HeadraceError
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.registry import Registry
from tests.conftest import TestServer
from tests.tasks.conftest import Bench

pytestmark = pytest.mark.both

ALL = """
SELECT headrace.submit($1, $2, user_id => $3, title => $4, queue => $5, priority => $6, run_at => $7,
  max_attempts => $8, timeout_seconds => $9, limit_key => $10, labels => $11, trace_id => $12,
  idempotency_key => $13, schedule_uid => $14)
"""


async def submit(db: Database, name: str = "report.build", payload: Any = None, **options: Any) -> str:
    """Call it with named arguments, as a program would."""
    named = "".join(f", {option} => ${number}" for number, option in enumerate(options, start=3))
    [row] = await db.fetch_alone(
        f"SELECT headrace.submit($1, $2{named}) AS id", name, {} if payload is None else payload, *options.values()
    )
    task_id: str = row["id"]
    return task_id


async def row_of(db: Database, table: str, task_id: str) -> Row:
    column = "id" if table == "tasks" else "task_id"
    [row] = await db.fetch_alone(f"SELECT * FROM headrace.{table} WHERE {column} = $1", task_id)
    return row


async def count(db: Database, table: str) -> int:
    [row] = await db.fetch_alone(f"SELECT count(*) AS many FROM headrace.{table}")
    many: int = row["many"]
    return many


@asynccontextmanager
async def caller(url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A program of somebody's own, with a plain connection."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


# -- what is written


async def test_the_least_call_takes_every_default(db: Database) -> None:
    [row] = await db.fetch_alone("SELECT headrace.submit('report.build') AS id")
    task = await row_of(db, "tasks", ids.check(row["id"], "tsk"))
    expected = {
        "user_id": ids.SYSTEM_USER,
        "task_type": "report.build",
        "title": "report.build",
        "payload": {},
        "status": "QUEUED",
        "priority": 0,
        "queue": "default",
        "max_attempts": 3,
        "timeout_seconds": None,
        "labels": None,
        "limit_key": None,
        "attempt": 0,
    }
    assert {name: task[name] for name in expected} == expected
    assert task["run_at"] == task["queued_at"] == task["created_at"]
    assert abs(ids.time_of(task["id"]) - task["created_at"]) < timedelta(minutes=1)


async def test_every_option_arrives(db: Database) -> None:
    later = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    [row] = await db.fetch_alone(
        ALL, "report.build", {"n": 1}, ids.SYSTEM_USER, "Q3", "slow", 7, later, 1, 90, "acme", {"gpu": "yes"}, "t-1",
        "k-1", "nightly",
    )  # fmt: skip
    task, place = await row_of(db, "tasks", row[0]), await row_of(db, "task_queue", row[0])
    expected = {
        "title": "Q3",
        "payload": {"n": 1},
        "queue": "slow",
        "priority": 7,
        "run_at": later,
        "max_attempts": 1,
        "timeout_seconds": 90,
        "limit_key": "acme",
        "labels": {"gpu": "yes"},
        "trace_id": "t-1",
        "schedule_uid": "nightly",
        "queue_seq": place["seq"],
    }
    assert {name: task[name] for name in expected} == expected
    assert (place["run_at"], place["precedence"], place["worker"]) == (later, -7, None)
    [lane] = await db.fetch_alone("SELECT * FROM headrace.task_lanes WHERE id = $1", place["lane_id"])
    assert (lane["queue"], lane["task_type"], lane["user_id"]) == ("slow", "report.build", ids.SYSTEM_USER)
    assert (lane["limit_key"], lane["labels"], lane["only_once"]) == ("acme", {"gpu": "yes"}, True)


async def test_a_registered_type_decides_what_the_call_leaves_out(db: Database) -> None:
    registry = Registry()
    registry.task(
        "report.build", queue="reports", priority=5, max_attempts=9, timeout=timedelta(minutes=2), events=False
    )(_nothing)
    async with db.transaction() as tx:
        await declare_types(tx, registry)
    task = await row_of(db, "tasks", await submit(db))
    assert (task["queue"], task["priority"], task["max_attempts"], task["timeout_seconds"]) == ("reports", 5, 9, 120)
    assert await count(db, "outbox_events") == 0
    other = await row_of(db, "tasks", await submit(db, queue="other", max_attempts=1))
    assert (other["queue"], other["priority"], other["max_attempts"]) == ("other", 5, 1)


async def test_the_event_is_the_same_that_programs_write(bench: Bench) -> None:
    from headrace.tasks.events import OutboxFollower
    from headrace.tasks.followers import Followers

    bench.followers = Followers({"outbox": OutboxFollower()})
    bench.registry.task("report.build")(_nothing)
    await submit(bench.db, trace_id="t-1")
    await bench.submit("report.build", trace_id="t-1")
    rows = await bench.db.fetch_alone(
        "SELECT event_type, event_version, aggregate_type, trace_id, status,"
        " payload_json - '{task_id,run_at,created_at}'::text[] AS payload FROM headrace.outbox_events ORDER BY id"
    )
    assert len(rows) == 2
    assert dict(rows[0]) == dict(rows[1])


async def test_a_worker_runs_what_sql_submitted(bench: Bench) -> None:
    @bench.registry.task("greet")
    async def greet(context: TaskContext, payload: dict[str, str]) -> str:
        return f"hello {payload['name']}"

    early = await submit(bench.db, "greet", {"name": "Ada"})  # before the type is known to anyone
    async with bench.working(listen=True, poll_every=timedelta(seconds=30)):
        await bench.over(early)
        await _until_asleep(bench.db)
        late = await submit(bench.db, "greet", {"name": "Grace"})
        rows = await bench.over(early, late, seconds=5)  # only a wake-up can be this quick
    assert [row["result"] for row in rows] == ["hello Ada", "hello Grace"]


async def test_nobody_is_woken_when_nobody_sleeps(db: Database, database_url: str) -> None:
    async with caller(database_url) as listener:
        heard: list[str] = []
        await listener.add_listener("headrace_tasks", lambda *note: heard.append(str(note)))
        await submit(db)
        await listener.execute("SELECT 1")
        assert heard == []


# -- one key, one task


async def test_one_key_gives_one_task(db: Database) -> None:
    first = await submit(db, payload={"a": 1, "b": 2}, idempotency_key="k")
    again = await submit(db, payload={"b": 2, "a": 1}, idempotency_key="k", trace_id="another try")
    assert first == again
    assert (await count(db, "tasks"), await count(db, "task_queue"), await count(db, "outbox_events")) == (1, 1, 1)


@pytest.mark.parametrize(
    "other",
    [{"payload": {"n": 2}}, {"name": "other.type"}, {"priority": 1}, {"title": "t"}, {"labels": {"a": "b"}}],
    ids=lambda other: str(*other),
)
async def test_the_same_key_for_another_task_is_refused(db: Database, other: dict[str, Any]) -> None:
    await submit(db, payload={"n": 1}, idempotency_key="k")
    with pytest.raises(asyncpg.PostgresError, match="the idempotency key 'k' was used for another task") as refused:
        await submit(db, **{"payload": {"n": 1}, "idempotency_key": "k", **other})
    assert refused.value.sqlstate == "HR002"
    assert "fresh key" in str(refused.value.hint)
    assert await count(db, "tasks") == 1


async def test_a_key_is_its_users_own(bench: Bench) -> None:
    ada, grace = await bench.user("ada"), await bench.user("grace")
    made = {await submit(bench.db, idempotency_key="k", user_id=user) for user in (ada, grace, ada)}
    assert len(made) == 2


async def test_an_expired_key_is_as_good_as_none(db: Database) -> None:
    first = await submit(db, idempotency_key="k")
    await db.fetch_alone("UPDATE headrace.idempotency_keys SET expires_at = now() - interval '1 s'")
    assert await submit(db, payload={"other": True}, idempotency_key="k") != first


async def test_a_changed_default_does_not_make_it_another_task(db: Database) -> None:
    first = await submit(db, idempotency_key="k")
    registry = Registry()
    registry.task("report.build", priority=3, queue="new")(_nothing)
    async with db.transaction() as tx:
        await declare_types(tx, registry)
    assert await submit(db, idempotency_key="k") == first


async def test_one_key_gives_one_task_under_load(db: Database) -> None:
    made = await asyncio.gather(*(submit(db, idempotency_key="k") for _ in range(40)))
    assert len(set(made)) == 1
    assert (await count(db, "tasks"), await count(db, "outbox_events")) == (1, 1)


async def test_whoever_waits_for_a_key_goes_first_when_the_first_is_rolled_back(
    database_url: str, db: Database
) -> None:
    async with caller(database_url) as first, caller(database_url) as second:
        transaction = first.transaction()
        await transaction.start()
        given_up = await first.fetchval("SELECT headrace.submit('a', idempotency_key => 'k')")
        waiting = asyncio.create_task(second.fetchval("SELECT headrace.submit('a', idempotency_key => 'k')"))
        await _until_waiting(db)
        await transaction.rollback()
        made = await waiting
    assert made != given_up
    assert [row["id"] for row in await db.fetch_alone("SELECT id FROM headrace.tasks")] == [made]


async def test_it_goes_with_the_callers_transaction(database_url: str, db: Database) -> None:
    async with caller(database_url) as program:
        with suppress(ZeroDivisionError):
            async with program.transaction():
                await program.fetchval("SELECT headrace.submit('a', idempotency_key => 'k')")
                raise ZeroDivisionError
        for table in ("tasks", "task_queue", "task_lanes", "outbox_events", "idempotency_keys"):
            assert await count(db, table) == 0
        async with program.transaction():
            await program.fetchval("SELECT headrace.submit('a', idempotency_key => 'k')")
    assert await count(db, "tasks") == 1


# -- what is refused


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"payload": {"x": "y" * 300_000}}, "HR003", "the payload has 300009 bytes and may have 262144"),
    ({"payload": orjson.loads("[" * 101 + "]" * 101)}, "HR004", "nested deeper than 100 levels"),
    ({"name": ""}, "HR005", "a type has 1 to 255"),
    ({"name": "has space"}, "HR005", "a type has 1 to 255"),
    ({"name": None}, "HR005", "a type has 1 to 255"),
    ({"name": "VIDEO"}, "HR005", "ordered through removal"),
    ({"priority": 1_000_001}, "HR005", "priority must lie"),
    ({"max_attempts": 0}, "HR005", "max_attempts must lie"),
    ({"timeout_seconds": 0}, "HR005", "timeout_seconds must be"),
    ({"title": ""}, "HR005", "title has 1 to 255"),
    ({"queue": "q" * 65}, "HR005", "queue has 1 to 64"),
    ({"limit_key": ""}, "HR005", "limit_key has 1 to 255"),
    ({"idempotency_key": "k" * 129}, "HR005", "idempotency key has 1 to 128"),
    ({"labels": ["gpu"]}, "HR005", "labels must be an object of strings"),
    ({"labels": {"gpu": 1}}, "HR005", "labels must be an object of strings"),
    ({"labels": {"gpu": ["a"]}}, "HR005", "labels must be an object of strings"),
    ({"labels": {"gpu": ""}}, "HR005", "labels are at most 8"),
    ({"labels": {"g pu": "yes"}}, "HR005", "labels are at most 8"),
    ({"labels": {f"label{number}": "yes" for number in range(9)}}, "HR005", "labels are at most 8"),
    ({"run_at": datetime(1969, 1, 1, tzinfo=UTC)}, "HR005", "run_at must lie"),
    ({"user_id": "u_nobody"}, "23503", "fk_tasks_users_user_id"),
]


async def test_what_cannot_be_is_refused_in_words(db: Database, subtests: pytest.Subtests) -> None:
    for given, state, says in REFUSED:
        with subtests.test(str(given)[:60]):
            with pytest.raises(asyncpg.PostgresError, match=says) as refused:
                await submit(db, **given)
            assert refused.value.sqlstate == state
            assert await count(db, "tasks") == 0


@pytest.mark.parametrize("when", ["infinity", "-infinity", "294000-01-01 00:00:00+00"])
async def test_no_run_at_gets_in_that_a_worker_could_not_read(db: Database, when: str) -> None:
    with pytest.raises(asyncpg.PostgresError, match="run_at must lie"):
        await db.fetch_alone(f"SELECT headrace.submit('a', run_at => '{when}')")


async def test_a_nul_is_refused_by_postgres_itself(db: Database) -> None:
    with pytest.raises(asyncpg.UntranslatableCharacterError, match="unsupported Unicode escape"):
        await submit(db, payload={"x": "a\0b"})


async def test_exactly_a_hundred_levels_are_taken(db: Database) -> None:
    await submit(db, payload=orjson.loads("[" * 100 + "]" * 100))
    await submit(db, payload=orjson.loads('{"a":' * 50 + "[" * 49 + '"[[[[{{{{"' + "]" * 49 + "}" * 50))
    await submit(db, payload=[[]] * 200)


async def test_the_limit_can_be_set_for_a_database(server: TestServer, database_url: str) -> None:
    async with caller(database_url) as program:
        await program.execute("SET headrace.payload_limit = 100")
        with pytest.raises(asyncpg.PostgresError, match="may have 100"):
            await program.fetchval("SELECT headrace.submit('a', jsonb_build_object('x', repeat('y', 100)))")


async def test_only_the_application_may_call_it(server: TestServer, database_url: str, db: Database) -> None:
    name = f"headrace_test_stranger_{os.getpid()}"
    database = database_url.rpartition("/")[2].partition("?")[0]
    await server.run(f"CREATE ROLE {name} LOGIN")
    try:
        await server.run(f"GRANT USAGE ON SCHEMA headrace TO {name}", database=database)
        async with caller(server.url(database, role=name)) as stranger:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await stranger.fetchval("SELECT headrace.submit('a')")
    finally:
        await server.run(f"DROP OWNED BY {name}", database=database)
        await server.run(f"DROP ROLE {name}")
    assert await count(db, "tasks") == 0


async def test_a_hostile_search_path_changes_nothing(database_url: str, db: Database) -> None:
    async with caller(database_url) as program:
        await program.execute("CREATE TEMP TABLE tasks (id text); SET search_path = pg_temp, public")
        assert await program.fetchval("SELECT headrace.submit('a')")
    assert await count(db, "tasks") == 1


# -- from another program


def psql() -> str:
    try:
        beside = [folder / "psql" for folder in binaries.list_folders(None)]
    except HeadraceError:
        beside = []
    found = next((str(program) for program in beside if program.exists()), None) or shutil.which("psql")
    if found is None:
        pytest.skip("there is no psql here")
    return found


async def run_psql(url: str, script: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        psql(), _for_libpq(url), "-XqAt", "-v", "ON_ERROR_STOP=1",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=Path("/"),
    )  # fmt: skip
    out, err = await process.communicate(script.encode())
    assert process.returncode is not None
    return process.returncode, out.decode().strip(), err.decode()


def _for_libpq(url: str) -> str:
    return url.replace("?role=headrace_app", "?options=-c%20role%3Dheadrace_app")


async def test_psql_submits_in_its_own_transaction(database_url: str, db: Database) -> None:
    code, out, err = await run_psql(
        database_url,
        """
        BEGIN;
        CREATE TEMP TABLE orders (id int, task text);
        INSERT INTO orders VALUES (1, headrace.submit('order.ship', '{"order": 1}', priority => 5));
        SELECT task FROM orders;
        COMMIT;
        BEGIN;
        SELECT headrace.submit('order.ship', '{"order": 2}');
        ROLLBACK;
        """,
    )
    kept, undone = out.splitlines()
    assert (code, err) == (0, "")
    assert [row["id"] for row in await db.fetch_alone("SELECT id FROM headrace.tasks")] == [kept]
    assert ids.check(undone, "tsk")


async def test_many_psqls_with_one_key_get_one_task(database_url: str, db: Database) -> None:
    script = "SELECT headrace.submit('order.ship', '{\"order\": 1}', idempotency_key => 'order-1')"
    done = await asyncio.gather(*(run_psql(database_url, script) for _ in range(8)))
    assert {code for code, _, _ in done} == {0}
    assert len({out for _, out, _ in done}) == 1
    assert await count(db, "tasks") == 1


async def test_psql_is_told_what_is_wrong_and_what_to_do(database_url: str) -> None:
    code, _, err = await run_psql(
        database_url,
        "\\set VERBOSITY verbose\n"
        "SELECT headrace.submit('a', '1', idempotency_key => 'k');\n"
        "SELECT headrace.submit('a', '2', idempotency_key => 'k');\n",
    )
    assert code == 3
    assert "HR002: the idempotency key 'k' was used for another task" in err
    assert "HINT:  Take a fresh key for each task" in err


async def _nothing(context: TaskContext, payload: Any) -> None: ...


async def _until_asleep(db: Database) -> None:
    async with asyncio.timeout(10):
        while not await db.fetch_alone("SELECT FROM headrace.workers WHERE asleep AND ended_at IS NULL"):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)


async def _until_waiting(db: Database) -> None:
    """Until a connection to this database waits for another's lock."""
    async with asyncio.timeout(10):
        while not await db.fetch_alone("SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"):
            await asyncio.sleep(0.01)
