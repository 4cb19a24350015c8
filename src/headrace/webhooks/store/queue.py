"""SQL of the delivery queue: claim with a lease, record, take over, expire.

A row of ``webhook_queue`` is a delivery that has not ended; a row of ``webhook_deliveries`` is one attempt. The first
attempt's row is written with the delivery, each later one when it is claimed: so every request that may have been sent
has a row.

``leased_until`` is the fence: a takeover writes another value, so the record of a late sender matches no row.

Rows of the queue are locked by one statement, and their attempts read and written by the next. In one, PostgreSQL 18
may crash: where a row changed while its lock was waited for, the recheck sets up partition pruning for the whole
statement once more in memory of its own, and frees it while the rest of the statement goes on with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headrace.database import Row, Tx
from headrace.webhooks.model import DeliveryStatus, Endpoint
from headrace.webhooks.store.deliveries import month_of
from headrace.webhooks.store.endpoints import COLUMNS, endpoint_of

LOST = "the sender died or was too slow; whether this arrived is not known"

# -- claiming


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that a sender has until ``leased_until``, with all it needs to send it."""

    id: int
    endpoint: Endpoint
    delivery_id: str
    event_id: str
    event_type: str
    body: str = field(repr=False)
    attempt: int
    failures: int
    losses: int
    leased_until: datetime
    endpoint_failures: int  # consecutive, before this attempt
    overlaps: bool  # the endpoint's previous secret signs as well


# Skips from endpoint to endpoint in the index and takes as many deliveries of each as the sender has room for. An
# endpoint with an open breaker or a requested pause is left out; afterwards it gets one trial delivery. The order is
# random, so that a sender which cannot take all endpoints is fair.
LOCK_DUE = """
WITH RECURSIVE lanes AS (
  (SELECT endpoint_id FROM headrace.webhook_queue WHERE leased_until IS NULL ORDER BY endpoint_id LIMIT 1)
  UNION ALL
  SELECT (
    SELECT queue.endpoint_id FROM headrace.webhook_queue AS queue
    WHERE queue.leased_until IS NULL AND queue.endpoint_id > lanes.endpoint_id
    ORDER BY queue.endpoint_id LIMIT 1
  )
  FROM lanes WHERE lanes.endpoint_id IS NOT NULL
), open AS MATERIALIZED (
  SELECT endpoint.id, health.failures,
         CASE WHEN coalesce(health.failures, 0) < $6 THEN coalesce(busy.room, $4)
              WHEN EXISTS (
                SELECT FROM headrace.webhook_queue AS sent
                WHERE sent.endpoint_id = endpoint.id AND sent.leased_until IS NOT NULL
              ) THEN 0
              ELSE least(coalesce(busy.room, $4), 1) END AS room
  FROM lanes
  JOIN headrace.webhook_endpoints AS endpoint ON endpoint.id = lanes.endpoint_id
  LEFT JOIN headrace.webhook_health AS health ON health.endpoint_id = endpoint.id
  LEFT JOIN unnest($2::varchar[], $3::integer[]) AS busy (endpoint_id, room) ON busy.endpoint_id = endpoint.id
  WHERE endpoint.status = 'ACTIVE' AND endpoint.deleted_at IS NULL
    AND (health.blocked_until IS NULL OR health.blocked_until <= coalesce($1, now()))
  ORDER BY random()
)
SELECT due.id, coalesce(open.failures, 0) AS endpoint_failures
FROM open
CROSS JOIN LATERAL (
  SELECT queue.id
  FROM headrace.webhook_queue AS queue
  WHERE queue.endpoint_id = open.id AND queue.leased_until IS NULL AND queue.due_at <= coalesce($1, now())
    AND (queue.aggregate IS NULL OR NOT EXISTS (
      SELECT FROM headrace.webhook_queue AS earlier
      WHERE earlier.endpoint_id = queue.endpoint_id AND earlier.aggregate = queue.aggregate AND earlier.id < queue.id
    ))
  ORDER BY queue.due_at, queue.id
  LIMIT open.room
  FOR UPDATE SKIP LOCKED
) AS due
LIMIT $5
"""
LEASE = """
WITH attempts AS MATERIALIZED (
  SELECT due.id, due.period, due.is_pending, due.delivery_id AS last_delivery_id, attempt.event_id, attempt.event_type,
         attempt.request_body, attempt.endpoint_id,
         CASE WHEN due.is_pending THEN due.delivery_id
              ELSE headrace.new_delivery_id(attempt.event_id) END AS delivery_id
  FROM headrace.webhook_queue AS due
  JOIN headrace.webhook_deliveries AS attempt ON attempt.delivery_id = due.delivery_id AND attempt.period = due.period
  WHERE due.id = ANY($1)
), leased AS (
  UPDATE headrace.webhook_queue AS queue
  SET leased_until = coalesce($2, now()) + $3::interval, is_pending = true, delivery_id = attempts.delivery_id,
      attempt = queue.attempt + CASE WHEN attempts.is_pending THEN 0 ELSE 1 END
  FROM attempts WHERE queue.id = attempts.id
  RETURNING queue.id, queue.attempt, queue.failures, queue.losses, queue.leased_until
), begun AS (
  INSERT INTO headrace.webhook_deliveries
    (period, delivery_id, endpoint_id, event_id, event_type, attempt, request_body, status, next_retry_at)
  SELECT period, delivery_id, endpoint_id, event_id, event_type, leased.attempt, request_body, 'PENDING',
         coalesce($2, now())
  FROM attempts JOIN leased USING (id)
  WHERE NOT attempts.is_pending
), followed AS (
  -- Only an attempt that waits for another one is RETRYING.
  UPDATE headrace.webhook_deliveries AS last SET status = 'DEAD', next_retry_at = NULL
  FROM attempts
  WHERE NOT attempts.is_pending AND last.delivery_id = attempts.last_delivery_id AND last.period = attempts.period
    AND last.status = 'RETRYING'
)
SELECT id, endpoint_id, delivery_id, event_id, event_type, request_body::text AS body, leased.attempt, leased.failures,
       leased.losses, leased.leased_until
FROM attempts JOIN leased USING (id)
ORDER BY id
"""


async def claim(
    tx: Tx,
    *,
    rooms: Mapping[str, int],
    new_room: int,
    limit: int,
    threshold: int,
    lease: timedelta,
    secret_overlap: timedelta,
    now: datetime | None = None,
) -> list[Claimed]:
    """Lease due deliveries: of each endpoint as many as ``rooms`` says, or ``new_room`` for an unknown one."""
    due = await tx.fetch(LOCK_DUE, now, list(rooms), list(rooms.values()), new_room, limit, threshold)
    if not due:
        return []
    failures = {row["id"]: row["endpoint_failures"] for row in due}
    rows = await tx.fetch(LEASE, list(failures), now, lease)
    endpoints = await _read_endpoints(tx, sorted({row["endpoint_id"] for row in rows}), secret_overlap)
    return [_claimed(row, *endpoints[row["endpoint_id"]], failures[row["id"]]) for row in rows]


ENDPOINTS = f"""
SELECT {COLUMNS}, secret_rotated_at + $2::interval > now() AS overlaps
FROM headrace.webhook_endpoints WHERE id = ANY($1)
"""


async def _read_endpoints(
    tx: Tx, endpoint_ids: Sequence[str], secret_overlap: timedelta
) -> dict[str, tuple[Endpoint, bool]]:
    found = {}
    for row in await tx.fetch(ENDPOINTS, endpoint_ids, secret_overlap):
        fields = dict(row)
        overlaps = bool(fields.pop("overlaps"))
        found[fields["id"]] = endpoint_of(fields), overlaps
    return found


def _claimed(row: Row, endpoint: Endpoint, overlaps: bool, endpoint_failures: int) -> Claimed:
    return Claimed(
        id=row["id"],
        endpoint=endpoint,
        delivery_id=row["delivery_id"],
        event_id=row["event_id"],
        event_type=row["event_type"],
        body=row["body"],
        attempt=row["attempt"],
        failures=row["failures"],
        losses=row["losses"],
        leased_until=row["leased_until"],
        endpoint_failures=endpoint_failures,
        overlaps=overlaps,
    )


# -- recording


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt. ``retry_in`` None: no retry."""

    claimed: Claimed
    status: DeliveryStatus
    request_headers: Mapping[str, str]
    response_status: int | None = None
    response_body: str | None = None
    error: str | None = None
    duration: timedelta = timedelta(0)
    retry_in: timedelta | None = None
    pause: timedelta | None = None  # requested by the endpoint

    @property
    def is_success(self) -> bool:
        return self.status is DeliveryStatus.SUCCESS


LOCK_HELD = """
SELECT queue.id
FROM unnest($1::bigint[], $2::timestamptz[]) AS given (id, fence)
JOIN headrace.webhook_queue AS queue ON queue.id = given.id AND queue.leased_until = given.fence
ORDER BY queue.id
FOR UPDATE OF queue
"""
RECORD = """
WITH held AS MATERIALIZED (
  SELECT queue.id, queue.delivery_id, queue.period, given.*
  FROM unnest(
    $1::bigint[], $2::timestamptz[], $3::varchar[], $4::jsonb[], $5::integer[], $6::text[], $7::text[], $8::integer[],
    $9::interval[]
  ) AS given (queue_id, fence, status, headers, response_status, response_body, error, duration_ms, retry_in)
  JOIN headrace.webhook_queue AS queue ON queue.id = given.queue_id AND queue.leased_until = given.fence
), ended AS (
  DELETE FROM headrace.webhook_queue AS queue USING held WHERE queue.id = held.id AND held.retry_in IS NULL
), again AS (
  UPDATE headrace.webhook_queue AS queue
  SET leased_until = NULL, is_pending = false, failures = failures + 1, due_at = now() + held.retry_in
  FROM held WHERE queue.id = held.id AND held.retry_in IS NOT NULL
)
UPDATE headrace.webhook_deliveries AS attempt
SET status = held.status, request_headers = held.headers, response_status = held.response_status,
    response_body = held.response_body, error = held.error, duration_ms = held.duration_ms,
    next_retry_at = now() + held.retry_in, delivered_at = CASE WHEN held.status = 'SUCCESS' THEN now() END
FROM held
WHERE attempt.delivery_id = held.delivery_id AND attempt.period = held.period AND attempt.status = 'PENDING'
"""

# The late answer to an attempt recorded as lost: it corrects that attempt's record and ends nothing.
RECORD_LATE = """
UPDATE headrace.webhook_deliveries AS attempt
SET request_headers = given.headers, response_status = given.response_status, response_body = given.response_body,
    error = coalesce(given.error, attempt.error || '; it was answered late'), duration_ms = given.duration_ms
FROM unnest($1::varchar[], $2::date[], $3::jsonb[], $4::integer[], $5::text[], $6::text[], $7::integer[])
  AS given (delivery_id, period, headers, response_status, response_body, error, duration_ms)
WHERE attempt.delivery_id = given.delivery_id AND attempt.period = given.period AND attempt.response_status IS NULL
  AND attempt.request_headers IS NULL AND attempt.status IN ('RETRYING', 'DEAD')
"""


async def record(tx: Tx, outcomes: Sequence[Outcome]) -> frozenset[int]:
    """Record the results of attempts; returns the ids whose lease the sender still held."""
    ids = [each.claimed.id for each in outcomes]
    fences = [each.claimed.leased_until for each in outcomes]
    held = await tx.fetch(LOCK_HELD, ids, fences)
    await tx.execute(
        RECORD,
        ids,
        fences,
        [each.status for each in outcomes],
        [dict(each.request_headers) for each in outcomes],
        [each.response_status for each in outcomes],
        [each.response_body for each in outcomes],
        [each.error for each in outcomes],
        [_millis(each.duration) for each in outcomes],
        [each.retry_in for each in outcomes],
    )
    return frozenset(row["id"] for row in held)


async def record_late(tx: Tx, outcomes: Sequence[Outcome]) -> int:
    """Record late results of attempts that count as lost; returns the number of rows updated."""
    return await tx.count(
        RECORD_LATE,
        [each.claimed.delivery_id for each in outcomes],
        [month_of(each.claimed.delivery_id) for each in outcomes],
        [dict(each.request_headers) for each in outcomes],
        [each.response_status for each in outcomes],
        [each.response_body for each in outcomes],
        [each.error for each in outcomes],
        [_millis(each.duration) for each in outcomes],
    )


def _millis(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)


GIVE_BACK = """
UPDATE headrace.webhook_queue AS queue SET leased_until = NULL
FROM unnest($1::bigint[], $2::timestamptz[]) AS given (id, fence)
WHERE queue.id = given.id AND queue.leased_until = given.fence
"""


async def give_back(tx: Tx, claimed: Sequence[Claimed]) -> int:
    """Release leased deliveries that were never sent; this counts as no attempt."""
    return await tx.count(GIVE_BACK, [each.id for each in claimed], [each.leased_until for each in claimed])


# -- taking over, ending

LOCK_EXPIRED = """
SELECT id FROM headrace.webhook_queue
WHERE leased_until < coalesce($2, now())
ORDER BY leased_until LIMIT $1
FOR UPDATE SKIP LOCKED
"""
TAKE_OVER = """
WITH expired AS MATERIALIZED (
  SELECT id, delivery_id, period, losses FROM headrace.webhook_queue WHERE id = ANY($1)
), returned AS (
  UPDATE headrace.webhook_queue AS queue
  SET leased_until = NULL, is_pending = false, losses = queue.losses + 1, due_at = coalesce($2, now())
  FROM expired WHERE queue.id = expired.id AND expired.losses < $4
), ended AS (
  DELETE FROM headrace.webhook_queue AS queue USING expired WHERE queue.id = expired.id AND expired.losses >= $4
)
UPDATE headrace.webhook_deliveries AS attempt
SET status = CASE WHEN expired.losses < $4 THEN 'RETRYING' ELSE 'DEAD' END, error = $3,
    next_retry_at = CASE WHEN expired.losses < $4 THEN coalesce($2, now()) END
FROM expired
WHERE attempt.delivery_id = expired.delivery_id AND attempt.period = expired.period AND attempt.status = 'PENDING'
"""


async def take_over(tx: Tx, *, max_losses: int, limit: int = 500, now: datetime | None = None) -> int:
    """Release deliveries whose lease expired and record their attempt as lost; returns their number."""
    expired = [row["id"] for row in await tx.fetch(LOCK_EXPIRED, limit, now)]
    if expired:
        await tx.execute(TAKE_OVER, expired, now, LOST, max_losses)
    return len(expired)


LOCK_OPEN = "SELECT id FROM headrace.webhook_queue WHERE endpoint_id = $1 ORDER BY id LIMIT $2 FOR UPDATE"
END_ALL = """
WITH ended AS (
  DELETE FROM headrace.webhook_queue WHERE id = ANY($1) RETURNING delivery_id, period
)
UPDATE headrace.webhook_deliveries AS attempt SET status = $2, error = $3, next_retry_at = NULL
FROM ended
WHERE attempt.delivery_id = ended.delivery_id AND attempt.period = ended.period
  AND attempt.status IN ('PENDING', 'RETRYING')
"""


async def end_all(tx: Tx, endpoint_id: str, *, status: DeliveryStatus, error: str, limit: int = 5000) -> int:
    """End an endpoint's waiting deliveries; returns their number, ``limit`` if more may remain."""
    open_ = [row["id"] for row in await tx.fetch(LOCK_OPEN, endpoint_id, limit)]
    if open_:
        await tx.execute(END_ALL, open_, status, error)
    return len(open_)


# Includes deliveries fanned out while their endpoint was being deleted or disabled: they are never sent.
LOCK_OLD = """
SELECT id
FROM headrace.webhook_queue AS queue
WHERE leased_until IS NULL AND (
  created_at < coalesce($3, now()) - $2::interval
  OR endpoint_id IN (
    SELECT id FROM headrace.webhook_endpoints WHERE deleted_at IS NOT NULL OR status = 'DISABLED'
  )
)
ORDER BY id LIMIT $1
FOR UPDATE OF queue SKIP LOCKED
"""
EXPIRE = """
WITH old AS (
  DELETE FROM headrace.webhook_queue WHERE id = ANY($1)
  RETURNING delivery_id, period, created_at >= coalesce($3, now()) - $2::interval AS is_orphan
)
UPDATE headrace.webhook_deliveries AS attempt
SET status = 'DEAD', next_retry_at = NULL, error = coalesce(
  attempt.error,
  CASE WHEN old.is_orphan THEN 'the endpoint was deleted or disabled' ELSE 'it waited for too long' END
)
FROM old
WHERE attempt.delivery_id = old.delivery_id AND attempt.period = old.period
  AND attempt.status IN ('PENDING', 'RETRYING')
"""


async def expire(tx: Tx, limit: int, *, lifetime: timedelta, now: datetime | None = None) -> int:
    """Expire at most ``limit`` deliveries that waited too long or whose endpoint is gone; returns their number."""
    old = [row["id"] for row in await tx.fetch(LOCK_OLD, limit, lifetime, now)]
    if old:
        await tx.execute(EXPIRE, old, lifetime, now)
    return len(old)
