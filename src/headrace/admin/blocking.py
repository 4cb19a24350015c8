"""Sessions whose open transactions others of this database wait for: for ``headrace doctor`` and `/metrics`."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.database import Database, Tx
from headrace.figures import Figure

# A transaction that is shorter than this is ordinary work.
_MIN_AGE_SECONDS = 1.0
_SAMPLES = 3
_PAUSE_S = 0.3
_MAX_SESSIONS = 10

# Waiting sessions and their blockers: only blockers that do not wait themselves. The start of another role's
# transaction is null unless this role has pg_read_all_stats; the rest is visible to everyone.
LIST_BLOCKING = """
WITH waiting AS MATERIALIZED (
  SELECT waits.pid, pg_blocking_pids(waits.pid) AS behind
  FROM (SELECT DISTINCT pid FROM pg_locks WHERE NOT granted) AS waits
  JOIN pg_stat_activity AS activity ON activity.pid = waits.pid AND activity.datname = current_database()
)
SELECT blocker.pid, blocker.usename::text AS user_name, nullif(blocker.application_name, '') AS application,
       extract(epoch FROM clock_timestamp() - blocker.xact_start)::float8 AS age, count(*) AS waiting
FROM waiting
CROSS JOIN LATERAL (SELECT DISTINCT unnest(waiting.behind) AS pid) AS behind
JOIN pg_stat_activity AS blocker ON blocker.pid = behind.pid
WHERE blocker.pid NOT IN (SELECT pid FROM waiting)
GROUP BY 1, 2, 3, 4
ORDER BY age DESC NULLS LAST, blocker.pid
LIMIT $1
"""


@dataclass(frozen=True, slots=True)
class BlockingSession:
    """A session that others wait for; ``age`` is that of its transaction in seconds, None where this role may not see
    it."""

    pid: int
    user_name: str | None
    application: str | None
    age: float | None
    waiting: int

    def __str__(self) -> str:
        age = "" if self.age is None else f", whose transaction has been open for {self.age:.0f} s"
        name = self.application or f"of the role {self.user_name}"
        others = "1 other" if self.waiting == 1 else f"{self.waiting:,} others"
        return f"session {self.pid} ({name}){age}, blocks {others}"


async def list_blocking(tx: Tx) -> list[BlockingSession]:
    """Sessions that block others now, for longer than ordinary work takes, the oldest first."""
    blocking = [BlockingSession(**row) for row in await tx.fetch(LIST_BLOCKING, _MAX_SESSIONS)]
    return [each for each in blocking if each.age is None or each.age >= _MIN_AGE_SECONDS]


async def list_lasting(db: Database) -> Sequence[BlockingSession]:
    """Sessions that block others in two of several samples: the age of a transaction may be hidden from this role, and
    a waiting session retries with pauses."""
    seen: dict[int, BlockingSession] = {}
    lasting: dict[int, BlockingSession] = {}
    for sample in range(_SAMPLES):
        async with db.transaction(readonly=True) as tx:
            blocking = {each.pid: each for each in await list_blocking(tx)}
        lasting |= {pid: each for pid, each in blocking.items() if pid in seen}
        seen |= blocking
        if sample == _SAMPLES - 1 or (sample and not seen):
            break
        await asyncio.sleep(_PAUSE_S if blocking else _PAUSE_S / 6)
    return list(lasting.values())


async def read_blocking_figures(tx: Tx) -> list[Figure]:
    blocking = await list_blocking(tx)
    return [
        Figure(
            "headrace_blocking_transaction_seconds",
            "Age of the open transaction of a session that others wait for, by its pid and application; 0 "
            "if the age is hidden. No series while nothing waits. Alarm above 60.",
            ("pid", "application"),
            {(str(each.pid), each.application or ""): each.age or 0.0 for each in blocking},
        ),
        Figure(
            "headrace_blocked_sessions",
            "Sessions that wait for the transaction of another one that has been open for over a second.",
            values={(): sum(each.waiting for each in blocking)},
        ),
    ]
