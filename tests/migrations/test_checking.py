"""``headrace migrate --check``: locks, durations, and who goes on. W-19."""

from datetime import timedelta

import pytest

from headrace import migrations
from headrace.database import DatabaseConfig
from headrace.migrations import checking, files
from tests.conftest import MakeDatabase, TestServer

UP = """-- headrace: no-transaction
-- headrace: needs 0031
-- A comment; with a semicolon.
CREATE TABLE headrace.fresh (id integer);
ALTER TABLE headrace.fresh ADD COLUMN more integer;
ALTER TABLE headrace.tasks ADD COLUMN space varchar(8);
CALL headrace.backfill('headrace.tasks', 'space = user_id', 'space IS NULL');
ALTER TABLE headrace.tasks ADD CONSTRAINT ck_tasks_space CHECK (space IS NOT NULL) NOT VALID;
ALTER TABLE headrace.tasks VALIDATE CONSTRAINT ck_tasks_space;
CREATE INDEX CONCURRENTLY idx_tasks_space ON headrace.tasks (space);
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_tasks_space;
"""


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> migrations.Migration:
    known = migrations.available()
    migration = migrations.Migration(known[-1].number + 1, "space", UP, "")
    monkeypatch.setattr(files, "available", lambda: (*known, migration))
    return migration


async def test_each_statement_with_its_lock_and_its_time_on_tables_of_this_size(
    server: TestServer, make_database: MakeDatabase, template: str, added: migrations.Migration
) -> None:
    name = await make_database(template)
    config = DatabaseConfig(server.url(name), role="test")
    await server.run("UPDATE pg_class SET reltuples = 10000000 WHERE oid = 'headrace.tasks'::regclass", database=name)
    found, (check,) = await checking.check(config)
    assert (check.migration, check.expands, check.migration.needs) == (added, False, 31)
    assert [(effect.table, effect.lock) for effect in check.effects] == [
        ("tasks", "ACCESS EXCLUSIVE"),
        ("tasks", "ROW EXCLUSIVE"),
        ("tasks", "ACCESS EXCLUSIVE"),
        ("tasks", "SHARE UPDATE EXCLUSIVE"),
        ("tasks", "SHARE UPDATE EXCLUSIVE"),
        (None, "SHARE UPDATE EXCLUSIVE"),
    ]
    assert check.effects[1].seconds == 10_000_000 / checking.BACKFILL_ROWS_PER_SECOND
    assert check.effects[0].seconds == 0
    assert [each.number for each in found.pending] == [added.number], "it only looks"


async def test_every_migration_of_ours_is_understood(server: TestServer, make_database: MakeDatabase) -> None:
    """A statement that no kind fits would be left out of the list without a word."""
    config = DatabaseConfig(server.url(await make_database()), role="test")
    await migrations.migrate(config, to=12, lock_timeout=timedelta(seconds=5))
    _, checks = await checking.check(config)
    for check in checks:
        touched = {statement for statement in check.migration.up.split("\n") if statement.startswith("ALTER TABLE ")}
        made = [line.split()[2] for line in check.migration.up.split("\n") if line.startswith("CREATE TABLE ")]
        changed = {line.split()[2] for line in touched} - set(made)
        assert {f"headrace.{effect.table}" for effect in check.effects} >= changed, check.migration
