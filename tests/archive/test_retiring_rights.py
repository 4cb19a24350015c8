"""Who may retire which month: the roles of docs/howto/own-postgres.md, with a login each."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from headrace import ids
from headrace.archive import archives, minimums, store
from headrace.archive.config import RetentionConfig
from headrace.archive.errors import MonthNeeded
from headrace.archive.model import MONTHLY, ArchiveState, Minimum
from headrace.archive.retention import retain
from headrace.assembly.retention import ROWS
from headrace.audit import Who
from headrace.database import Database, DatabaseConfig, connect_alone
from headrace.storage import Storage, StorageConfig
from tests.archive.months import (
    MONTH,
    NAME,
    fill_audit,
    fingerprint,
    make_month,
    name_of,
    retire,
    set_minimum,
    stop_after,
)
from tests.conftest import TestServer
from tests.databases import Superuser

DAY = timedelta(days=1)
# As on that page, with names of this process's own: roles belong to the whole server.
MIGRATOR, SERVICE, STRANGER = (f"headrace_{name}_{os.getpid()}" for name in ("migrator", "service", "stranger"))
ROLES = f"""
CREATE ROLE {MIGRATOR} LOGIN PASSWORD 'choose-one'     IN ROLE headrace_owner;
CREATE ROLE {SERVICE}  LOGIN PASSWORD 'choose-another' IN ROLE headrace_app;
CREATE ROLE {STRANGER} LOGIN PASSWORD 'choose-a-third';
"""
DETACH = "SELECT headrace.detach_month('audit_events', $1, $2)"
DROP = "SELECT headrace.drop_month($1, $2)"
FUNCTIONS = (
    "detach_month('audit_events', '2025-03-01', 'arc_0')",
    "note_archived_month('arc_0', 1, 'a', 'b', now(), now(), 1, repeat('0', 64))",
    "note_verified_month('arc_0', repeat('0', 64))",
    "rewrite_month('arc_0')",
    "unlink_month('arc_0')",
    "drop_month('arc_0', repeat('0', 64))",
)


@pytest.fixture(scope="module")
def roles(superuser: Superuser, template: str) -> Iterator[None]:
    superuser.execute(ROLES)
    yield
    superuser.execute(f"DROP ROLE {MIGRATOR}, {SERVICE}, {STRANGER}")


def login(server: TestServer, database: str, user: str, password: str) -> DatabaseConfig:
    parts = urlsplit(server.url(database))
    host = parts.netloc.rpartition("@")[2]
    return DatabaseConfig(urlunsplit(parts._replace(netloc=f"{user}:{password}@{host}")))


@pytest.fixture
async def service(server: TestServer, roles: None, db: Database) -> AsyncIterator[Database]:
    """What the workers have: nothing but a login that is a member of headrace_app."""
    for table in MONTHLY:
        await make_month(server, name_of(db), table)
    async with await Database.connect(login(server, name_of(db), SERVICE, "choose-another")) as database:
        yield database


@pytest.fixture
def migrator(server: TestServer, roles: None, db: Database) -> DatabaseConfig:
    return login(server, name_of(db), MIGRATOR, "choose-one")


def last_month(ago: int) -> date:
    month = datetime.now(UTC).date().replace(day=1)
    for _ in range(ago):
        month = (month - DAY).replace(day=1)
    return month


async def is_attached(db: Database, name: str) -> bool | None:
    async with db.transaction(readonly=True) as tx:
        return await store.is_attached(tx, name)


async def test_the_service_retires_months_without_the_owner(
    db: Database, service: Database, place: StorageConfig
) -> None:  # W-17, W-18
    await fill_audit(db, 30)
    run = await retain(service, place, RetentionConfig(), ROWS, "audit_events")
    assert (run.removed_rows, run.error) == (30, None)
    (gone,) = run.retired
    assert (gone.archive.period, gone.archive.state) == (MONTH, ArchiveState.DROPPED)
    assert await is_attached(db, NAME) is None
    assert await service.fetch_alone("SELECT FROM headrace.audit_leaves") == []


async def test_a_shorter_setting_of_a_worker_counts_for_nothing(
    server: TestServer, db: Database, service: Database, place: StorageConfig
) -> None:
    month = last_month(3)
    await make_month(server, name_of(db), "audit_events", month)
    await set_minimum(server, name_of(db), "audit_events", 180 * DAY)
    run = await retain(service, place, RetentionConfig(audit_events=DAY), ROWS, "audit_events")
    assert [gone.archive.period for gone in run.retired] == [MONTH]
    assert f"audit_events_y{month:%Ym%m} must stay: months of audit_events are kept for 180 days" in (run.error or "")
    assert "run `headrace migrate` with HEADRACE_RETENTION_AUDIT" in (run.error or "")
    assert await is_attached(db, f"audit_events_y{month:%Ym%m}")


@pytest.mark.parametrize("keep", [180 * DAY, None], ids=["for a time", "for ever"])
async def test_no_role_detaches_a_young_month(
    server: TestServer, db: Database, service: Database, migrator: DatabaseConfig, keep: timedelta | None
) -> None:
    month = last_month(3)
    await make_month(server, name_of(db), "audit_events", month)
    await set_minimum(server, name_of(db), "audit_events", keep)
    said = "kept for ever" if keep is None else "kept for 180 days"
    for config in (service.config, migrator, DatabaseConfig(server.url(name_of(db)))):
        async with connect_alone(config) as connection:
            with pytest.raises(asyncpg.RestrictViolationError, match=said):
                await connection.execute(DETACH, month, ids.new("arc"))
            with pytest.raises(asyncpg.RestrictViolationError, match="not over yet"):
                await connection.execute(DETACH, last_month(0), ids.new("arc"))
    assert await is_attached(db, f"audit_events_y{month:%Ym%m}")


async def test_the_service_cannot_change_the_minimum_or_the_archives(service: Database) -> None:
    for statement in (
        "UPDATE headrace.retention_minimums SET keep = '0'",
        "DELETE FROM headrace.retention_minimums",
        "INSERT INTO headrace.retention_minimums VALUES ('x', 'x', '0')",
        "TRUNCATE headrace.retention_minimums",
        "UPDATE headrace.archives SET state = 'DROPPED'",
        "INSERT INTO headrace.archives (id, table_name, period) VALUES ('arc_1', 'audit_events', '2025-03-01')",
        f"ALTER TABLE headrace.audit_events DETACH PARTITION headrace.{NAME}",
        f"DROP TABLE headrace.{NAME}",
        f"DELETE FROM headrace.{NAME}",
        f"TRUNCATE headrace.{NAME}",
        "DELETE FROM headrace.audit_leaves",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await service.fetch_alone(statement)


async def test_a_role_without_the_grant_may_call_nothing(server: TestServer, db: Database, service: Database) -> None:
    # Even where it can see the schema.
    await server.run(f"GRANT USAGE ON SCHEMA headrace TO {STRANGER}", database=name_of(db))
    async with connect_alone(login(server, name_of(db), STRANGER, "choose-a-third")) as connection:
        for call in FUNCTIONS:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"SELECT headrace.{call}")
    await server.run(f"REVOKE USAGE ON SCHEMA headrace FROM {STRANGER}", database=name_of(db))


async def test_nothing_is_dropped_before_it_was_archived_and_verified(db: Database, service: Database) -> None:
    """By SQL, with the service's password alone: each step checks those before it."""
    await fill_audit(db, 3)
    before = await fingerprint(db, NAME)
    archive, digest = ids.new("arc"), "0" * 64

    async def ask(sql: str, *args: object) -> object:
        return (await service.fetch_alone(sql, *args))[0][0]

    with pytest.raises(asyncpg.InvalidParameterValueError):
        await ask(DETACH, MONTH, "../../etc/passwd")
    await ask(DETACH, MONTH, archive)
    assert await ask(DROP, archive, digest) is False
    assert await ask("SELECT headrace.note_verified_month($1, $2)", archive, digest) is False
    note = "SELECT headrace.note_archived_month($1, $2, 'a', 'b', now(), now(), 1, $3)"
    assert await ask(note, archive, 2, digest) is True
    assert await ask(note, archive, 3, "1" * 64) is False, "what is noted stays"
    assert await ask(DROP, archive, digest) is False, "not verified"
    assert await ask("SELECT headrace.note_verified_month($1, $2)", archive, digest) is True
    with pytest.raises(asyncpg.RestrictViolationError, match="it has 3 rows, and its archive 2"):
        await ask(DROP, archive, digest)
    assert await fingerprint(db, NAME) == before
    async with db.transaction(readonly=True) as tx:
        found = await store.find_archive(tx, archive)
    assert found is not None
    assert found.location == f"audit_events/{NAME}.{archive}.parquet"


async def test_a_minimum_that_grew_keeps_what_is_detached(
    server: TestServer, db: Database, service: Database, place: StorageConfig
) -> None:
    await fill_audit(db, 3)
    await stop_after("verified", service.config, place)
    await set_minimum(server, name_of(db), "audit_events", None)
    with pytest.raises(MonthNeeded, match="kept for ever"):
        await retire(service.config, place)
    await set_minimum(server, name_of(db), "audit_events", 180 * DAY)
    assert (await retire(service.config, place)).archive.state is ArchiveState.DROPPED


async def test_the_search_path_of_the_caller_does_not_matter(db: Database, service: Database) -> None:
    """A function that runs with the owner's rights must not find the caller's objects."""
    async with service.transaction() as tx:
        await tx.execute("CREATE TEMPORARY TABLE archives (LIKE headrace.archives)")
        await tx.execute("CREATE TEMPORARY TABLE pg_inherits (inhparent oid, inhrelid oid)")
        await tx.execute("SET LOCAL search_path = pg_temp, public")
        await tx.fetchval(DETACH, MONTH, ids.new("arc"))
        assert await tx.fetchval("SELECT count(*) FROM headrace.archives") == 1
        assert await tx.fetchval("SELECT count(*) FROM pg_temp.archives") == 0


async def test_migrate_writes_the_minimums_of_the_settings_that_are_set(
    db: Database, migrator: DatabaseConfig, service: Database
) -> None:
    who = Who.system()
    chosen = {"HEADRACE_RETENTION_AUDIT": 60 * DAY, "HEADRACE_RETENTION_LEDGER": None, "HEADRACE_RETENTION_LOCKS": DAY}
    changed = await minimums.declare(migrator, chosen, who)
    assert changed == [
        Minimum("audit_events", "HEADRACE_RETENTION_AUDIT", 60 * DAY),
        Minimum("usage_ledger", "HEADRACE_RETENTION_LEDGER", None),
    ]
    assert await minimums.declare(migrator, chosen, who) == []
    assert await minimums.declare(migrator, {}, who) == []
    async with service.transaction(readonly=True) as tx:
        assert {each.table_name: each.keep for each in await store.list_minimums(tx)} == {
            "audit_events": 60 * DAY,
            "usage_ledger": None,
            "webhook_deliveries": 180 * DAY,
        }
        trail = await tx.fetch(
            "SELECT resource ->> 'identifier' AS name, data FROM headrace.audit_events WHERE action = 'updated'"
        )
    assert {row["name"]: (row["data"]["keep_before"], row["data"]["keep"]) for row in trail} == {
        "audit_events": ("180 days", "60 days"),
        "usage_ledger": ("1825 days", "forever"),
    }
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await minimums.declare(service.config, {"HEADRACE_RETENTION_AUDIT": DAY}, who)


async def test_the_script_for_an_administrator_does_the_same(
    server: TestServer, db: Database, service: Database
) -> None:
    chosen = {"HEADRACE_RETENTION_AUDIT": 36 * timedelta(hours=1), "HEADRACE_RETENTION_DELIVERIES": None}
    for statement in minimums.script(chosen).splitlines():
        await server.run(statement, database=name_of(db))
    async with service.transaction(readonly=True) as tx:
        found = {each.setting: each.keep for each in await store.list_minimums(tx)}
    assert found == {**chosen, "HEADRACE_RETENTION_LEDGER": 5 * 365 * DAY}


async def test_a_month_on_its_way_is_read_with_the_rights_of_the_service(
    db: Database, service: Database, place: StorageConfig
) -> None:
    await fill_audit(db, 3)
    await stop_after("detached", service.config, place)
    async with aclosing(archives.read_month(service, Storage(place), "audit_events", MONTH)) as rows:
        assert len([row async for row in rows]) == 3
    archive = (await retire(service.config, place)).archive
    assert (await archives.verify(service.config, Storage(place), archive)).verified_at is not None
