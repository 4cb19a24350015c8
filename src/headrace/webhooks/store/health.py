"""SQL of endpoint health: consecutive failures, the circuit breaker, and automatic pauses."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.database import Tx
from headrace.webhooks.model import Endpoint
from headrace.webhooks.store.endpoints import COLUMNS, endpoint_of


@dataclass(frozen=True, slots=True)
class EndpointOutcome:
    """The result of one batch of attempts for an endpoint: the failures since its last success in the batch.

    ``after_pause``: one of these failures is the single trial that follows a pause of the breaker.
    """

    endpoint_id: str
    succeeded: bool
    failures: int
    error: str | None
    pause: timedelta | None
    after_pause: bool = False


# At the threshold of consecutive failures the breaker opens: for half a minute, then twice as long after each failed
# trial, up to ten minutes. Deliveries that were under way when the breaker opened count as failures, but change neither
# the pause nor its length. A longer pause that the endpoint itself requested takes precedence.
RECORD = """
INSERT INTO headrace.webhook_health AS health (
  endpoint_id, failures, failed_trials, blocked_until, last_failure_at, last_error
)
SELECT fared.endpoint_id, fared.failures, fared.trials,
       nullif(greatest(now() + fared.pause, fared.broken_until), '-infinity'),
       CASE WHEN fared.failures > 0 THEN now() END, fared.error
FROM (
  SELECT given.endpoint_id, given.error, given.pause, total.failures, total.trials,
         CASE WHEN total.failures < $7 THEN '-infinity'
              WHEN total.was_open AND NOT given.after_pause THEN known.blocked_until
              ELSE now() + least(interval '30 seconds' * 2 ^ least(total.trials, 10), interval '10 minutes')
         END AS broken_until
  FROM unnest($1::varchar[], $2::boolean[], $3::integer[], $4::text[], $5::interval[], $6::boolean[])
    AS given (endpoint_id, succeeded, failures, error, pause, after_pause)
  LEFT JOIN headrace.webhook_health AS known ON known.endpoint_id = given.endpoint_id
  CROSS JOIN LATERAL (
    SELECT given.failures + CASE WHEN given.succeeded THEN 0 ELSE coalesce(known.failures, 0) END AS failures,
           NOT given.succeeded AND coalesce(known.failures >= $7, false) AS was_open,
           CASE WHEN given.succeeded OR coalesce(known.failures, 0) < $7 THEN 0
                ELSE known.failed_trials + given.after_pause::integer END AS trials
  ) AS total
  ORDER BY given.endpoint_id
) AS fared
ON CONFLICT (endpoint_id) DO UPDATE
SET failures = excluded.failures, failed_trials = excluded.failed_trials, blocked_until = excluded.blocked_until,
    last_failure_at = coalesce(excluded.last_failure_at, health.last_failure_at),
    last_error = coalesce(excluded.last_error, health.last_error)
"""
# Written only when failing begins or ends: the row is wide, and every update bumps what the owner reads.
MARK_FAILING = """
UPDATE headrace.webhook_endpoints SET failing_since = now()
WHERE id = ANY($1) AND failing_since IS NULL AND deleted_at IS NULL AND status = 'ACTIVE'
"""
CLEAR_FAILING = (
    "UPDATE headrace.webhook_endpoints SET failing_since = NULL WHERE id = ANY($1) AND failing_since IS NOT NULL"
)


async def record(tx: Tx, outcomes: Sequence[EndpointOutcome], *, threshold: int) -> None:
    """Record the health of endpoints. In a transaction of its own: it locks rows of endpoints."""
    await tx.execute(
        RECORD,
        [each.endpoint_id for each in outcomes],
        [each.succeeded for each in outcomes],
        [each.failures for each in outcomes],
        [each.error for each in outcomes],
        [each.pause for each in outcomes],
        [each.after_pause for each in outcomes],
        threshold,
    )
    if failing := sorted(each.endpoint_id for each in outcomes if each.failures and not each.succeeded):
        await tx.execute(MARK_FAILING, failing)
    if well := sorted(each.endpoint_id for each in outcomes if each.succeeded):
        await tx.execute(CLEAR_FAILING, well)


FAILING_TOO_LONG = f"""
SELECT {COLUMNS} FROM headrace.webhook_endpoints
WHERE id = ANY($1) AND status = 'ACTIVE' AND deleted_at IS NULL AND failing_since < coalesce($3, now()) - $2::interval
ORDER BY id
FOR NO KEY UPDATE
"""


async def find_failing_too_long(
    tx: Tx, endpoint_ids: Sequence[str], *, limit: timedelta, now: datetime | None = None
) -> list[Endpoint]:
    """Lock those of these endpoints that have been failing for longer than ``limit``."""
    return [endpoint_of(row) for row in await tx.fetch(FAILING_TOO_LONG, list(endpoint_ids), limit, now)]


FORGET = "DELETE FROM headrace.webhook_health WHERE endpoint_id = $1"


async def forget(tx: Tx, endpoint_id: str) -> None:
    """Reset an endpoint's health to that of a new one."""
    await tx.execute(FORGET, endpoint_id)
