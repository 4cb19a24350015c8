"""The databases that tests are given: used ones are as new, and what cannot be undone is not given again."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from tests.conftest import TestServer
from tests.databases import Databases, Superuser

OID = "SELECT oid FROM pg_database WHERE datname = current_database()"
ADD_USER = "INSERT INTO headrace.users (id, username, password_hash) VALUES ('u_1', 'ada', '!')"
NUMBER = "SELECT nextval('headrace.audit_events_seq')"
USERS = "SELECT id, username, role, created_at FROM headrace.users ORDER BY id"


@pytest.fixture
def own(server: TestServer, superuser: Superuser) -> Iterator[Databases]:
    made = Databases(server, superuser)
    yield made
    made.close()


def run(server: TestServer, name: str, *statements: str) -> list[tuple[object, ...]]:
    """Runs them one after the other; gives the rows of the last."""
    with psycopg.connect(server.url(name), autocommit=True) as connection:
        for statement in statements[:-1]:
            connection.execute(statement)
        done = connection.execute(statements[-1])
        return done.fetchall() if done.description else []


def test_what_a_test_wrote_is_gone_and_what_was_there_is_back(
    server: TestServer, own: Databases, template: str
) -> None:
    first = own.take(template)
    before, number = run(server, first, USERS), run(server, first, NUMBER)
    (identity,) = run(server, first, OID)
    run(server, first, ADD_USER, "UPDATE headrace.users SET role = 'ADMIN'", "DELETE FROM headrace.schema_migrations")
    own.give_back(first)
    second = own.take(template)
    assert run(server, second, OID) == [identity], "the same database"
    assert run(server, second, USERS) == before
    assert run(server, second, NUMBER) == number
    assert run(server, second, "SELECT count(*) > 0 FROM headrace.schema_migrations") == [(True,)]


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE headrace.users DISABLE TRIGGER USER",
        "CREATE TABLE public.another (id integer)",
        "ANALYZE headrace.users",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = 64', current_database()); END $$",
        ADD_USER.partition(" VALUES")[0] + " SELECT 'v_' || n, 'v_' || n, '!' FROM generate_series(1, 3000) AS n",
    ],
)
def test_what_is_more_than_a_few_rows_is_not_undone(
    server: TestServer, own: Databases, template: str, change: str
) -> None:
    first = own.take(template)
    (identity,) = run(server, first, OID)
    run(server, first, ADD_USER, change)
    own.give_back(first)
    assert run(server, own.take(template), OID) != [identity]


def test_nobody_stays_and_nobody_comes_back(server: TestServer, own: Databases, template: str) -> None:
    first = own.take(template)
    with psycopg.connect(server.url(first)) as straggler:
        straggler.execute(ADD_USER)
        own.give_back(first)
        with pytest.raises(psycopg.OperationalError):
            straggler.execute("SELECT 1")
    second = own.take(template)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(server.url(first))
    assert run(server, second, "SELECT count(*) FROM headrace.users WHERE username = 'ada'") == [(0,)]


def test_a_server_that_went_away_and_came_back_is_used_again(server: TestServer, template: str) -> None:
    with closing(Superuser(server.superuser_url)) as superuser, closing(Databases(server, superuser)) as own:
        used, free = own.take(template), own.take(template)
        known = [run(server, name, OID) for name in (used, free)]
        own.give_back(free)
        (ours,) = superuser.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        run(server, "postgres", f"SELECT pg_terminate_backend({ours}, 60000)")
        own.give_back(used)  # a server that crashed has forgotten what there is to undo
        assert superuser.restarts == 1
        assert not any(run(server, own.take(template), OID) in known for _ in range(2))
