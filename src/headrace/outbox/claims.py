"""SQL of the relay: claim, publish, fail.

The first unpublished event of an aggregate is its head. Only heads are claimed, and later events go with their head:
so no event overtakes it, and the lease on its row covers the whole aggregate. While a relay holds a head,
``next_retry_at`` is the end of the lease. That instant is also the fence: the next claim writes a later one, so the
writes of a late relay match no row.

A claim counts as a failed try until the event is published, so that an event which kills its relay counts as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from headrace.database import Row, Tx
from headrace.outbox.consumers import StoredEvent
from headrace.outbox.model import Event, EventId

CLAIM_NEW = "SELECT * FROM headrace.claim_events($1, $2, $3, $4)"

# A subquery for each row, which cannot become a join over the whole table: one lookup in the partial index.
DUE_FAILED = """
  SELECT id FROM headrace.outbox_events AS head
  WHERE status = 'FAILED' AND next_retry_at <= coalesce($1, now()) AND id = (
    SELECT id FROM headrace.outbox_events AS waiting
    WHERE waiting.aggregate_type = head.aggregate_type AND waiting.aggregate_id = head.aggregate_id
      AND waiting.status IN ('PENDING', 'FAILED')
    ORDER BY aggregate_type, aggregate_id, id
    LIMIT 1
  )
  ORDER BY next_retry_at
  LIMIT $2
  FOR UPDATE SKIP LOCKED
"""

# A last try that began and never ended makes the event dead as well.
CLAIM_FAILED = f"""
WITH due AS ({DUE_FAILED})
UPDATE headrace.outbox_events AS event
SET status = CASE WHEN retry_count < $4 THEN 'FAILED' ELSE 'DEAD' END,
    next_retry_at = coalesce($1, now()) + $3::interval,
    retry_count = retry_count + CASE WHEN retry_count < $4 THEN 1 ELSE 0 END
FROM due WHERE event.id = due.id
RETURNING event.id, event.retry_count, event.next_retry_at, event.status = 'FAILED' AS leased
"""

READ = """
SELECT head.id AS head, event.*
FROM headrace.outbox_events AS head
CROSS JOIN LATERAL (
  SELECT id, event_id, event_type, event_version, aggregate_type, aggregate_id, user_id, trace_id, payload_json,
         headers_json, created_at
  FROM headrace.outbox_events AS waiting
  WHERE waiting.aggregate_type = head.aggregate_type AND waiting.aggregate_id = head.aggregate_id
    AND waiting.id >= head.id AND waiting.status IN ('PENDING', 'FAILED')
  ORDER BY aggregate_type, aggregate_id, id
  LIMIT $2
) AS event
WHERE head.id = ANY($1::bigint[])
ORDER BY event.id
"""

PUBLISH = "SELECT headrace.publish_events($1, $2, $3) AS id"

FAIL = """
UPDATE headrace.outbox_events
SET status = CASE WHEN retry_count < $3 THEN 'FAILED' ELSE 'DEAD' END,
    next_retry_at = coalesce($4, now()) + $5::interval
WHERE id = $1 AND status IN ('PENDING', 'FAILED') AND next_retry_at = $2
RETURNING status, aggregate_type, aggregate_id, next_retry_at
"""

# Events behind a failed one are not due before it: otherwise every claim would scan all of them in vain.
WAIT_BEHIND = """
UPDATE headrace.outbox_events SET next_retry_at = $4
WHERE aggregate_type = $1 AND aggregate_id = $2 AND id > $3 AND status IN ('PENDING', 'FAILED') AND next_retry_at < $4
"""


@dataclass(frozen=True, slots=True)
class Chain:
    """Leased events of one aggregate: the head, which holds the lease, and those behind it."""

    events: tuple[StoredEvent, ...]
    leased_until: datetime
    tries: int  # of the head, including this one

    @property
    def head(self) -> StoredEvent:
        return self.events[0]

    def head_alone(self) -> "Chain":
        return Chain(self.events[:1], self.leased_until, self.tries)


@dataclass(frozen=True, slots=True)
class Claim:
    chains: tuple[Chain, ...] = ()
    set_aside: int = 0  # events whose relay died during the last try: tried alone from now on, or dead
    first_due_at: datetime | None = None  # no unclaimed event is due before it


async def claim_new(
    tx: Tx,
    *,
    limit: int,
    length: int,
    lease: timedelta,
    now: datetime | None = None,
    floor: datetime | None = None,
) -> Claim:
    """Lease at most ``limit`` aggregates whose next event was not tried yet, each with at most ``length`` events.
    Events due before the floor are not scanned."""
    rows = await tx.fetch(CLAIM_NEW, now, limit, lease, floor)
    first = min((row["due_at"] for row in rows), default=None)
    return replace(await _read(tx, rows, length), first_due_at=first)


async def claim_failed(tx: Tx, *, max_tries: int, lease: timedelta, now: datetime | None = None) -> Claim:
    """Lease one event that failed before, alone, so that it cannot fail others again."""
    return await _read(tx, await tx.fetch(CLAIM_FAILED, now, 1, lease, max_tries), 1)


async def _read(tx: Tx, claimed: Sequence[Row], length: int) -> Claim:
    leased = {row["id"]: row for row in claimed if row["leased"]}
    behind: dict[int, list[StoredEvent]] = {}
    for row in await tx.fetch(READ, list(leased), length) if leased else ():
        behind.setdefault(row["head"], []).append(stored_event(row))
    chains = (
        Chain(tuple(events), leased[head]["next_retry_at"], leased[head]["retry_count"])
        for head, events in behind.items()
    )
    return Claim(tuple(chains), len(claimed) - len(leased))


async def publish(tx: Tx, chains: Sequence[Chain]) -> frozenset[int]:
    """Mark events published and return their positions; chains whose lease another relay holds by now are left out.

    All chains are of one claim.
    """
    given = [(event.position, chain.head.position) for chain in chains for event in chain.events]
    rows = await tx.fetch(
        PUBLISH, [position for position, _ in given], [head for _, head in given], chains[0].leased_until
    )
    return frozenset(row["id"] for row in rows)


async def fail(tx: Tx, chain: Chain, *, delay: timedelta, max_tries: int, now: datetime | None = None) -> str | None:
    """Mark FAILED until the delay is over, or DEAD; returns the status, or None if another relay holds the lease."""
    row = await tx.fetchrow(FAIL, chain.head.position, chain.leased_until, max_tries, now, delay)
    if row is None:
        return None
    if row["status"] == "FAILED":
        await tx.execute(
            WAIT_BEHIND, row["aggregate_type"], row["aggregate_id"], chain.head.position, row["next_retry_at"]
        )
    return str(row["status"])


def stored_event(row: Row) -> StoredEvent:
    """Build an event from a row with all columns."""
    event = Event(
        type=row["event_type"],
        aggregate_type=row["aggregate_type"],
        aggregate_id=row["aggregate_id"],
        payload=row["payload_json"],
        user_id=row["user_id"],
        version=row["event_version"],
        trace_id=row["trace_id"],
        request_id=(row["headers_json"] or {}).get("request_id"),
        id=EventId(row["event_id"]),
    )
    return StoredEvent(row["id"], event, row["created_at"])
