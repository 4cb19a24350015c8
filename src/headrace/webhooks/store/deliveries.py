"""SQL that reads deliveries: lists, one delivery, statistics. The SQL of senders is in ``queue``."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from headrace import clock, ids, walks
from headrace.database import Row, Tx
from headrace.sql import Mark, Where
from headrace.webhooks.model import Delivery, DeliveryId, DeliveryStatus, EndpointId, Statistics

_ITEM = """id, delivery_id, endpoint_id, event_id, event_type, attempt, status, error, response_status, duration_ms,
  next_retry_at, delivered_at, created_at"""
_WHOLE = f"{_ITEM}, request_headers, request_body, response_body"


_TABLE = "headrace.webhook_deliveries"
_FIELDS = frozenset(Delivery.__dataclass_fields__)


def delivery_of(row: Row) -> Delivery:
    fields: dict[str, Any] = {name: value for name, value in row.items() if name in _FIELDS}
    return Delivery(
        **{
            **fields,
            "delivery_id": DeliveryId(fields["delivery_id"]),
            "endpoint_id": EndpointId(fields["endpoint_id"]),
            "status": DeliveryStatus(fields["status"]),
        }
    )


def month_of(name: str) -> date:
    """The partition of a delivery or an event, from its id, so that only one is read."""
    at: datetime = ids.time_of(name).astimezone(UTC)
    return date(at.year, at.month, 1)


FIND = f"SELECT {_WHOLE} FROM headrace.webhook_deliveries WHERE delivery_id = $1 AND period = $2"


async def find(tx: Tx, delivery_id: str) -> Delivery | None:
    row = await tx.fetchrow(FIND, delivery_id, month_of(delivery_id))
    return None if row is None else delivery_of(row)


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Filters of a list of deliveries; None does not filter. ``user_id`` None means all users."""

    user_id: str | None
    endpoint_id: str | None = None
    event_id: str | None = None
    event_type: str | None = None
    status: DeliveryStatus | None = None
    since: datetime | None = None
    until: datetime | None = None


ENDPOINTS_OF = "SELECT id FROM headrace.webhook_endpoints WHERE user_id = $1"
# Ids are drawn in the order of time, but for transactions that were open meanwhile. So the first id of a time is found
# by halving: two dozen look-ups by the primary key, and none of the rows that are newer.
FIRST_ID_SINCE = """
WITH RECURSIVE halving AS (
  SELECT min(id) AS low, max(id) + 1 AS high FROM headrace.webhook_deliveries
  UNION ALL
  SELECT CASE WHEN probe.created_at < at THEN probe.id + 1 ELSE low END,
         CASE WHEN probe.created_at < at THEN high ELSE middle END
  FROM (
    SELECT low, high, (low + high) / 2 AS middle, $1::timestamptz + $2::interval AS at FROM halving WHERE low < high
  ) AS range
  CROSS JOIN LATERAL (
    SELECT id, created_at FROM headrace.webhook_deliveries WHERE id >= middle ORDER BY id LIMIT 1
  ) AS probe
)
SELECT low FROM halving WHERE low >= high
"""
MAX_OPEN = timedelta(hours=1)  # how long a transaction that writes deliveries may have been open
_MAX_CLOCK_SKEW = timedelta(days=1)  # of the programs that made the ids
_ORDER = "id DESC"


async def list_deliveries(
    tx: Tx, wanted: DeliveryFilter, *, older_than: Mark | None = None, limit: int
) -> walks.Found[Delivery]:
    """Deliveries, newest first."""
    endpoints = None
    if wanted.user_id is not None:
        endpoints = [row["id"] for row in await tx.fetch(ENDPOINTS_OF, wanted.user_id)]
        if wanted.endpoint_id is not None:
            endpoints = [each for each in endpoints if each == wanted.endpoint_id]
    elif wanted.endpoint_id is not None:
        endpoints = [wanted.endpoint_id]
    if endpoints == []:
        return walks.Found([])
    chosen = Chosen(wanted, endpoints, *await _ids_of_times(tx, wanted))
    await tx.execute(walks.IN_INDEX_ORDER)
    if wanted.status in _RARE and (endpoints is not None or wanted.status in _OPEN):
        few = await _list_few(tx, chosen, older_than=older_than, limit=limit)
        if few is not None:
            return walks.Found(few)
    return await walks.walk(
        tx,
        lambda mark, limit: list_statement(chosen, mark, limit),
        delivery_of,
        lambda row: (row["created_at"], str(row["id"])),
        older_than=older_than,
        limit=limit,
        rows=chosen.rows,
    )


async def _ids_of_times(tx: Tx, wanted: DeliveryFilter) -> tuple[int | None, int | None]:
    since = until = None
    if wanted.since is not None:
        since = await tx.fetchval(FIRST_ID_SINCE, wanted.since, -MAX_OPEN)
    if wanted.until is not None:
        until = await tx.fetchval(FIRST_ID_SINCE, wanted.until, MAX_OPEN)
    return since, until


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a statement reads: the filter, its endpoints (None: all), and the ids of its times."""

    wanted: DeliveryFilter
    endpoints: Sequence[str] | None = None
    since_id: int | None = None
    until_id: int | None = None

    @property
    def rows(self) -> int:
        """Rows that one walk reads; each endpoint has a walk of its own."""
        return walks.share(len(self.endpoints or ()))

    def walk(self, first: int, mark: Mark | None) -> Where:
        where = Where(first).eq("event_id", self.wanted.event_id)
        if self.wanted.event_id is not None:
            where = where.eq("period", month_of(self.wanted.event_id))
        elif self.wanted.until is not None and self.wanted.until < clock.now():
            # An attempt lies in the month of its event, which is not later than the attempt.
            month = (self.wanted.until + _MAX_CLOCK_SKEW).astimezone(UTC).date().replace(day=1)
            where = where.not_after("period", month)
        if self.endpoints is None and self.wanted.status is DeliveryStatus.DEAD:
            where = where.is_word("status", self.wanted.status)  # idx_webhook_deliveries_dead
        where = where.since("id", self.since_id).below("id", self.until_id)
        return where.below("id", None if mark is None else int(mark[1]))

    def rest(self, first: int) -> Where:
        where = Where(first).eq("event_type", self.wanted.event_type).is_word("status", self.wanted.status)
        return where.since("created_at", self.wanted.since).until("created_at", self.wanted.until)


def list_statement(chosen: Chosen, mark: Mark | None, limit: int) -> tuple[str, Sequence[object]]:
    """A walk along the ids; of some endpoints one for each, merged."""
    if chosen.endpoints is None:
        where = chosen.walk(1, mark)
        rest = chosen.rest(where.next)
        source = walks.source(_TABLE, where, _ORDER, rows=chosen.rows)
        sql = walks.selection(_ITEM, [source], "attempt", rest, _ORDER, rows=chosen.rows)
        return sql, (*where.args, *rest.args, limit)
    where = chosen.walk(2, mark)
    rest = chosen.rest(where.next)
    # The endpoint is part of the order, though there is only one, and so only the index that begins with it gives the
    # order: by the ids alone a walk would lead over attempts of all endpoints. Twice, because the planner would drop
    # a plain equality from the order.
    of_endpoint = replace(where, clauses=("endpoint_id = ANY (ARRAY[mine.id, mine.id])", *where.clauses))
    order = f"endpoint_id, {_ORDER}"
    source = walks.source(_TABLE, of_endpoint, order, rows=chosen.rows)
    inner = walks.selection(_ITEM, [source], "attempt", rest, order, rows=chosen.rows)
    sql = (
        f"SELECT found.* FROM unnest($1::text[]) AS mine (id) CROSS JOIN LATERAL ({inner}) AS found "
        f"ORDER BY found.id DESC LIMIT ${rest.next}"
    )
    return sql, (list(chosen.endpoints), *where.args, *rest.args, limit)


_OPEN = (DeliveryStatus.PENDING, DeliveryStatus.FAILED, DeliveryStatus.RETRYING)  # of idx_webhook_deliveries_due
_RARE = (*_OPEN, DeliveryStatus.DEAD)


async def _list_few(tx: Tx, chosen: Chosen, *, older_than: Mark | None, limit: int) -> list[Delivery] | None:
    """The page from an index on the status; None if too many attempts have it for reading them all."""
    sql, args = few_statement(chosen, older_than, limit)
    rows = await tx.fetch(sql, *args)
    return None if rows[0]["size"] > walks.ROWS else [delivery_of(row) for row in rows if row["id"] is not None]


def few_statement(chosen: Chosen, mark: Mark | None, limit: int) -> tuple[str, Sequence[object]]:
    """Each row says how many attempts have the status, up to one more than a walk reads; if none matches, the only row
    has no id."""
    status = Where().is_word("status", chosen.wanted.status).clauses[0]
    at_most = f"ORDER BY next_retry_at LIMIT {walks.ROWS + 1}"
    args: tuple[object, ...] = ()
    few = f"SELECT {_ITEM}, period FROM {_TABLE} WHERE {status} {at_most}"
    if chosen.endpoints is not None:
        args = (list(chosen.endpoints),)
        few = (
            "SELECT found.* FROM unnest($1::text[]) AS mine (id) CROSS JOIN LATERAL ("
            f"SELECT {_ITEM}, period FROM {_TABLE} WHERE endpoint_id = mine.id AND {status} {at_most}"
            f") AS found LIMIT {walks.ROWS + 1}"
        )
    where = chosen.walk(len(args) + 1, mark)
    rest = chosen.rest(where.next)
    both = " AND ".join((*where.clauses, *rest.clauses))
    sql = f"""
WITH few AS MATERIALIZED ({few}), bounds AS (SELECT count(*) AS size FROM few)
SELECT bounds.size, page.* FROM bounds LEFT JOIN LATERAL (
  SELECT {_ITEM} FROM few WHERE {both} ORDER BY {_ORDER} LIMIT ${rest.next}
) AS page ON true
"""
    return sql, (*args, *where.args, *rest.args, limit)


# Counts ended attempts by their creation time: that of the event's row, or of the retry.
STATISTICS = """
SELECT count(*) FILTER (WHERE status <> 'PENDING') AS attempts,
       count(*) FILTER (WHERE status = 'SUCCESS') AS successes,
       count(*) FILTER (WHERE status IN ('RETRYING', 'FAILED', 'DEAD')) AS failures,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY duration_ms)
         FILTER (WHERE response_status IS NOT NULL) AS latencies,
       max(delivered_at) AS last_success_at
FROM headrace.webhook_deliveries
WHERE endpoint_id = $1 AND created_at >= $2 AND period >= $3
"""
HEALTH = """
SELECT endpoint.failing_since, coalesce(health.failures, 0) AS failures, health.last_failure_at, health.last_error,
       CASE WHEN health.blocked_until > now() THEN health.blocked_until END AS blocked_until,
       (SELECT count(*) FROM headrace.webhook_queue AS queue WHERE queue.endpoint_id = endpoint.id) AS waiting
FROM headrace.webhook_endpoints AS endpoint
LEFT JOIN headrace.webhook_health AS health ON health.endpoint_id = endpoint.id
WHERE endpoint.id = $1
"""


async def read_statistics(tx: Tx, endpoint_id: str, *, since: datetime) -> Statistics:
    # A retry lies in its event's month, which may be the one before.
    first = since.astimezone(UTC).date().replace(day=1)
    counted = await tx.fetchrow(STATISTICS, endpoint_id, since, _month_before(first))
    health = await tx.fetchrow(HEALTH, endpoint_id)
    assert counted is not None
    assert health is not None  # the caller has read the endpoint
    latencies = counted["latencies"] or (None, None, None)
    return Statistics(
        since=since,
        attempts=counted["attempts"],
        successes=counted["successes"],
        failures=counted["failures"],
        waiting=health["waiting"],
        success_rate=counted["successes"] / counted["attempts"] if counted["attempts"] else None,
        latency_p50_ms=latencies[0],
        latency_p95_ms=latencies[1],
        latency_p99_ms=latencies[2],
        last_success_at=counted["last_success_at"],
        last_failure_at=health["last_failure_at"],
        last_error=health["last_error"],
        consecutive_failures=health["failures"],
        failing_since=health["failing_since"],
        blocked_until=health["blocked_until"],
    )


def _month_before(month: date) -> date:
    return month.replace(year=month.year - 1, month=12) if month.month == 1 else month.replace(month=month.month - 1)
