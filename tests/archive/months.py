"""Rows of long ago, and whatever else a month needs to leave."""

from datetime import UTC, date, datetime, timedelta

import pytest

from headrace import ids
from headrace.archive import archives
from headrace.archive.model import Retired
from headrace.archive.retiring import retire_month
from headrace.audit import Who
from headrace.audit.sealing import Sealer
from headrace.audit.verifying import VerifyMode
from headrace.database import Database, DatabaseConfig
from headrace.storage import Storage, StorageConfig
from tests.conftest import TestServer, may_date_events

MONTH = date(2025, 3, 1)
NAME = "audit_events_y2025m03"
LAST = f"seq = (SELECT max(seq) FROM headrace.{NAME})"

# Values that are easily lost: empty texts beside NULL, quotes and line breaks, characters outside the BMP, numbers of
# jsonb beyond a double, keys in PostgreSQL's order.
FILL_AUDIT = """
INSERT INTO headrace.audit_events (
  id, "timestamp", created_at, action, resource_type, resource, "user", diff_object, client_ip, user_agent, data,
  actor_type, trace_id, request_id
)
SELECT made.id, headrace.typeid_millis(made.id),
  headrace.instant_of_millis(headrace.typeid_millis(made.id)), 'updated', 'task',
  jsonb_build_object('type', 'task', 'identifier', 'tsk_' || n,
                     'data', jsonb_build_object('título', E'a "b"\\n\\\\ 😀')),
  jsonb_build_object('uid', 'u_' || n, 'type', 'user', 'username', ''),
  CASE WHEN n % 3 = 0
       THEN jsonb_build_object('old_object', '{"n": 1}', 'zz', 12345678901234567890.000000001, 'b', null) END,
  CASE WHEN n % 2 = 0 THEN '2001:db8::1' END, CASE n % 3 WHEN 0 THEN '' WHEN 1 THEN E'curl,"x"\\r\\n' END,
  CASE WHEN n % 5 = 0 THEN '{}'::jsonb END, 'USER', NULL, 'req-' || n
FROM unnest($1::text[]) WITH ORDINALITY AS made (id, n)
"""
MAKE_MONTH = "SELECT headrace.create_month_partitions(('headrace.' || $1)::regclass, $2, $2)"
SET_MINIMUM = "UPDATE headrace.retention_minimums SET keep = $2 WHERE table_name = $1"
# One text for all rows of a table: equal texts, equal rows.
FINGERPRINT = "SELECT count(*) || ' ' || md5(string_agg(r::text, '|' ORDER BY r::text)) FROM headrace.{table} AS r"


async def make_month(server: TestServer, name: str, table: str, month: date = MONTH) -> None:
    await server.run(MAKE_MONTH, table, month, database=name)


async def set_minimum(server: TestServer, name: str, table: str, keep: timedelta | None) -> None:
    await server.run(SET_MINIMUM, table, keep, database=name)


async def fill_audit(db: Database, rows: int, month: date = MONTH, *, seal: bool = True) -> None:
    """Events of a month, sealed as they would have been long ago."""
    start = datetime(month.year, month.month, 1, tzinfo=UTC)
    made = [ids.new("aud", at=start + timedelta(milliseconds=7 * n)) for n in range(rows)]
    async with db.transaction() as tx:
        await may_date_events(tx)
        await tx.execute(FILL_AUDIT, made)
    if seal:
        assert (await Sealer(db).run_once()).events >= rows


async def fingerprint(db: Database, table: str) -> str:
    async with db.transaction(readonly=True) as tx:
        text: str = await tx.fetchval(FINGERPRINT.format(table=table))
        return text


def name_of(db: Database) -> str:
    return db.config.url.rpartition("/")[2].partition("?")[0]


async def retire(
    config: DatabaseConfig, place: StorageConfig, table: str = "audit_events", month: date = MONTH, **how: object
) -> Retired:
    return await retire_month(config, Storage(place), table, month, who=Who.system(), **how)  # type: ignore[arg-type]


async def stop_after(last: str, config: DatabaseConfig, place: StorageConfig) -> None:
    class Stop(Exception):
        pass

    def stop(step: str) -> None:
        if step == last:
            raise Stop

    with pytest.raises(Stop):
        await retire(config, place, on_step=stop)


def archive_of(db: Database, place: StorageConfig) -> VerifyMode:
    return VerifyMode(
        retired=lambda: archives.list_months(db, "audit_events"),
        archive=lambda month: archives.read_month(db, Storage(place), "audit_events", month),
    )
