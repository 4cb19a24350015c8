"""``headrace database``: an address that works, and a schema for a program's own tables in the same transactions."""

import json

import psycopg
import pytest

from tests.cli.conftest import Call, Place
from tests.conftest import TestServer


def plain(url: str) -> str:
    return url.partition("?")[0]  # libpq knows no role=


@pytest.fixture
def role(server: TestServer, migrated: Place) -> str:
    return f"order_{migrated.name[-8:]}"  # roles belong to the whole server


def test_a_schema_of_ones_own_shares_transactions_with_tasks(call: Call, migrated: Place, role: str) -> None:
    made = call("database", "schema", role, "--json", settings=migrated.settings)
    assert made.code == 0, made.err
    url = plain(json.loads(made.out)["url"])
    try:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE payments (cents integer)")
            connection.execute("INSERT INTO payments VALUES (500)")
            connection.execute("SELECT headrace.submit('book', '{}', unknown_type => 'wait')")
        with psycopg.connect(plain(migrated.owner_url)) as connection:
            assert connection.execute(f"SELECT cents FROM {role}.payments").fetchall() == [(500,)]
            assert connection.execute("SELECT count(*) FROM headrace.tasks").fetchall() == [(1,)]
            trail = "SELECT action, resource ->> 'identifier' FROM headrace.audit_events ORDER BY seq"
            assert connection.execute(trail).fetchall() == [("created", role)]

        again = call("database", "schema", role, settings=migrated.settings)
        assert (again.code, again.out) == (4, "")
        assert f"`headrace database schema {role} --new-password`" in again.complaint
        other = call("database", "schema", role, "--new-password", settings=migrated.settings)
        assert other.code == 0, other.err
        psycopg.connect(plain(other.out.strip())).close()
        assert plain(other.out.strip()) != url
    finally:
        with psycopg.connect(plain(migrated.owner_url), autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {role} CASCADE")
            connection.execute(f"DROP ROLE IF EXISTS {role}")


def test_the_address_and_the_statements_are_printed(call: Call, migrated: Place) -> None:
    assert call("database", "url", settings=migrated.settings).out == f"{migrated.app_url}\n"
    assert call("database", "url", "--owner", settings=migrated.settings).out == f"{migrated.owner_url}\n"
    printed = call("database", "schema", "order", "--sql", settings=migrated.settings).out.splitlines()
    assert printed[0].startswith("-- postgresql://order:")
    assert printed[1].startswith('CREATE ROLE "order" LOGIN PASSWORD ')
    assert printed[2] == 'CREATE SCHEMA "order" AUTHORIZATION "order";'


def test_what_cannot_be_is_refused_in_a_line(call: Call, migrated: Place) -> None:
    for name in ("pg_mine", "headrace_too", "Shop", 'a"b'):
        assert call("database", "schema", name, settings=migrated.settings).code == 2
    settings = migrated.settings | {"HEADRACE_DATABASE_OWNER_URL": migrated.app_url}
    refused = call("database", "schema", "shop", settings=settings)
    assert refused.code == 5
    assert "let an administrator run what `--sql` prints" in refused.complaint
    missing = call("database", "schema", "nobody", "--new-password", settings=migrated.settings)
    assert "There is no role nobody yet" in missing.complaint
    with psycopg.connect(plain(migrated.owner_url)) as connection:
        roles = connection.execute("SELECT rolname FROM pg_roles WHERE rolsuper ORDER BY oid LIMIT 1").fetchall()
    foreign = call("database", "schema", roles[0][0], "--new-password", settings=migrated.settings)
    assert (foreign.code, "was not made by this command" in foreign.complaint) == (2, True)


def test_two_indexes_are_dropped_and_made_again(call: Call, migrated: Place) -> None:
    def shown(*options: str) -> list[bool]:
        done = call("database", "indexes", *options, "--json", settings=migrated.settings)
        assert done.code == 0, done.err
        return [each["bytes"] is not None for each in json.loads(done.out)]

    assert shown() == [True, True]
    assert shown("--lean") == [False, False]
    assert "dropped" in call("database", "indexes", settings=migrated.settings).out
    assert shown("--full") == [True, True]
    assert call("database", "indexes", "--lean", "--full", settings=migrated.settings).code != 0
