"""``headrace migrate``: up, down, all at once, and what it refuses. W-19."""

import asyncio
import os
import re
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from headrace import migrations
from headrace.database import DatabaseConfig
from headrace.migrations import definitions, files, runner, script
from headrace.migrations.definitions import Definition
from headrace.migrations.schema_status import SchemaSquashed
from tests.conftest import MakeDatabase, TestServer
from tests.migrations.catalog import describe

NOW = timedelta(seconds=5)


def config(server: TestServer, database: str) -> DatabaseConfig:
    return DatabaseConfig(server.url(database), role="test")


@pytest.mark.both
async def test_up_down_up_gives_the_schema_of_a_single_up(server: TestServer, make_database: MakeDatabase) -> None:
    once, again = config(server, await make_database()), config(server, await make_database())
    await migrations.migrate(once, lock_timeout=NOW)
    await migrations.migrate(again, lock_timeout=NOW)
    await migrations.roll_back(again, to=0, lock_timeout=NOW)
    assert await describe(again) == {}, "something of ours is left behind"
    await migrations.migrate(again, lock_timeout=NOW)
    assert await describe(again) == await describe(once)


@pytest.mark.long
async def test_each_migration_goes_down_to_exactly_the_schema_before_it(
    server: TestServer, make_database: MakeDatabase
) -> None:
    database = config(server, await make_database())
    before = []
    for migration in migrations.available():
        before.append(await describe(database))
        await migrations.migrate(database, to=migration.number, lock_timeout=NOW)
    for expected in reversed(before[1:]):
        await migrations.roll_back(database, lock_timeout=NOW)
        assert await describe(database) == expected


async def test_ten_at_once_migrate_once(server: TestServer, make_database: MakeDatabase) -> None:
    database = config(server, await make_database())
    done = await asyncio.gather(*(migrations.migrate(database, lock_timeout=NOW) for _ in range(10)))
    assert sorted(len(steps) for steps in done) == [0] * 9 + [len(migrations.available())]


async def test_the_owner_alone_owns_the_tables_whoever_migrates(
    server: TestServer, make_database: MakeDatabase
) -> None:
    database = await make_database()
    await migrations.migrate(config(server, database), lock_timeout=NOW)
    owners = await server.run(
        "SELECT DISTINCT pg_get_userbyid(relowner) AS owner FROM pg_class "
        "WHERE relnamespace = 'headrace'::regnamespace",
        database=database,
    )
    assert [row["owner"] for row in owners] == ["headrace_owner"]


async def test_a_database_that_has_everything_needs_no_rights_to_migrate(database_url: str) -> None:
    assert await migrations.migrate(DatabaseConfig(database_url, role="test"), lock_timeout=NOW) == []


NEWER = """
INSERT INTO headrace.schema_migrations (number, name, checksum, needs)
VALUES (9999, 'teleport', repeat('0', 64), {needs})
"""


async def test_a_newer_schema_that_only_adds_is_run_on_and_left_alone(
    server: TestServer, make_database: MakeDatabase, template: str
) -> None:  # W-19
    """A crashed process of a release could not be started again beside the next one (`schema_too_new`)."""
    name = await make_database(template)
    await server.run(NEWER.format(needs=migrations.available()[-1].number), database=name)
    before = await describe(config(server, name))
    await migrations.verify_current(config(server, name))
    assert await migrations.migrate(config(server, name), lock_timeout=NOW) == []
    with pytest.raises(migrations.SchemaTooNew, match="only that one knows the way back"):
        await migrations.roll_back(config(server, name), lock_timeout=NOW)
    assert await describe(config(server, name)) == before


async def test_a_newer_schema_that_has_removed_something_is_refused(
    server: TestServer, make_database: MakeDatabase, template: str
) -> None:
    name = await make_database(template)
    await server.run(NEWER.format(needs=9999), database=name)
    for verb in (
        migrations.verify_current(config(server, name)),
        migrations.migrate(config(server, name), lock_timeout=NOW),
    ):
        with pytest.raises(
            migrations.SchemaTooNew, match="9999_teleport, which needs a program that knows migration 9999"
        ):
            await verb


async def test_a_database_that_is_behind_is_named(server: TestServer, make_database: MakeDatabase) -> None:
    with pytest.raises(migrations.SchemaBehind, match="headrace migrate"):
        await migrations.verify_current(config(server, await make_database()))


async def test_a_failing_migration_leaves_nothing_half_done(
    server: TestServer, make_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = migrations.Migration(1, "broken", "CREATE TABLE headrace.half (); SELECT 1/0;", "")
    monkeypatch.setattr(files, "available", lambda: (broken,))
    database = config(server, await make_database())
    with pytest.raises(migrations.MigrationRefused, match="division by zero"):
        await migrations.migrate(database, lock_timeout=NOW)
    assert "headrace.half" not in str(await describe(database))


async def test_a_migration_may_take_longer_than_any_statement_of_the_product(
    server: TestServer, make_database: MakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = migrations.Migration(1, "slow", "SELECT pg_sleep(1.5);", "")
    monkeypatch.setattr(files, "available", lambda: (slow,))
    # The driver has a limit of its own, five seconds above the one that PostgreSQL is given; here it is one second.
    monkeypatch.setattr("headrace.database._BACKSTOP_S", 0.9)
    database = replace(config(server, await make_database()), statement_timeout=timedelta(milliseconds=100))
    assert await migrations.migrate(database, lock_timeout=NOW) == [slow]


async def test_whoever_may_create_roles_can_migrate_their_own_database(
    server: TestServer, make_database: MakeDatabase
) -> None:
    """A managed server gives nobody more than that; the roles are named anew, for those of the product are there."""
    database, word = await make_database(), f"t{os.getpid()}"
    migrator, owner, app = f"{word}_migrator", f"{word}_owner", f"{word}_app"
    await server.run(f"CREATE ROLE {migrator} LOGIN CREATEROLE PASSWORD 'x'")
    try:
        await server.run(f"ALTER DATABASE {database} OWNER TO {migrator}")
        connection = await asyncpg.connect(server.url(database), user=migrator, password="x")
        try:
            await connection.execute(runner.PREPARE.replace("headrace_owner", owner).replace("headrace_app", app))
            assert await connection.fetchval("SELECT current_user") == owner
        finally:
            await connection.close()
    finally:
        await server.run(f"DROP DATABASE {database} WITH (FORCE)")
        for role in (owner, app, migrator):
            await server.run(f"DROP ROLE IF EXISTS {role}")


async def test_a_busy_table_is_not_queued_behind(
    server: TestServer, make_database: MakeDatabase, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = await make_database(template)
    next_number = len(migrations.available()) + 1
    widen = migrations.Migration(next_number, "widen", "ALTER TABLE headrace.users ADD COLUMN x int;", "")
    monkeypatch.setattr(files, "available", lambda: (*migrations.available(), widen))
    holder = await asyncpg.connect(server.url(name))
    try:
        async with holder.transaction():
            await holder.execute("LOCK TABLE headrace.users")
            with pytest.raises(runner.MigrationBusy, match="in use"):
                await migrations.migrate(config(server, name), lock_timeout=timedelta(milliseconds=50))
    finally:
        await holder.close()
    assert [str(step) for step in await migrations.migrate(config(server, name), lock_timeout=NOW)] == [str(widen)]


async def test_a_request_that_locks_tables_in_the_opposite_order_is_not_ended(
    server: TestServer, make_database: MakeDatabase, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients of a release under load read 503 for deadlocks with the next one's migration, up and back."""
    name = await make_database(template)
    text = "ALTER TABLE headrace.queues ADD COLUMN x int; ALTER TABLE headrace.users ADD COLUMN x int;"
    widen = migrations.Migration(len(migrations.available()) + 1, "widen", text, "")
    monkeypatch.setattr(files, "available", lambda: (*migrations.available(), widen))
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'headrace.users'::regclass"
    request, watch = await asyncpg.connect(server.url(name)), await asyncpg.connect(server.url(name))
    try:
        async with request.transaction():
            await request.execute("UPDATE headrace.users SET email = email")
            migrating = asyncio.create_task(
                migrations.migrate(config(server, name), lock_timeout=timedelta(seconds=60))
            )
            async with asyncio.timeout(60):
                while not await watch.fetchval(waiting):
                    await asyncio.sleep(0.01)
            await request.execute(
                "UPDATE headrace.queues SET updated_at = updated_at"
            )  # which the migration has locked
    finally:
        await request.close()
        await watch.close()
    assert await migrating == [widen]


async def test_an_index_waits_for_open_transactions_and_holds_up_nobody(
    server: TestServer, make_database: MakeDatabase, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken off after a lock_timeout, it would have to be built anew each time: on a busy database for ever."""
    name = await make_database(template)
    script = "-- headrace: no-transaction\nCREATE INDEX CONCURRENTLY idx_a ON headrace.users (mobile);\n"
    index = migrations.Migration(len(migrations.available()) + 1, "index", script, "")
    monkeypatch.setattr(files, "available", lambda: (*migrations.available(), index))
    writer = await asyncpg.connect(server.url(name))
    try:
        transaction = writer.transaction()
        await transaction.start()
        await writer.execute("UPDATE headrace.users SET email = email")
        migrating = asyncio.create_task(
            migrations.migrate(config(server, name), lock_timeout=timedelta(milliseconds=20))
        )
        await asyncio.sleep(0.2)
        await writer.execute("UPDATE headrace.users SET email = email")
        await transaction.commit()
    finally:
        await writer.close()
    assert await migrating == [index]


async def test_files_for_concurrently_run_outside_a_transaction(
    server: TestServer, make_database: MakeDatabase, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = await make_database(template)
    script = (
        "-- headrace: no-transaction\n"
        "-- why: the table is large; this waits for nobody.\n"
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_a ON headrace.users (mobile);\n"
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_b ON headrace.users (email);\n"
    )
    migration = migrations.Migration(len(migrations.available()) + 1, "indexes", script, "")
    monkeypatch.setattr(files, "available", lambda: (*migrations.available(), migration))
    await migrations.migrate(config(server, name), lock_timeout=NOW)
    found = await server.run("SELECT to_regclass('headrace.idx_a') a, to_regclass('headrace.idx_b') b", database=name)
    assert all(found[0].values())


async def test_the_printed_script_does_the_same(server: TestServer, make_database: MakeDatabase) -> None:
    by_hand, by_us = await make_database(), await make_database()

    async def run(script: str) -> None:
        connection = await asyncpg.connect(server.url(by_hand))
        try:
            # As psql sends it: what may not be in a transaction goes alone.
            concurrently = r"(?:DROP|CREATE(?: UNIQUE)?) INDEX CONCURRENTLY [^;]+;"
            for part in re.split(rf"(^SELECT format\([^;]+\\gexec$|{concurrently})", script, flags=re.MULTILINE):
                if part.endswith("\\gexec"):
                    rows = await connection.fetch(part.removesuffix("\\gexec"))
                    for statement in [statement for row in rows for statement in row]:
                        await connection.execute(statement)
                else:
                    alone = part.startswith(("DROP", "CREATE"))
                    await connection.execute(part if alone else f"{part}\nSELECT")  # not comments alone
        finally:
            await connection.close()

    everything = await migrations.status(config(server, by_hand))
    await run(script.render(everything.pending, stale=everything.stale))
    await migrations.migrate(config(server, by_us), lock_timeout=NOW)
    assert await describe(config(server, by_hand)) == await describe(config(server, by_us))
    await migrations.verify_current(config(server, by_hand))
    await run(script.render(reversed(migrations.available()), down=True))
    assert await describe(config(server, by_hand)) == {}


# -- functions, triggers and views


def with_change(name: str, old: str, new: str, *, of: tuple[Definition, ...] | None = None) -> tuple[Definition, ...]:
    """Our definitions, as if somebody had edited the file of this one."""
    known = of or definitions.known()
    assert any(old in one.text for one in known if one.name == name)
    return tuple(replace(one, text=one.text.replace(old, new)) if one.name == name else one for one in known)


async def test_a_changed_function_is_made_anew_and_nothing_else(
    server: TestServer, make_database: MakeDatabase, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # W-19
    name = await make_database(template)
    before = await describe(config(server, name))
    changed = with_change("fence", "seq << 20", "seq << 21")
    monkeypatch.setattr(definitions, "known", lambda: changed)
    with pytest.raises(migrations.SchemaBehind, match="functions/fence"):
        await migrations.verify_current(config(server, name))
    assert await migrations.migrate(config(server, name), lock_timeout=NOW) == []
    after = await describe(config(server, name))
    assert [what for what in after if after[what] != before.get(what)] == ["function headrace.fence(bigint,integer)"]
    await migrations.verify_current(config(server, name))


async def test_an_older_program_leaves_newer_functions_alone(
    server: TestServer, make_database: MakeDatabase, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # W-19
    name = await make_database(template)
    before = await describe(config(server, name))
    ours, revision = definitions.known(), definitions.revision()
    newer = with_change("fence", "seq << 20", "seq << 21")
    with monkeypatch.context() as later:
        later.setattr(definitions, "known", lambda: newer)
        later.setattr(definitions, "revision", lambda: revision + 1)
        await migrations.migrate(config(server, name), lock_timeout=NOW)
        after = await describe(config(server, name))
    assert definitions.known() == ours
    await migrations.verify_current(config(server, name))
    assert await migrations.migrate(config(server, name), lock_timeout=NOW) == []
    assert await describe(config(server, name)) == after
    # The newer program puts them back.
    with monkeypatch.context() as later:
        later.setattr(definitions, "known", lambda: newer)
        later.setattr(definitions, "revision", lambda: revision + 1)
        newest = migrations.available()[-1].number
        assert await migrations.roll_back(config(server, name), to=newest, lock_timeout=NOW) == []
    assert await describe(config(server, name)) == before
    await migrations.verify_current(config(server, name))
    assert not (await migrations.status(config(server, name))).stale


async def test_a_newer_program_with_the_same_functions_is_newer_all_the_same(
    server: TestServer, make_database: MakeDatabase, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that was taken back: those who have it must not bring it again."""
    name = await make_database(template)
    with monkeypatch.context() as later:
        revision = definitions.revision()
        later.setattr(definitions, "revision", lambda: revision + 2)
        await migrations.migrate(config(server, name), lock_timeout=NOW)
    assert (await migrations.status(config(server, name))).is_newer
    await migrations.verify_current(config(server, name))


async def test_definitions_go_down_with_their_migration(
    server: TestServer, make_database: MakeDatabase, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # W-19
    """The newer claim_tasks stayed while its column was dropped: running workers met UndefinedColumnError and ended."""
    name = await make_database(template)
    before, newest = await describe(config(server, name)), migrations.available()[-1].number
    added = migrations.Migration(
        newest + 1,
        "more",
        "ALTER TABLE headrace.queues ADD COLUMN more integer;",
        "ALTER TABLE headrace.queues DROP COLUMN more;",
    )
    newer = with_change("fence", "seq << 20", "seq << 21")
    newer = with_change("queues", "tr_queues_touch BEFORE UPDATE", "tr_queues_touch BEFORE UPDATE OF name", of=newer)
    revision, both = definitions.revision(), (*migrations.available(), added)
    with monkeypatch.context() as later:
        later.setattr(definitions, "known", lambda: newer)
        later.setattr(definitions, "revision", lambda: revision + 1)
        later.setattr(files, "available", lambda: both)
        assert await migrations.migrate(config(server, name), lock_timeout=NOW) == [added]
        assert await describe(config(server, name)) != before
        await migrations.roll_back(config(server, name), lock_timeout=NOW)
    assert await describe(config(server, name)) == before
    await migrations.verify_current(config(server, name))
    assert not (await migrations.status(config(server, name))).is_newer


async def test_a_trigger_that_needs_a_busy_table_gives_up_and_changes_nothing(
    server: TestServer, make_database: MakeDatabase, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # W-19
    name = await make_database(template)
    before = await describe(config(server, name))
    changed = with_change("queues", "tr_queues_touch BEFORE UPDATE", "tr_queues_touch BEFORE INSERT OR UPDATE")
    changed = tuple(replace(one, text="-- new\n" + one.text) if one.name == "fence" else one for one in changed)
    monkeypatch.setattr(definitions, "known", lambda: changed)
    holder = await asyncpg.connect(server.url(name))
    try:
        async with holder.transaction():
            await holder.execute("LOCK TABLE headrace.queues")
            with pytest.raises(runner.MigrationBusy, match="in use"):
                await migrations.migrate(config(server, name), lock_timeout=timedelta(milliseconds=50))
    finally:
        await holder.close()
    assert await describe(config(server, name)) == before


async def test_a_broken_function_is_refused_by_name(
    server: TestServer, make_database: MakeDatabase, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = await make_database(template)
    changed = with_change("fence", "seq << 20", "sec << 20")
    monkeypatch.setattr(definitions, "known", lambda: changed)
    with pytest.raises(migrations.MigrationRefused, match=r'functions/fence failed.*"sec" does not exist'):
        await migrations.migrate(config(server, name), lock_timeout=NOW)


async def test_a_database_of_the_former_files_gets_a_clear_word(
    server: TestServer, make_database: MakeDatabase
) -> None:
    name = await make_database()
    for statement in (
        "CREATE SCHEMA headrace",
        "CREATE TABLE headrace.schema_migrations AS "
        "SELECT 1 AS number, 'foundation' AS name, repeat('0', 64) AS checksum, now() AS applied_at",
    ):
        await server.run(statement, database=name)
    for verb in (
        migrations.verify_current(config(server, name)),
        migrations.migrate(config(server, name), lock_timeout=NOW),
        migrations.roll_back(config(server, name), lock_timeout=NOW),
    ):
        with pytest.raises(SchemaSquashed, match="make a new one"):
            await verb


def test_each_function_has_one_home_named_after_it() -> None:
    for one in definitions.known():
        made = re.findall(r"CREATE OR REPLACE (?:FUNCTION|PROCEDURE|VIEW) headrace\.(\w+)", one.text)
        made += re.findall(r"CREATE OR REPLACE TRIGGER [^;]*? ON headrace\.(\w+)", one.text)
        assert set(made) == {one.name}, one
    for migration in migrations.available():
        assert not re.search(r"CREATE (OR REPLACE )?(FUNCTION|PROCEDURE|TRIGGER|VIEW)", migration.up), migration
