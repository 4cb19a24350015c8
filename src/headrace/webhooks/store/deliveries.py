"""SQL that reads deliveries: lists, one delivery, statistics. The SQL of senders is in ``queue``."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from headrace import ids
from headrace.database import Row, Tx
from headrace.sql import Where
from headrace.webhooks.model import Delivery, DeliveryId, DeliveryStatus, EndpointId, Statistics

_ITEM = """id, delivery_id, endpoint_id, event_id, event_type, attempt, status, error, response_status, duration_ms,
  next_retry_at, delivered_at, created_at"""
_WHOLE = f"{_ITEM}, request_headers, request_body, response_body"


def delivery_of(row: Row) -> Delivery:
    fields: dict[str, Any] = dict(row)
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


async def list_deliveries(tx: Tx, wanted: DeliveryFilter, *, before: int | None = None, limit: int) -> list[Delivery]:
    """Deliveries, newest first."""
    endpoints = None
    if wanted.user_id is not None:
        endpoints = [row["id"] for row in await tx.fetch(ENDPOINTS_OF, wanted.user_id)]
        if wanted.endpoint_id is not None:
            endpoints = [each for each in endpoints if each == wanted.endpoint_id]
    elif wanted.endpoint_id is not None:
        endpoints = [wanted.endpoint_id]
    where = Where().eq("event_id", wanted.event_id).eq("event_type", wanted.event_type)
    if wanted.event_id is not None:
        where = where.eq("period", month_of(wanted.event_id))
    where = where.is_word("status", wanted.status).since("created_at", wanted.since).until("created_at", wanted.until)
    where = where.below("id", before)
    if endpoints is None:
        rows = await tx.fetch(
            f"SELECT {_ITEM} FROM headrace.webhook_deliveries {where.sql} ORDER BY id DESC LIMIT ${where.next}",
            *where.args,
            limit,
        )
    else:
        # One index scan for each endpoint, each in order, merged.
        clauses = "".join(f" AND {clause}" for clause in where.clauses)
        rows = await tx.fetch(
            f"SELECT found.* FROM unnest(${where.next}::text[]) AS mine (id) CROSS JOIN LATERAL ("
            f"SELECT {_ITEM} FROM headrace.webhook_deliveries WHERE endpoint_id = mine.id{clauses} "
            f"ORDER BY id DESC LIMIT ${where.next + 1}) AS found ORDER BY found.id DESC LIMIT ${where.next + 1}",
            *where.args,
            endpoints,
            limit,
        )
    return [delivery_of(row) for row in rows]


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
