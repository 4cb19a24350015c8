"""The page about changing the schema, done to a million rows while others write. W-19."""

import asyncio
import random
import re
import time
from collections.abc import Sequence
from datetime import timedelta
from statistics import quantiles

import pytest

from headrace import ids, migrations
from headrace.database import Database, DatabaseConfig, connect_alone
from headrace.migrations import runner
from headrace.migrations.files import Migration, statements
from tests.conftest import ROOT, TestServer
from tests.operations.months import name_of

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
    monkeypatch.setattr(runner, "available", lambda: (*known, *ours))
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
            match number % 3:
                case 0:
                    await tx.execute(INSERT, ids.new("evt"))
                case 1:
                    assert await tx.count(UPDATE, old) == 1
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
                    await connection.execute(statement)
    await check_result(db)


def shown(took: list[float]) -> str:
    return f"p99 {quantiles(took, n=100)[-1] * 1000:.0f} ms, longest {max(took) * 1000:.0f} ms"


@pytest.mark.slow
async def test_a_million_rows_change_and_nobody_waits(
    server: TestServer, db: Database, taught: Sequence[Migration]
) -> None:  # W-19
    await fill(db, ROWS)
    await server.run("VACUUM ANALYZE headrace.outbox_events", database=name_of(db))
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
