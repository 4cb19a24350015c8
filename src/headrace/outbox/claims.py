"""SQL of the relay: claim, publish, fail.

The first event of an aggregate that is not yet published is its head. Only heads are claimed, and the events behind a
head go with it: so nothing overtakes it, and the lease on its row is a lease on the whole aggregate. While a relay has
a head, ``next_retry_at`` is the end of the lease. That instant is the fence, too: whoever claims the head after it ran
out writes a later one, and what a late relay then writes finds nothing.

A claim counts as a failed try in advance, and publishing takes that back. So an event that kills its relay counts, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from headrace.database import Row, Tx
from headrace.outbox.consumers import StoredEvent
from headrace.outbox.model import Event, EventId

CLAIM_NEW = "SELECT * FROM headrace.claim_events($1, $2, $3, $4)"

# As a subquery for each row, which cannot become a join over the whole table: one look into the partial index.
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

# The last try was begun and never ended: that, too, is the end of trying.
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

# What waits behind a failed event is not due before it: else every claim would look at all of it in vain.
WAIT_BEHIND = """
UPDATE headrace.outbox_events SET next_retry_at = $4
WHERE aggregate_type = $1 AND aggregate_id = $2 AND id > $3 AND status IN ('PENDING', 'FAILED') AND next_retry_at < $4
"""


@dataclass(frozen=True, slots=True)
class Chain:
    """Events of one aggregate that a relay has: the head, which holds the lease, and those behind it."""

    events: tuple[StoredEvent, ...]
    leased_until: datetime
    tries: int  # of the head, with this one

    @property
    def head(self) -> StoredEvent:
        return self.events[0]

    def head_alone(self) -> "Chain":
        return Chain(self.events[:1], self.leased_until, self.tries)


@dataclass(frozen=True, slots=True)
class Claim:
    chains: tuple[Chain, ...] = ()
    set_aside: int = 0  # events whose last relay died with them: tried alone from now on, or dead
    first_due_at: datetime | None = None  # before it nothing was due that is not claimed now


async def claim_new(
    tx: Tx,
    *,
    limit: int,
    length: int,
    lease: timedelta,
    now: datetime | None = None,
    floor: datetime | None = None,
) -> Claim:
    """Lease up to so many aggregates whose next event was not tried yet, each with up to ``length`` events. What
    was due before the floor is not looked at."""
    rows = await tx.fetch(CLAIM_NEW, now, limit, lease, floor)
    first = min((row["due_at"] for row in rows), default=None)
    return replace(await _read(tx, rows, length), first_due_at=first)


async def claim_failed(tx: Tx, *, max_tries: int, lease: timedelta, now: datetime | None = None) -> Claim:
    """Lease one event that was tried before, and nothing with it: others must not suffer for it once more."""
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
    """Mark what is still ours, and give the positions of it; a chain whose lease somebody else has by now is left out.

    All chains are of one claim.
    """
    given = [(event.position, chain.head.position) for chain in chains for event in chain.events]
    rows = await tx.fetch(
        PUBLISH, [position for position, _ in given], [head for _, head in given], chains[0].leased_until
    )
    return frozenset(row["id"] for row in rows)


async def fail(tx: Tx, chain: Chain, *, delay: timedelta, max_tries: int, now: datetime | None = None) -> str | None:
    """FAILED until the delay is over, or DEAD; gives which, or None if somebody else has it by now."""
    row = await tx.fetchrow(FAIL, chain.head.position, chain.leased_until, max_tries, now, delay)
    if row is None:
        return None
    if row["status"] == "FAILED":
        await tx.execute(
            WAIT_BEHIND, row["aggregate_type"], row["aggregate_id"], chain.head.position, row["next_retry_at"]
        )
    return str(row["status"])


def stored_event(row: Row) -> StoredEvent:
    """An event as a statement has read it, with all that it holds."""
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
