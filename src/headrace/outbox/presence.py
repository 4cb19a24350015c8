"""SQL of the table of relays: heartbeats and idle flags."""

from dataclasses import dataclass
from datetime import datetime

from headrace.database import Database, Tx

# Also removes the rows of relays that were killed.
UPSERT_HEARTBEAT = """
WITH gone AS (DELETE FROM headrace.relays WHERE heartbeat_at < now() - interval '1 day')
INSERT INTO headrace.relays (id, host, pid, asleep) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET heartbeat_at = now(), asleep = $4
"""
DELETE_RELAY = "DELETE FROM headrace.relays WHERE id = $1"
LIST_ALIVE = """
SELECT id, host, pid, asleep, started_at, heartbeat_at
FROM headrace.relays WHERE heartbeat_at > now() - interval '1 minute'
ORDER BY started_at
"""


@dataclass(frozen=True, slots=True)
class RelayRow:
    id: str
    host: str
    pid: int
    asleep: bool
    started_at: datetime
    heartbeat_at: datetime


async def write_heartbeat(db: Database, relay_id: str, *, host: str, pid: int, asleep: bool) -> None:
    """Upsert this relay's heartbeat and idle flag."""
    await db.fetch_alone(UPSERT_HEARTBEAT, relay_id, host, pid, asleep)


async def remove(db: Database, relay_id: str) -> None:
    await db.fetch_alone(DELETE_RELAY, relay_id)


async def list_alive(tx: Tx) -> list[RelayRow]:
    return [RelayRow(*row) for row in await tx.fetch(LIST_ALIVE)]
