"""Months are made before they are needed, by whoever runs. W-17."""

import asyncio
import re
from datetime import UTC, datetime

import pytest

from headrace import ids
from headrace.admin import figures
from headrace.admin.health import read_health
from headrace.archive.model import MONTHLY, next_month
from headrace.archive.partitions import make_months_ahead
from headrace.audit import Who
from headrace.database import Database, DatabaseConfig, connect_alone
from tests.archive.months import fingerprint, name_of
from tests.conftest import ROOT, TestServer, may_date_events

STRAY = """
INSERT INTO headrace.audit_events (id, "timestamp", created_at, action, resource_type, resource, "user", actor_type)
SELECT $1::text, headrace.typeid_millis($1), headrace.instant_of_millis(headrace.typeid_millis($1)), 'created', 'task',
       $2, '{"uid": "u", "type": "user"}', 'USER'
"""


async def without_future(server: TestServer, db: Database) -> list[str]:
    """Drop the months after this one, as if nobody had migrated for long."""
    now = datetime.now(UTC).date()
    dropped = []
    for table in MONTHLY.values():
        month = next_month(now)
        for _ in range(3):
            dropped.append(table.partition(month))
            month = next_month(month)
    for name in dropped:
        await server.run(f"DROP TABLE headrace.{name}", database=name_of(db))
    return dropped


@pytest.mark.both
async def test_the_application_makes_the_months_that_are_missing(server: TestServer, db: Database) -> None:
    missing = await without_future(server, db)
    assert set((await read_health(db)).months_ahead.values()) == {0}
    made = await asyncio.gather(*(make_months_ahead(db, Who.system()) for _ in range(3)))
    assert sorted(name for one in made for name in one.partitions) == sorted(missing), "each once"
    health = await read_health(db)
    assert set(health.months_ahead.values()) == {3}
    async with db.transaction() as tx:
        assert await tx.fetchval("SELECT count(*) FROM headrace.audit_events WHERE action = 'created'") == len(missing)
        owners = await tx.fetch("SELECT tableowner FROM pg_tables WHERE tablename = ANY ($1)", missing)
    assert {row[0] for row in owners} == {"headrace_owner"}
    assert (await make_months_ahead(db, Who.system())).partitions == ()


async def test_rows_without_a_month_are_an_alarm(server: TestServer, db: Database) -> None:
    name = MONTHLY["audit_events"].partition(datetime.now(UTC).date())
    await server.run(f"DROP TABLE headrace.{name}", database=name_of(db))
    await make_months_ahead(db, Who.system())  # the new month is there again, and the event about it in it
    await server.run(f"DROP TABLE headrace.{name}", database=name_of(db))
    async with db.transaction() as tx:
        await tx.execute(STRAY, ids.new("aud"), {"type": "task", "identifier": "x"})
    problem = (await make_months_ahead(db, Who.system())).problems
    assert problem == ("audit_events: its default partition holds rows of the month that is to be made",)
    health = await read_health(db)
    assert health.default_rows == {"audit_events": 1, "usage_ledger": 0, "webhook_deliveries": 0}
    shown = {figure.name: figure.values for figure in figures.figures_of(health)}
    assert shown["headrace_partition_default_rows"]["audit_events",] == 1
    assert shown["headrace_audit_unsealed_seconds"][()] > 0


async def test_strays_come_home_as_the_page_says(server: TestServer, db: Database) -> None:
    page = (ROOT / "docs" / "why" / "partitions.md").read_text()
    (sql,) = re.findall(r"```sql\n(BEGIN.*?)```", page, re.DOTALL)
    async with db.transaction() as tx:
        await may_date_events(tx)
        long_ago = ids.new("aud", at=datetime(2026, 1, 9, tzinfo=UTC))
        await tx.execute(STRAY, long_ago, {"type": "task", "identifier": "x"})
    before = await fingerprint(db, "audit_events")
    async with connect_alone(DatabaseConfig(server.url(name_of(db)))) as connection:
        await connection.execute("SET ROLE headrace_owner")
        await connection.execute(sql)
    assert set((await read_health(db)).default_rows.values()) == {0}
    assert await fingerprint(db, "audit_events") == before == await fingerprint(db, "audit_events_y2026m01")
    assert await fingerprint(db, "audit_events_default") is None
