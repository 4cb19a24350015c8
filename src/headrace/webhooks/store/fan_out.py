"""SQL of the fan-out: the transaction that publishes an event writes its deliveries."""

from collections.abc import Sequence
from typing import Any

from headrace.database import Tx
from headrace.outbox.consumers import StoredEvent
from headrace.outbox.envelope import envelope

CHANNEL = "headrace_webhooks"

# The endpoint's row decides which events it receives; interests only decide which events are written at all. Endpoints
# of a suspended owner receive nothing.
FAN_OUT = """
WITH given AS (
  SELECT * FROM unnest(
    $1::varchar[], $2::varchar[], $3::varchar[], $4::varchar[], $5::varchar[], $6::jsonb[]
  ) WITH ORDINALITY AS given (event_id, event_type, user_id, task_type, aggregate, body, position)
), wanted AS (
  SELECT given.*, endpoint.id AS endpoint_id, endpoint.ordered, headrace.new_delivery_id(given.event_id) AS delivery_id,
         headrace.typeid_month(given.event_id) AS period
  FROM given
  CROSS JOIN LATERAL (
    SELECT * FROM headrace.webhook_endpoints AS own WHERE own.user_id = given.user_id AND NOT own.every_user
    UNION ALL
    SELECT * FROM headrace.webhook_endpoints AS wide WHERE wide.every_user
  ) AS endpoint
  JOIN headrace.users AS owner ON owner.id = endpoint.user_id
  WHERE endpoint.status IN ('ACTIVE', 'PAUSED') AND endpoint.deleted_at IS NULL AND owner.status = 'ACTIVE'
    AND (owner.role = 'ADMIN' OR NOT endpoint.every_user)
    AND (given.task_type IS NULL OR endpoint.task_types IS NULL OR endpoint.task_types ? given.task_type)
    AND EXISTS (
      SELECT FROM jsonb_array_elements_text(endpoint.subscribed_events) AS pattern
      WHERE pattern IN ('*', given.event_type)
        OR right(pattern, 2) = '.*' AND starts_with(given.event_type, left(pattern, -1))
    )
), written AS (
  INSERT INTO headrace.webhook_deliveries
    (period, delivery_id, endpoint_id, event_id, event_type, attempt, request_body, status)
  SELECT period, delivery_id, endpoint_id, event_id, event_type, 1,
         body, 'PENDING'
  FROM wanted
), queued AS (
  INSERT INTO headrace.webhook_queue (endpoint_id, delivery_id, period, aggregate)
  SELECT endpoint_id, delivery_id, period, CASE WHEN ordered THEN aggregate END
  FROM wanted ORDER BY position
  RETURNING id
)
SELECT count(*) FROM queued
"""


async def fan_out(tx: Tx, events: Sequence[StoredEvent]) -> int:
    """Write a delivery for each event and each subscribed endpoint; returns their number."""
    given = [stored.event for stored in events]
    count: int = await tx.fetchval(
        FAN_OUT,
        [event.id for event in given],
        [event.type for event in given],
        [event.user_id or event.payload.get("user_id") for event in given],
        [event.payload.get("type") if event.aggregate_type == "task" else None for event in given],
        [f"{event.aggregate_type}:{event.aggregate_id}"[:160] for event in given],
        [body_of(stored) for stored in events],
    )
    return count


def body_of(stored: StoredEvent) -> dict[str, Any]:
    """The body that every receiver gets, with the ``timestamp`` that Standard Webhooks requires."""
    return {**envelope(stored), "timestamp": stored.created_at}


NOTIFY = "SELECT pg_notify($1, '')"


async def wake_senders(tx: Tx) -> None:
    """Wake senders when the transaction commits."""
    await tx.execute(NOTIFY, CHANNEL)
