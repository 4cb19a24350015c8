"""SQL for administrators of the outbox: list waiting and dead events, retry dead ones, overall figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from headrace import walks
from headrace.database import Row, Tx
from headrace.outbox import presence
from headrace.outbox.presence import RelayRow
from headrace.sql import Mark, Where

# Counting stops here: it takes time per row, and a larger number adds no information.
MAX_COUNTED = 100_000


class EventStatus(StrEnum):
    PENDING = "PENDING"
    PUBLISHED = "PUBLISHED"
    FAILED = "FAILED"
    DEAD = "DEAD"


@dataclass(frozen=True, slots=True)
class OutboxEvent:
    """A row of the outbox."""

    id: int
    event_id: str
    event_type: str
    event_version: int
    aggregate_type: str
    aggregate_id: str
    user_id: str | None
    trace_id: str | None
    payload_json: Any
    headers_json: Any
    status: EventStatus
    retry_count: int
    next_retry_at: datetime | None
    published_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Filter:
    status: EventStatus | None = None
    event_type: str | None = None
    aggregate_id: str | None = None
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """Figures of the outbox. Counts end at ``MAX_COUNTED``."""

    waiting: int
    failed: int
    dead: int
    oldest_waiting: timedelta | None
    written: int  # since the database was created
    broker_waiting: int
    broker_given_up: int
    relays: tuple[RelayRow, ...]


_COLUMNS = """id, event_id, event_type, event_version, aggregate_type, aggregate_id, user_id, trace_id, payload_json,
  headers_json, status, retry_count, next_retry_at, published_at, created_at"""
SELECT = f"SELECT {_COLUMNS} FROM headrace.outbox_events"
REVIVE = f"""
UPDATE headrace.outbox_events SET status = 'PENDING', retry_count = 0, next_retry_at = now()
WHERE event_id = $1 AND status = 'DEAD'
RETURNING {_COLUMNS}
"""
REVIVE_SOME = """
UPDATE headrace.outbox_events SET status = 'PENDING', retry_count = 0, next_retry_at = now()
WHERE id = ANY (ARRAY(
  SELECT id FROM headrace.outbox_events
  WHERE status = 'DEAD' AND ($1::varchar IS NULL OR event_type = $1)
  ORDER BY id LIMIT $2
  FOR UPDATE SKIP LOCKED
))
"""
WAKE = "SELECT headrace.wake_relays()"
OVERVIEW = f"""
SELECT
  (SELECT count(*) FROM (SELECT FROM headrace.outbox_events WHERE status = 'PENDING' LIMIT {MAX_COUNTED}) AS counted)
    AS waiting,
  (SELECT count(*) FROM (SELECT FROM headrace.outbox_events WHERE status = 'FAILED' LIMIT {MAX_COUNTED}) AS counted)
    AS failed,
  (SELECT count(*) FROM (SELECT FROM headrace.outbox_events WHERE status = 'DEAD' LIMIT {MAX_COUNTED}) AS counted)
    AS dead,
  (SELECT now() - min(created_at) FROM (
    -- Only of the most overdue events, which an index finds at once for any queue length.
    (SELECT created_at FROM headrace.outbox_events WHERE status = 'PENDING' ORDER BY next_retry_at LIMIT 100)
    UNION ALL
    (SELECT created_at FROM headrace.outbox_events WHERE status = 'FAILED' ORDER BY next_retry_at LIMIT 100)
  ) AS overdue) AS oldest_waiting,
  coalesce(pg_sequence_last_value('headrace.outbox_events_id_seq'), 0) AS written,
  (SELECT count(*) FROM (
    SELECT FROM headrace.broker_messages WHERE given_up_at IS NULL LIMIT {MAX_COUNTED}
  ) AS counted) AS broker_waiting,
  (SELECT count(*) FROM headrace.broker_messages WHERE given_up_at IS NOT NULL) AS broker_given_up
"""


def list_statement(wanted: Filter, before: int | None, limit: int) -> tuple[str, Sequence[object]]:
    """A walk along the ids, or over the events of a status other than PUBLISHED: most events are published."""
    where = Where()
    if wanted.status is not EventStatus.PUBLISHED:
        where = where.is_word("status", wanted.status)
    where = where.below("id", before)
    rest = Where(first=where.next).eq("event_type", wanted.event_type)
    rest = rest.eq("aggregate_id", wanted.aggregate_id).eq("user_id", wanted.user_id)
    if wanted.status is EventStatus.PUBLISHED:
        rest = rest.is_word("status", wanted.status)
    source = walks.source("headrace.outbox_events", where, "id DESC", rows=walks.bound(rest, limit))
    sql = walks.selection(_COLUMNS, [source], "event", rest, "id DESC")
    return sql, (*where.args, *rest.args, limit)


async def list_events(tx: Tx, wanted: Filter, *, older_than: Mark | None, limit: int) -> walks.Found[OutboxEvent]:
    """Newest first."""
    return await walks.walk(
        tx,
        lambda mark, limit: list_statement(wanted, None if mark is None else int(mark[1]), limit),
        _event,
        lambda row: (row["created_at"], str(row["id"])),
        older_than=older_than,
        limit=limit,
    )


async def find_event(tx: Tx, event_id: str) -> OutboxEvent | None:
    row = await tx.fetchrow(f"{SELECT} WHERE event_id = $1", event_id)
    return None if row is None else _event(row)


async def revive(tx: Tx, event_id: str) -> OutboxEvent | None:
    """Retry a dead event with a fresh count of tries; None if it is not dead."""
    row = await tx.fetchrow(REVIVE, event_id)
    if row is None:
        return None
    await tx.execute(WAKE)
    return _event(row)


async def revive_some(tx: Tx, *, event_type: str | None, limit: int) -> int:
    """Retry at most ``limit`` dead events, oldest first."""
    revived = await tx.count(REVIVE_SOME, event_type, limit)
    if revived:
        await tx.execute(WAKE)
    return revived


async def read_overview(tx: Tx) -> Overview:
    row = await tx.fetchrow(OVERVIEW)
    assert row is not None
    return Overview(**dict(row), relays=tuple(await presence.list_alive(tx)))


def _event(row: Row) -> OutboxEvent:
    fields = {name: row[name] for name in OutboxEvent.__dataclass_fields__}
    return OutboxEvent(**fields | {"status": EventStatus(row["status"])})
