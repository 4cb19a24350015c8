"""SQL of overall figures for metrics and checks; takes a few milliseconds for any queue length."""

from dataclasses import dataclass
from datetime import timedelta

from headrace.database import Tx

# Counting stops here: it takes time per row, and a larger number adds no information.
MAX_COUNTED = 100_000


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts of deliveries end at ``MAX_COUNTED``."""

    waiting: int  # not ended, including those of paused endpoints and those whose next attempt is not due yet
    late_for: timedelta | None  # how long the most overdue delivery to an open endpoint has waited
    given_up: int  # in the last day
    active: int
    paused: int  # by a person
    failing: int  # paused because they had failed for days
    disabled: int
    blocked: int  # by the breaker, or because they asked for a pause


# A delivery is given up only after failures, and a failing endpoint has a row in webhook_health: only those are read.
OVERVIEW = f"""
WITH RECURSIVE lanes AS (
  (SELECT endpoint_id FROM headrace.webhook_queue WHERE leased_until IS NULL ORDER BY endpoint_id LIMIT 1)
  UNION ALL
  SELECT (
    SELECT queue.endpoint_id FROM headrace.webhook_queue AS queue
    WHERE queue.leased_until IS NULL AND queue.endpoint_id > lanes.endpoint_id
    ORDER BY queue.endpoint_id LIMIT 1
  )
  FROM lanes WHERE lanes.endpoint_id IS NOT NULL
), late AS (
  SELECT now() - min(first.due_at) AS late_for
  FROM lanes
  JOIN headrace.webhook_endpoints AS endpoint ON endpoint.id = lanes.endpoint_id
  LEFT JOIN headrace.webhook_health AS health ON health.endpoint_id = endpoint.id
  CROSS JOIN LATERAL (
    SELECT due_at FROM headrace.webhook_queue AS queue
    WHERE queue.endpoint_id = endpoint.id AND queue.leased_until IS NULL
    ORDER BY queue.due_at LIMIT 1
  ) AS first
  -- At an ordered endpoint a due delivery may have to wait for an earlier one.
  WHERE endpoint.status = 'ACTIVE' AND endpoint.deleted_at IS NULL AND NOT endpoint.ordered
    AND (health.blocked_until IS NULL OR health.blocked_until <= now()) AND first.due_at <= now()
), endpoints AS (
  SELECT count(*) FILTER (WHERE status = 'ACTIVE') AS active,
         count(*) FILTER (WHERE status = 'PAUSED' AND status_reason IS DISTINCT FROM 'failing') AS paused,
         count(*) FILTER (WHERE status = 'PAUSED' AND status_reason = 'failing') AS failing,
         count(*) FILTER (WHERE status = 'DISABLED') AS disabled
  FROM headrace.webhook_endpoints WHERE deleted_at IS NULL
)
SELECT
  (SELECT count(*) FROM (SELECT FROM headrace.webhook_queue LIMIT {MAX_COUNTED}) AS counted) AS waiting,
  late.late_for,
  (SELECT count(*) FROM (
    SELECT FROM headrace.webhook_health AS health
    JOIN headrace.webhook_deliveries AS attempt ON attempt.endpoint_id = health.endpoint_id AND attempt.status = 'DEAD'
    WHERE health.last_failure_at > now() - interval '1 day' AND attempt.created_at > now() - interval '1 day'
      AND NOT EXISTS (  -- an attempt that another one followed
        SELECT FROM headrace.webhook_deliveries AS later
        WHERE later.endpoint_id = attempt.endpoint_id AND later.event_id = attempt.event_id
          AND later.period = attempt.period AND later.attempt = attempt.attempt + 1
      )
    LIMIT {MAX_COUNTED}
  ) AS counted) AS given_up,
  endpoints.active, endpoints.paused, endpoints.failing, endpoints.disabled,
  (SELECT count(*) FROM headrace.webhook_health WHERE blocked_until > now()) AS blocked
FROM late, endpoints
"""


async def read_overview(tx: Tx) -> Overview:
    row = await tx.fetchrow(OVERVIEW)
    assert row is not None
    return Overview(**dict(row))
