"""SQL of messages for the broker: a narrow row for each event that it has not confirmed.

One sender at a time holds the queue: so messages leave in the order of their rows, which is that of each aggregate. The
end of its lease is the fence, as for the relay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.database import Database, Row, Tx
from headrace.outbox.claims import stored_event
from headrace.outbox.consumers import StoredEvent

CHANNEL = "headrace_broker"

ADD = """
WITH added AS (
  INSERT INTO headrace.broker_messages (event_position)
  SELECT position FROM unnest($1::bigint[]) WITH ORDINALITY AS given (position, number) ORDER BY number
)
SELECT pg_notify($2, '')
"""
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('headrace.broker_messages', 0))"
CLAIM = """
UPDATE headrace.broker_messages SET leased_until = now() + $2::interval, tries = tries + 1
WHERE id = ANY (ARRAY(
  SELECT id FROM headrace.broker_messages WHERE given_up_at IS NULL ORDER BY id LIMIT $1
)) AND NOT EXISTS (SELECT FROM headrace.broker_messages WHERE leased_until > now())
RETURNING id, event_position, tries, leased_until
"""
READ = """
SELECT id, event_id, event_type, event_version, aggregate_type, aggregate_id, user_id, trace_id, payload_json,
       headers_json, created_at
FROM headrace.outbox_events WHERE id = ANY ($1)
"""
# Confirmed messages are removed; the rest are released for the next claim, or given up.
DONE = "DELETE FROM headrace.broker_messages WHERE id = ANY ($1) AND leased_until = $2"
RELEASE = """
UPDATE headrace.broker_messages
SET leased_until = NULL, tries = tries - CASE WHEN id = ANY ($3) THEN 0 ELSE 1 END,
    given_up_at = CASE WHEN id = ANY ($3) AND tries >= $4 THEN now() END
WHERE id = ANY ($1) AND leased_until = $2
"""


@dataclass(frozen=True, slots=True)
class Message:
    id: int
    tries: int
    event: StoredEvent


@dataclass(frozen=True, slots=True)
class Batch:
    messages: tuple[Message, ...] = ()
    orphans: tuple[int, ...] = ()  # ids of messages whose events are gone
    leased_until: datetime | None = None


async def add(tx: Tx, positions: Sequence[int]) -> None:
    await tx.execute(ADD, list(positions), CHANNEL)


async def claim(db: Database, *, limit: int, lease: timedelta) -> Batch:
    """Lease the first waiting messages; none while another sender holds the lease."""
    async with db.transaction() as tx:
        await tx.execute(ONE_AT_A_TIME)
        rows = sorted(await tx.fetch(CLAIM, limit, lease), key=lambda row: int(row["id"]))
        found = {row["id"]: row for row in await tx.fetch(READ, [row["event_position"] for row in rows])}
    if not rows:
        return Batch()
    return Batch(
        tuple(_message(row, found[row["event_position"]]) for row in rows if row["event_position"] in found),
        tuple(row["id"] for row in rows if row["event_position"] not in found),
        rows[0]["leased_until"],
    )


async def settle(
    db: Database, batch: Batch, *, confirmed: Sequence[int], refused: Sequence[int], max_tries: int
) -> None:
    """Remove confirmed messages, release the rest, and give up those that were refused too often."""
    done = [*confirmed, *batch.orphans]
    left = [message.id for message in batch.messages if message.id not in set(confirmed)]
    async with db.transaction() as tx:
        await tx.execute(DONE, done, batch.leased_until)
        if left:
            await tx.execute(RELEASE, left, batch.leased_until, list(refused), max_tries)


FORGET = "DELETE FROM headrace.broker_messages"


async def forget_all(tx: Tx) -> int:
    """Delete all messages for the broker; returns their number."""
    return await tx.count(FORGET)


def _message(row: Row, event: Row) -> Message:
    return Message(row["id"], row["tries"], stored_event(event))
