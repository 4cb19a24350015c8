"""What ``headrace.submit`` refuses, in words and by a code, and whom."""

import os
from datetime import UTC, datetime
from typing import Any

import asyncpg
import orjson
import pytest

from headrace.database import Database
from tests.conftest import TestServer
from tests.tasks.sql import caller, count, submit

pytestmark = pytest.mark.both

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


async def test_a_type_that_others_must_move_with_is_refused_here(db: Database) -> None:
    await db.fetch_alone("INSERT INTO headrace.task_types (name, followers) VALUES ('report', '{ledger}')")
    with pytest.raises(asyncpg.PostgresError, match="cannot be submitted in SQL: ledger must move with it"):
        await submit(db, name="report")
    assert await count(db, "tasks") == 0


@pytest.mark.parametrize("when", ["infinity", "-infinity", "294000-01-01 00:00:00+00"])
async def test_no_run_at_gets_in_that_a_worker_could_not_read(db: Database, when: str) -> None:
    with pytest.raises(asyncpg.PostgresError, match="run_at must lie"):
        await db.fetch_alone(f"SELECT headrace.submit('a', unknown_type => 'wait', run_at => '{when}')")


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
            await program.fetchval(
                "SELECT headrace.submit('a', jsonb_build_object('x', repeat('y', 100)), unknown_type => 'wait')"
            )


async def test_only_the_application_may_call_it(server: TestServer, database_url: str, db: Database) -> None:
    name = f"headrace_test_stranger_{os.getpid()}"
    database = database_url.rpartition("/")[2].partition("?")[0]
    await server.run(f"CREATE ROLE {name} LOGIN")
    try:
        await server.run(f"GRANT USAGE ON SCHEMA headrace TO {name}", database=database)
        async with caller(server.url(database, role=name)) as stranger:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await stranger.fetchval("SELECT headrace.submit('a', unknown_type => 'wait')")
    finally:
        await server.run(f"DROP OWNED BY {name}", database=database)
        await server.run(f"DROP ROLE {name}")
    assert await count(db, "tasks") == 0


async def test_a_hostile_search_path_changesnothing(database_url: str, db: Database) -> None:
    async with caller(database_url) as program:
        await program.execute("CREATE TEMP TABLE tasks (id text); SET search_path = pg_temp, public")
        assert await program.fetchval("SELECT headrace.submit('a', unknown_type => 'wait')")
    assert await count(db, "tasks") == 1
