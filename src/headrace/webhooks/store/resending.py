"""SQL of deliveries sent by hand: a test, one delivery again, all failed ones again."""

from collections.abc import Mapping
from datetime import datetime

from headrace.database import Tx
from headrace.webhooks.model import Delivery, EndpointId
from headrace.webhooks.store.deliveries import delivery_of

INSERT_TEST = """
WITH written AS (
  INSERT INTO headrace.webhook_deliveries
    (period, delivery_id, endpoint_id, event_id, event_type, attempt, request_body, status)
  SELECT headrace.typeid_month($2), headrace.new_delivery_id($2), $1, $2, $3, 1, $4, 'PENDING'
  RETURNING *
), queued AS (
  INSERT INTO headrace.webhook_queue (endpoint_id, delivery_id, period)
  SELECT endpoint_id, delivery_id, period FROM written
)
SELECT {columns} FROM written
"""
_COLUMNS = """id, delivery_id, endpoint_id, event_id, event_type, attempt, status, error, response_status, duration_ms,
  next_retry_at, delivered_at, created_at, request_headers, request_body, response_body"""


async def insert_test(
    tx: Tx, endpoint_id: EndpointId, *, event_id: str, event_type: str, body: Mapping[str, object]
) -> Delivery:
    """Insert a delivery of an event that is not in the outbox."""
    row = await tx.fetchrow(INSERT_TEST.format(columns=_COLUMNS), endpoint_id, event_id, event_type, dict(body))
    assert row is not None
    return delivery_of(row)


# The last attempt of each event, with the next attempt number. Concurrent calls conflict on the unique key of endpoint,
# event and attempt.
RESEND = """
WITH chosen AS (
  SELECT DISTINCT ON (last.event_id) last.*
  FROM headrace.webhook_deliveries AS last
  WHERE last.endpoint_id = $1 AND {which}
    AND NOT EXISTS (
      SELECT FROM headrace.webhook_deliveries AS later
      WHERE later.endpoint_id = last.endpoint_id AND later.event_id = last.event_id AND later.period = last.period
        AND later.attempt > last.attempt
    )
  ORDER BY last.event_id, last.attempt DESC
  LIMIT $2
), written AS (
  INSERT INTO headrace.webhook_deliveries
    (period, delivery_id, endpoint_id, event_id, event_type, attempt, request_body, status)
  SELECT period, headrace.new_delivery_id(event_id), endpoint_id, event_id, event_type, attempt + 1, request_body,
         'PENDING'
  FROM chosen ORDER BY id
  ON CONFLICT DO NOTHING
  RETURNING *
), queued AS (
  INSERT INTO headrace.webhook_queue (endpoint_id, delivery_id, period, attempt)
  SELECT endpoint_id, delivery_id, period, attempt FROM written ORDER BY id
)
SELECT {columns} FROM written
"""
RESEND_ONE = RESEND.format(
    which="last.event_id = $3 AND last.period = headrace.typeid_month($3) "
    "AND last.status IN ('SUCCESS', 'FAILED', 'DEAD')",
    columns=_COLUMNS,
)
RESEND_FAILED = RESEND.format(
    which="last.status IN ('FAILED', 'DEAD') AND last.created_at >= $3 AND last.created_at < $4 "
    "AND last.period >= (date_trunc('month', $3::timestamptz AT TIME ZONE 'UTC') - interval '1 month')::date",
    columns="count(*) AS resent",
)


async def resend_one(tx: Tx, endpoint_id: str, event_id: str) -> Delivery | None:
    """Insert a further attempt, whatever the last result; None while an attempt is open."""
    row = await tx.fetchrow(RESEND_ONE, endpoint_id, 1, event_id)
    return None if row is None else delivery_of(row)


async def resend_failed(tx: Tx, endpoint_id: str, *, since: datetime, until: datetime, limit: int) -> int:
    """Insert a further attempt for each event whose last one failed for good in this range; returns their number."""
    count: int = await tx.fetchval(RESEND_FAILED, endpoint_id, limit, since, until)
    return count
