"""A-08: a legacy audit_logs becomes part of the trail: once, wholly, and with a report that adds up."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from headrace import database
from headrace.audit import Action, ResourceType, Who, sealing, verifying
from headrace.audit.errors import ImportRefused
from headrace.audit.importing import importer
from headrace.audit.importing.changes import sides
from headrace.audit.importing.importer import ImportPlan, ImportReport, import_trail, rename_to_backup
from headrace.audit.importing.mapping import Names
from headrace.database import Database, DatabaseConfig, Row
from tests.conftest import MakeDatabase, TestServer

PLAN = ImportPlan("audit_logs", "old.audit_logs")


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"name": ["a", "b"], "size": [1, None]}, {"name": "a", "size": 1}, {"name": "b", "size": None}),
        ({"name": {"old": "a", "new": "b"}}, {"name": "a"}, {"name": "b"}),
        ({"name": {"from": "a", "to": "b"}}, {"name": "a"}, {"name": "b"}),
        ({"name": {"new": "b"}}, {"name": None}, {"name": "b"}),
        ({"before": {"name": "a"}, "after": {"name": "b"}}, {"name": "a"}, {"name": "b"}),
        ({"before": None, "after": {"name": "b"}}, None, {"name": "b"}),
        ({"old": {"name": "a"}, "new": {}}, {"name": "a"}, None),
        ({"old": "a", "new": "b"}, None, {"old": "a", "new": "b"}),
        (
            [
                {"op": "replace", "path": "/spec/replicas", "value": 3, "old": 1},
                {"op": "add", "path": "/labels", "value": {"a": "b"}},
                {"op": "remove", "path": "/note"},
                {"op": "move", "from": "/a", "path": "/b"},
            ],
            {"spec.replicas": 1, "note": None},
            {"spec.replicas": 3, "labels": {"a": "b"}, "b": "(move of a)"},
        ),
        ([{"field": "name", "old": "a", "new": "b"}], {"name": "a"}, {"name": "b"}),
        ([{"field": "name", "old_value": "a", "new_value": "b"}], {"name": "a"}, {"name": "b"}),
        ('{"name": ["a", "b"]}', {"name": "a"}, {"name": "b"}),
        ("renamed it", None, {"changes": "renamed it"}),
        ([1, 2], None, {"changes": [1, 2]}),
        ([{"what": "ever"}], None, {"changes": [{"what": "ever"}]}),
        ({"name": "b", "tags": ["x", "y", "z"]}, None, {"name": "b", "tags": ["x", "y", "z"]}),
        (None, None, None),
        ({}, None, None),
        ([], None, None),
    ],
)
def test_the_usual_shapes_of_changes(changes: Any, old: Any, new: Any) -> None:
    assert sides(changes) == (old, new)


TABLE = """
CREATE TABLE audit_logs (
  id bigserial PRIMARY KEY, created_at timestamptz, action text, resource_type text, resource_id text,
  resource_name text, user_id bigint, username text, ip_address text, user_agent text, request_id text, changes jsonb
)
"""
INSERT = """
INSERT INTO audit_logs (created_at, action, resource_type, resource_id, resource_name, user_id, username, ip_address,
                        user_agent, request_id, changes)
SELECT now() - n * interval '1 hour', (ARRAY['create', 'UPDATE', 'deleted'])[n % 3 + 1],
       (ARRAY['cluster', 'config_map', 'DatabaseInstances'])[n % 3 + 1], n::text, 'thing ' || n, n % 4, 'ada',
       '192.0.2.7', 'curl', 'req-' || n, '{"replicas": [1, 2], "password": ["old", "hunter2"]}'
FROM generate_series($1::integer, $2::integer) AS n
"""


@pytest.fixture
async def legacy(server: TestServer, make_database: MakeDatabase) -> AsyncIterator["asyncpg.Connection[Any]"]:
    connection = await asyncpg.connect(server.url(await make_database()))
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
    await connection.execute(TABLE)
    yield connection
    await connection.close()


@pytest.fixture
def owner(server: TestServer, database_url: str) -> DatabaseConfig:
    return DatabaseConfig(server.url(database_url.partition("?")[0].rpartition("/")[2], role="headrace_owner"))


async def trail(db: Database) -> list[Row]:
    return await db.fetch_alone(
        "SELECT * FROM headrace.audit_events WHERE data ->> 'imported_from' IS NOT NULL ORDER BY created_at"
    )


async def test_rows_become_events_by_the_document_s_mapping(
    db: Database, owner: DatabaseConfig, legacy: "asyncpg.Connection[Any]", who: Who
) -> None:
    await legacy.execute(INSERT, 1, 48)
    await legacy.execute(INSERT, 2400, 2402)  # a hundred days ago
    report = await import_trail(db, owner, legacy, PLAN, who=who)
    assert (report.read, report.written, report.present, report.skipped) == (48, 48, 0, {})
    assert (report.legacy, report.trail, report.counts_agree) == (48, 48, True)
    event = (await trail(db))[-1]
    row = await legacy.fetchrow("SELECT * FROM audit_logs WHERE resource_id = '1'")
    assert row is not None
    assert event["created_at"] == row["created_at"].replace(microsecond=row["created_at"].microsecond // 1000 * 1000)
    assert (event["action"], event["resource_type"]) == (Action.UPDATED, ResourceType.CONFIG_MAP)
    assert event["resource"] == {"type": "configMap", "identifier": "1", "data": {"resourceName": "thing 1"}}
    assert event["user"] == {"uid": "1", "username": "ada", "type": "user"}
    assert (event["client_ip"], event["request_method"], event["request_id"]) == ("192.0.2.7", "POST", "req-1")
    assert json.loads(event["diff_object"]["old_object"]) == {"replicas": 1, "password": "(hidden)"}
    assert json.loads(event["diff_object"]["new_object"]) == {"replicas": 2, "password": "(hidden)"}
    assert event["data"] == {"imported_from": "old.audit_logs", "legacy_id": str(row["id"])}
    (own,) = await db.fetch_alone("SELECT * FROM headrace.audit_events WHERE resource_type = 'auditTrail'")
    assert own["data"]["written"] == "48"
    homes = await db.fetch_alone("SELECT DISTINCT tableoid::regclass::text AS home FROM headrace.audit_events")
    assert "headrace.audit_events_default" not in {row["home"] for row in homes}


async def test_run_twice_it_adds_nothing_but_what_is_new(
    db: Database, owner: DatabaseConfig, legacy: "asyncpg.Connection[Any]", who: Who
) -> None:
    await legacy.execute(INSERT, 1, 20)
    await import_trail(db, owner, legacy, PLAN, who=who)
    again = await import_trail(db, owner, legacy, PLAN, who=who)
    assert (again.read, again.written, again.present, again.counts_agree) == (20, 0, 20, True)
    await legacy.execute(INSERT, 100, 101)
    more = await import_trail(db, owner, legacy, PLAN, who=who)
    assert (more.written, more.present, more.counts_agree) == (2, 20, True)
    assert len(await trail(db)) == 22
    await sealing.Sealer(db).run_once()
    assert (await verifying.verify(db)).finding is None


async def test_one_that_was_broken_off_goes_on(
    db: Database,
    owner: DatabaseConfig,
    legacy: "asyncpg.Connection[Any]",
    who: Who,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importer, "_BATCH", 8)
    await legacy.execute(INSERT, 1, 30)
    await legacy.execute("UPDATE audit_logs SET action = 'teleported' WHERE id IN (3, 29)")

    class Killed(Exception):
        pass

    def kill(read: int, total: int) -> None:
        assert total == 30
        if read == 16:
            raise Killed

    plan = replace(PLAN, accept_skipped=True)
    with pytest.raises(Killed):
        await import_trail(db, owner, legacy, plan, who=who, report=kill)
    assert len(await trail(db)) == 15
    rest = await import_trail(db, owner, legacy, replace(plan, since=timedelta(days=1)), who=who)
    assert rest.resumed
    assert (rest.read, rest.written, rest.present) == (30, 28, 0)
    assert rest.skipped == {"unknown action 'teleported'": 2}
    assert rest.counts_agree


async def test_a_dry_run_says_the_same_and_writes_nothing(
    db: Database, owner: DatabaseConfig, legacy: "asyncpg.Connection[Any]", who: Who
) -> None:
    await legacy.execute(INSERT, 1, 10)
    await legacy.execute(
        "INSERT INTO audit_logs (created_at, action, resource_type, ip_address) VALUES "
        "(now(), 'create', 'spaceship', NULL), (now(), 'teleport', 'cluster', NULL), (now(), 'create', 'cluster', 'x')"
    )
    dry = await import_trail(db, owner, legacy, replace(PLAN, dry_run=True), who=who)
    assert (dry.read, dry.written) == (13, 11)
    assert dry.skipped == {"unknown resource type 'spaceship'": 1, "unknown action 'teleport'": 1}
    assert await db.fetch_alone("SELECT FROM headrace.audit_events UNION ALL SELECT FROM headrace.audit_imports") == []
    names = Names({"teleport": Action.UPDATED}, {"spaceship": ResourceType.INSTANCE})
    done = await import_trail(db, owner, legacy, replace(PLAN, names=names), who=who)
    assert (done.written, done.skipped, done.counts_agree) == (13, {}, True)
    (odd,) = [event for event in await trail(db) if event["data"].get("ip_address")]
    assert (odd["client_ip"], odd["data"]["ip_address"]) == (None, "x")
    assert odd["user"] == {"uid": "anonymous", "username": "", "type": "anonymous"}


async def test_the_table_is_renamed_only_when_the_counts_agree(
    db: Database, owner: DatabaseConfig, legacy: "asyncpg.Connection[Any]", who: Who
) -> None:
    await legacy.execute(INSERT, 1, 5)
    done = await import_trail(db, owner, legacy, PLAN, who=who)
    with pytest.raises(ImportRefused, match="5 rows there, 4 events here"):
        await rename_to_backup(legacy, "audit_logs", replace(done, trail=4))
    await legacy.execute(INSERT, 6, 6)
    with pytest.raises(ImportRefused, match="1 rows were added meanwhile"):
        await rename_to_backup(legacy, "audit_logs", done)
    done = await import_trail(db, owner, legacy, PLAN, who=who)
    assert await rename_to_backup(legacy, "audit_logs", done) == "audit_logs_backup"
    assert await legacy.fetchval("SELECT count(*) FROM audit_logs_backup") == 6
    with pytest.raises(ImportRefused, match="no table audit_logs"):
        await import_trail(db, owner, legacy, PLAN, who=who)


async def test_a_table_with_fewer_columns_and_other_types(
    db: Database, owner: DatabaseConfig, legacy: "asyncpg.Connection[Any]", who: Who
) -> None:
    await legacy.execute(
        "CREATE SCHEMA old; CREATE TABLE old.log (id uuid, created_at timestamp, action varchar(20), "
        "resource_type varchar(20), changes text);"
        "INSERT INTO old.log VALUES (gen_random_uuid(), now() AT TIME ZONE 'UTC', 'login', 'user', 'by hand')"
    )
    done = await import_trail(db, owner, legacy, replace(PLAN, table="old.log"), who=who)
    assert (done.written, done.counts_agree) == (1, True)
    (event,) = await trail(db)
    assert abs(event["created_at"] - datetime.now(UTC)) < timedelta(minutes=1)
    assert json.loads(event["diff_object"]["new_object"]) == {"changes": "by hand"}


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("DROP TABLE audit_logs", "no table"),
        ("ALTER TABLE audit_logs DROP action", "no column action"),
        ("ALTER TABLE audit_logs RENAME TO x; CREATE VIEW audit_logs AS SELECT * FROM x", "not a table"),
        ("ALTER TABLE audit_logs ALTER created_at TYPE text", "no timestamp"),
    ],
)
async def test_what_is_no_legacy_trail_is_refused(
    db: Database, owner: DatabaseConfig, legacy: "asyncpg.Connection[Any]", who: Who, sql: str, says: str
) -> None:
    await legacy.execute(sql)
    with pytest.raises(ImportRefused, match=says):
        await import_trail(db, owner, legacy, PLAN, who=who)


async def test_past_months_need_the_owner(db: Database, legacy: "asyncpg.Connection[Any]", who: Who) -> None:
    with pytest.raises(ImportRefused, match="HEADRACE_DATABASE_OWNER_URL"):
        await import_trail(db, db.config, legacy, PLAN, who=who)


def test_a_report_that_does_not_add_up() -> None:
    report = ImportReport(datetime.now(UTC), 5, 4, 0, {"x": 1}, 5, 4, accept_skipped=True)
    assert report.counts_agree
    assert not replace(report, accept_skipped=False).counts_agree
    assert not replace(report, trail=5).counts_agree
    assert not replace(report, read=4).counts_agree


SLOW_COUNT = f"SELECT ({importer.COUNT_IMPORTED}) FROM slow"
ARCHIVED = "INSERT INTO headrace.archives (id, table_name, period) VALUES ('arc_1', 'audit_events', $1)"


async def test_nothing_is_added_to_a_month_that_has_left_for_the_archive(
    db: Database, server: TestServer, owner: DatabaseConfig, legacy: "asyncpg.Connection[Any]", who: Who
) -> None:
    await legacy.execute(INSERT, 1, 48)
    left = (datetime.now(UTC) - timedelta(days=80)).date().replace(day=1)
    await server.run(ARCHIVED, left, database=owner.url.partition("?")[0].rpartition("/")[2])
    for dry_run in (True, False):
        with pytest.raises(ImportRefused, match=f"{left:%Y-%m} was archived"):
            await import_trail(db, owner, legacy, replace(PLAN, dry_run=dry_run), who=who)
    assert await trail(db) == []
    assert (await import_trail(db, owner, legacy, replace(PLAN, since=timedelta(days=3)), who=who)).written == 48


async def test_a_month_that_leaves_during_an_import_gets_nothing_more(
    db: Database,
    server: TestServer,
    owner: DatabaseConfig,
    legacy: "asyncpg.Connection[Any]",
    who: Who,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await legacy.execute(INSERT, 1, 20)
    monkeypatch.setattr(importer, "_BATCH", 10)
    left = datetime.now(UTC).date().replace(day=1)
    name = owner.url.partition("?")[0].rpartition("/")[2]
    leaves = [server.run(ARCHIVED, left, database=name)]

    async def take(*args: Any) -> None:
        await taken(*args)
        if leaves and args[1] is not None:  # the rehearsal writes nothing
            await leaves.pop()

    taken = importer._take
    monkeypatch.setattr(importer, "_take", take)
    with pytest.raises(ImportRefused, match="was archived"):
        await import_trail(db, owner, legacy, PLAN, who=who)
    assert len(await trail(db)) == 10


async def test_counting_a_long_trail_may_take_longer_than_a_request(
    db: Database, owner: DatabaseConfig, legacy: "asyncpg.Connection[Any]", who: Who, monkeypatch: pytest.MonkeyPatch
) -> None:
    await legacy.execute(INSERT, 1, 3)
    monkeypatch.setattr(database, "_BACKSTOP_S", 0.0)
    monkeypatch.setattr(importer, "COUNT_IMPORTED", f"WITH slow AS MATERIALIZED (SELECT pg_sleep(1.3)) {SLOW_COUNT}")
    async with await Database.connect(replace(db.config, statement_timeout=timedelta(seconds=1))) as impatient:
        assert (await import_trail(impatient, owner, legacy, PLAN, who=who)).counts_agree


async def test_a_table_named_in_quotes_is_renamed_too(
    db: Database, owner: DatabaseConfig, legacy: "asyncpg.Connection[Any]", who: Who
) -> None:
    await legacy.execute(INSERT, 1, 3)
    done = await import_trail(db, owner, legacy, replace(PLAN, table='"audit_logs"'), who=who)
    assert await rename_to_backup(legacy, '"audit_logs"', done) == "audit_logs_backup"


async def test_rows_that_cannot_be_events_stop_it_before_anything_is_written(
    db: Database, owner: DatabaseConfig, legacy: "asyncpg.Connection[Any]", who: Who
) -> None:
    await legacy.execute(INSERT, 1, 4)
    await legacy.execute("UPDATE audit_logs SET action = 'teleported' WHERE id IN (2, 3)")
    stopped = await import_trail(db, owner, legacy, PLAN, who=who)
    assert (stopped.read, stopped.written, stopped.trail, stopped.counts_agree) == (4, 0, 0, False)
    assert stopped.skipped == {"unknown action 'teleported'": 2}
    assert sorted(stopped.examples["unknown action 'teleported'"]) == ["2", "3"]
    assert await trail(db) == []
    with pytest.raises(ImportRefused, match="was not renamed"):
        await rename_to_backup(legacy, "audit_logs", stopped)
    done = await import_trail(db, owner, legacy, replace(PLAN, accept_skipped=True), who=who)
    assert (done.written, done.trail, done.counts_agree) == (2, 2, True)
    assert await rename_to_backup(legacy, "audit_logs", done) == "audit_logs_backup"


async def test_a_second_run_uses_up_no_numbers(
    db: Database, owner: DatabaseConfig, legacy: "asyncpg.Connection[Any]", who: Who
) -> None:
    await legacy.execute(INSERT, 1, 30)
    await import_trail(db, owner, legacy, PLAN, who=who)
    given = "SELECT last_value FROM headrace.audit_events_seq"
    before = (await db.fetch_alone(given))[0][0]
    assert (await import_trail(db, owner, legacy, PLAN, who=who)).written == 0
    assert (await db.fetch_alone(given))[0][0] == before
