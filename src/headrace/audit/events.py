"""Reads the trail by action, resource, actor, origin and time; newest first, a page at a time."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from headrace.audit.canonical import micros
from headrace.audit.errors import EventNotFound, SearchInvalid
from headrace.audit.model import Action, EventId, ResourceType
from headrace.database import Database, Row, Tx
from headrace.sql import Mark, Where

_PAGE = 1000
_MAX_WORDS = 5


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the trail."""

    id: EventId
    created_at: datetime
    action: Action
    resource_type: ResourceType
    resource: Mapping[str, Any]
    user: Mapping[str, Any]
    actor_type: str
    space_path: str | None
    diff_object: Mapping[str, Any] | None
    client_ip: str | None
    user_agent: str | None
    request_method: str | None
    request_id: str | None
    trace_id: str | None
    data: Mapping[str, str] | None
    seq: int

    @property
    def mark(self) -> Mark:
        return self.created_at, self.id


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Filters of events; None does not filter. ``text`` is one to five whole identifiers, which must all occur in the
    event: its id, the resource's or the user's, a user name, an address, a request's or a trace's id."""

    action: Action | None = None
    resource_type: ResourceType | None = None
    resource_id: str | None = None
    user_id: str | None = None
    client_ip: str | None = None
    request_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None
    changes: bool | None = None  # True leaves out reads

    def __post_init__(self) -> None:
        # Validated at once, because a streaming reader has begun its answer when the query runs.
        if self.text is not None and not 1 <= len(self.words) <= _MAX_WORDS:
            raise SearchInvalid

    @property
    def words(self) -> Sequence[str]:
        return (self.text or "").split()

    @property
    def narrowed(self) -> bool:
        """Whether it filters by one value of an indexed column."""
        values = (self.action, self.resource_type, self.resource_id, self.user_id, self.client_ip, self.request_id)
        return any(value is not None for value in values)


# Names for the indexed expressions; the planner flattens the subquery.
_EVENTS = """(
  SELECT *, resource ->> 'identifier' AS resource_id, "user" ->> 'uid' AS user_id, "user" ->> 'username' AS username,
         "timestamp" AS millis
  FROM headrace.audit_events
) AS event"""
_SELECT = f"""
SELECT id, created_at, action, resource_type, resource, "user", actor_type, space_path, diff_object, client_ip,
       user_agent, request_method, request_id, trace_id, data, seq
FROM {_EVENTS}"""
# Columns that a word may match, each with its own index.
_IDENTIFIERS = ("id", "resource_id", "user_id", "username", "client_ip", "request_id", "trace_id")


async def list_events(tx: Tx, wanted: EventFilter, *, older_than: Mark | None = None, limit: int) -> list[Event]:
    """Events, newest first. Each part of the statement reads one index in order and stops at the limit, so that the
    time depends neither on the size of the trail nor on the frequency of a value."""
    if wanted.words:
        sql, args = _by_identifier(wanted, older_than, limit)
    elif wanted.changes and not wanted.narrowed:
        sql, args = _by_action(wanted, older_than, limit)
    else:
        where, order = _older(_where(wanted), wanted, older_than)
        sql, args = f"{_SELECT} {where.sql} {order} LIMIT {limit:d}", where.args
    return [_event(row) for row in await tx.fetch(sql, *args)]


async def count_events(tx: Tx, wanted: EventFilter) -> int:
    """The number of matching events; reads all of them."""
    where = _with_words(_where(wanted), wanted.words)
    count: int = await tx.fetchval(f"SELECT count(*) FROM {_EVENTS} {where.sql}", *where.args)
    return count


async def get_event(tx: Tx, event_id: str, *, user_id: str | None = None) -> Event:
    """One event, only of this user if given."""
    where = Where().eq("id", event_id).eq("user_id", user_id)
    row = await tx.fetchrow(f"{_SELECT} {where.sql}", *where.args)
    if row is None:
        raise EventNotFound
    return _event(row)


async def pages(db: Database, wanted: EventFilter) -> AsyncIterator[list[Event]]:
    """All events, newest first, for a reader of any speed: no transaction stays open between pages."""
    mark = None
    while True:
        async with db.transaction(readonly=True) as tx:
            page = await list_events(tx, wanted, older_than=mark, limit=_PAGE)
        if page:
            yield page
        if len(page) < _PAGE:
            return
        mark = page[-1].mark


_MERGED = "ORDER BY created_at DESC, id DESC"


def _by_identifier(wanted: EventFilter, mark: Mark | None, limit: int) -> tuple[str, Sequence[object]]:
    """The newest events with the first word in any of the identifier columns, merged."""
    parts: list[str] = []
    args: list[object] = []
    for column in _IDENTIFIERS:
        where = _where(wanted, Where(first=len(args) + 1).eq(column, wanted.words[0]))
        where, order = _older(_with_words(where, wanted.words[1:]), wanted, mark)
        parts.append(f"({_SELECT} {where.sql} {order} LIMIT {limit:d})")
        args += where.args
    # An event found by several parts (a user who changed themselves) is returned once.
    found = f"SELECT DISTINCT ON (created_at, id) * FROM ({' UNION ALL '.join(parts)}) AS event"
    return f"{found} {_MERGED} LIMIT {limit:d}", args


def _by_action(wanted: EventFilter, mark: Mark | None, limit: int) -> tuple[str, Sequence[object]]:
    """The newest events of each action except reads, merged, which avoids scanning long sequences of reads."""
    parts: list[str] = []
    args: list[object] = []
    for action in sorted(set(Action) - {Action.READ}):
        one = replace(wanted, action=action)
        where, order = _older(_where(one, Where(first=len(args) + 1)), one, mark)
        parts.append(f"({_SELECT} {where.sql} {order} LIMIT {limit:d})")
        args += where.args
    return f"{' UNION ALL '.join(parts)} {_MERGED} LIMIT {limit:d}", args


def _with_words(where: Where, words: Sequence[str]) -> Where:
    for word in words:
        where = where.in_any(_IDENTIFIERS, word)
    return where


def _where(wanted: EventFilter, where: Where | None = None) -> Where:
    where = (where or Where()).is_word("resource_type", wanted.resource_type).is_word("action", wanted.action)
    where = where.is_not_word("action", Action.READ if wanted.changes and wanted.action is None else None)
    where = where.eq("resource_id", wanted.resource_id).eq("user_id", wanted.user_id)
    where = where.eq("client_ip", wanted.client_ip).eq("request_id", wanted.request_id)
    # The first pair selects the months, the second the position in an index.
    where = where.since("created_at", wanted.since).until("created_at", wanted.until)
    return where.since("millis", _millis(wanted.since)).until("millis", _millis(wanted.until))


def _older(where: Where, wanted: EventFilter, mark: Mark | None) -> tuple[Where, str]:
    """The list after the mark, and its order. Both columns hold the same instant: the index on an action
    has the one, all others have the other."""
    others = (wanted.resource_type, wanted.resource_id, wanted.user_id, wanted.client_ip, wanted.request_id)
    if wanted.action is not None and not any((*others, wanted.words)):
        return where.older_than(("created_at", "id"), mark), _MERGED
    ours = None if mark is None else (round(mark[0].timestamp() * 1000), mark[1])
    return where.older_than(("millis", "id"), ours), "ORDER BY millis DESC, id DESC"


def _millis(at: datetime | None) -> int | None:
    """The first millisecond not before this instant: events have millisecond precision."""
    return None if at is None else -(-micros(at) // 1000)


def _event(row: Row) -> Event:
    return Event(**dict(row.items()))
