"""SQL of relays as such: who is there, and who sleeps."""

from dataclasses import dataclass
from datetime import datetime

from headrace.database import Database, Tx

# The row of a relay that was killed serves nobody.
APPEAR = """
WITH gone AS (DELETE FROM headrace.relays WHERE heartbeat_at < now() - interval '1 day')
INSERT INTO headrace.relays (id, host, pid, asleep) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET heartbeat_at = now(), asleep = $4
"""
LEAVE = "DELETE FROM headrace.relays WHERE id = $1"
LIST_ALIVE = """
SELECT id, host, pid, asleep, started_at, heartbeat_at
FROM headrace.relays WHERE heartbeat_at > now() - interval '1 minute'
ORDER BY started_at
"""


@dataclass(frozen=True, slots=True)
class RelaySeen:
    id: str
    host: str
    pid: int
    asleep: bool
    started_at: datetime
    heartbeat_at: datetime


async def appear(db: Database, relay_id: str, *, host: str, pid: int, asleep: bool) -> None:
    """Be there, be there still, and say whether one sleeps."""
    await db.fetch_alone(APPEAR, relay_id, host, pid, asleep)


async def leave(db: Database, relay_id: str) -> None:
    await db.fetch_alone(LEAVE, relay_id)


async def list_alive(tx: Tx) -> list[RelaySeen]:
    return [RelaySeen(*row) for row in await tx.fetch(LIST_ALIVE)]
