"""The page about changing the schema, done to a million rows while others write. W-19."""

import asyncio
import random
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from statistics import quantiles

import pytest

from headrace import audit, ids, migrations
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Database, DatabaseConfig, connect_alone
from headrace.migrations import files, runner, script
from headrace.migrations.files import Migration, statements
from headrace.migrations.months import month_by_month
from tests.archive.months import fill_audit, name_of
from tests.conftest import ROOT, TestServer
from tests.tasks.sql import run_psql

PAGE = ROOT / "docs" / "howto" / "change-the-schema.md"
ROWS = 1_000_000
PER_SECOND = 200
LONGEST_S = 0.5

FILL = """
INSERT INTO headrace.outbox_events
  (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json, status, published_at)
SELECT 'evt_' || n, 'task.created', 1, 'task', chr(97 + n % 26) || 'x_' || n % 5000, '{"a": 1}', 'PUBLISHED', now()
FROM generate_series($1::int, $2::int) AS n
"""
INSERT = """
INSERT INTO headrace.outbox_events
  (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json, status)
VALUES ($1, 'task.created', 1, 'task', 'zz_1', '{}', 'PENDING')
"""
UPDATE = "UPDATE headrace.outbox_events SET retry_count = retry_count + 1 WHERE event_id = $1"
BY_MONTHS = "headrace.idx_audit_events_space_path"
# Each month has one, under the month's own name for it.
INDEXES_OF_MONTHS = """
SELECT count(*) = (SELECT count(*) FROM pg_inherits WHERE inhparent = 'headrace.audit_events'::regclass),
       bool_and(child.relname = 'idx_audit_events_space_path' || substr(month.relname, length('audit_events') + 1))
FROM pg_inherits
JOIN pg_class AS child ON child.oid = inhrelid
JOIN pg_index ON indexrelid = inhrelid AND indisvalid
JOIN pg_class AS month ON month.oid = indrelid
WHERE inhparent = $1::text::regclass
"""
READ = "SELECT status FROM headrace.outbox_events WHERE event_id = $1"


def files_of_the_page(first: int) -> list[Migration]:
    """The page's files, numbered from ``first`` on."""
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    up = {match[1]: block for block in blocks if (match := re.search(r"^-- \d+_(\w+)\.up\.sql$", block, re.MULTILINE))}
    down = dict(re.findall(r"^-- \d+_(\w+)\.down\.sql\n(.*?)(?=^-- \d|\Z)", blocks[-1], re.DOTALL | re.MULTILINE))
    assert up.keys() == down.keys()
    return [Migration(number, name, up[name], down[name]) for number, name in enumerate(up, first)]


@pytest.fixture
def taught(monkeypatch: pytest.MonkeyPatch) -> Sequence[Migration]:
    """Headrace as if the page's files were its newest migrations."""
    known = migrations.available()
    ours = files_of_the_page(known[-1].number + 1)
    monkeypatch.setattr(files, "available", lambda: (*known, *ours))
    return ours


async def migrate(config: DatabaseConfig, *, tries: int = 100) -> None:
    """As somebody would who is told that the tables are in use."""
    for _ in range(tries):
        try:
            await migrations.migrate(config, lock_timeout=timedelta(milliseconds=200), report=lambda _: None)
        except runner.MigrationBusy:
            await asyncio.sleep(0.2)
        else:
            return
    pytest.fail("the tables were in use all the time")


class Traffic:
    """Statements of others, so many a second, each timed from when it should have been sent."""

    def __init__(self, db: Database, rows: int) -> None:
        self._db = db
        self._rows = rows
        self.took: list[float] = []

    async def go_on(self, stop: asyncio.Event) -> None:
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(10**9):
                due = started + number / PER_SECOND
                if stop.is_set():
                    return
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                group.create_task(self._one(number, due))

    async def _one(self, number: int, due: float) -> None:
        old = f"evt_{random.randint(1, self._rows)}"
        async with self._db.transaction() as tx:
            match number % 4:
                case 0:
                    await tx.execute(INSERT, ids.new("evt"))
                case 1:
                    assert await tx.count(UPDATE, old) == 1
                case 2:
                    await audit.record(tx, Who.system(), Action.READ, Resource(ResourceType.TASK, old))
                case _:
                    assert await tx.fetchval(READ, old) is not None
        self.took.append(time.monotonic() - due)


async def fill(db: Database, rows: int) -> None:
    for first in range(1, rows + 1, 50_000):
        async with db.transaction() as tx:
            await tx.execute(FILL, first, min(first + 49_999, rows))


async def check_result(db: Database) -> None:
    async with db.transaction(readonly=True) as tx:
        wrong = "SELECT count(*) FROM headrace.outbox_events WHERE region IS DISTINCT FROM left(aggregate_id, 2)"
        assert await tx.fetchval(wrong) == 0
        region = "attname = 'region' AND attrelid = 'headrace.outbox_events'::regclass"
        assert await tx.fetchval(f"SELECT attnotnull FROM pg_attribute WHERE {region}")
        valid = "indexrelid::regclass::text ~ 'outbox_events_region' AND indisvalid"
        assert await tx.fetchval(f"SELECT count(*) FROM pg_index WHERE {valid}") == 2
        assert await tx.fetchval("SELECT indisvalid FROM pg_index WHERE indexrelid = $1::text::regclass", BY_MONTHS)
        assert [tuple(row) for row in await tx.fetch(INDEXES_OF_MONTHS, BY_MONTHS)] == [(True, True)]


@pytest.mark.both
async def test_what_the_page_says_works_and_can_be_undone(
    server: TestServer, db: Database, taught: Sequence[Migration]
) -> None:  # W-19
    await fill(db, 2500)
    owner = DatabaseConfig(server.url(name_of(db)))
    await migrate(owner)
    await check_result(db)
    back_to = taught[0].number - 1
    await migrations.roll_back(owner, to=back_to, lock_timeout=timedelta(seconds=1), report=lambda _: None)
    await migrate(owner)
    await check_result(db)


@pytest.mark.both
async def test_a_file_without_a_transaction_can_be_run_again_from_any_point(
    server: TestServer, db: Database, taught: Sequence[Migration]
) -> None:  # W-19
    await fill(db, 100)
    async with connect_alone(DatabaseConfig(server.url(name_of(db)))) as connection:
        await connection.execute(taught[0].up)
        for migration in taught[1:]:
            every = statements(migration.up)
            for stopped_after in range(1, len(every) + 1):
                for statement in every[:stopped_after]:
                    await runner._run_alone(connection, statement, timedelta(seconds=1))
    await check_result(db)


async def test_an_index_by_months_goes_on_where_it_was_broken_off(
    server: TestServer, db: Database, taught: Sequence[Migration]
) -> None:  # W-19
    owner = DatabaseConfig(server.url(name_of(db)))
    parts = month_by_month(taught[-1].up)
    assert parts is not None
    async with connect_alone(owner) as connection:
        await connection.execute("SET ROLE headrace_owner")
        await connection.execute(parts[0])
        first, *_, last = await connection.fetch(parts[1])
        for statement in first:
            await connection.execute(statement)
        await connection.execute(last[1])  # killed before it was attached
        # A month that is made meanwhile brings its own.
        await connection.execute(
            "SELECT headrace.create_month_partitions('headrace.audit_events', '2031-01-01', '2031-01-31')"
        )
    await migrate(owner)
    await check_result(db)


async def test_psql_does_what_the_printed_script_says(
    server: TestServer, db: Database, taught: Sequence[Migration]
) -> None:
    code, _, err = await run_psql(server.url(name_of(db)), script.render(taught))
    assert code == 0, err
    await check_result(db)


def shown(took: list[float]) -> str:
    return f"p99 {quantiles(took, n=100)[-1] * 1000:.0f} ms, longest {max(took) * 1000:.0f} ms"


@pytest.mark.slow
async def test_a_million_rows_change_and_nobody_waits(
    server: TestServer, db: Database, taught: Sequence[Migration]
) -> None:  # W-19
    await fill(db, ROWS)
    await fill_audit(db, ROWS // 5, datetime.now(UTC).date(), seal=False)
    await server.run("VACUUM ANALYZE headrace.outbox_events, headrace.audit_events", database=name_of(db))
    stop, traffic = asyncio.Event(), Traffic(db, ROWS)
    going = asyncio.create_task(traffic.go_on(stop))
    await asyncio.sleep(5)  # how long statements take when nothing is changed
    before = len(traffic.took)
    started = time.monotonic()
    await migrate(DatabaseConfig(server.url(name_of(db))))
    took = time.monotonic() - started
    stop.set()
    await going
    calm, busy = traffic.took[:before], traffic.took[before:]
    told = (
        f"{ROWS:,} rows in {took:.1f} s with {len(busy) / took:.0f} statements/s beside: {shown(busy)} "
        f"(while nothing changed: {shown(calm)})"
    )
    print(told)  # noqa: T201 - the figures are what one runs it for
    await check_result(db)
    assert len(busy) / took > PER_SECOND * 0.95, told
    assert max(busy) < LONGEST_S, told
