"""SQL for queues: their settings, and their contents."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headrace.database import Row, Tx
from headrace.database_errors import DatabaseBusy

# Limits on counting what waits: lanes, and rows (at least a hundred of each lane).
MAX_LANES = 1000
MOST_ROWS = 100_000
MAX_BACKLOG = 20_000


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The settings of a queue. Without settings it runs, without a limit."""

    name: str
    paused_at: datetime | None
    max_running: int | None
    version: int
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a queue. Unless ``exact``, waiting and delayed are lower bounds."""

    waiting: int = 0
    delayed: int = 0
    running: int = 0
    exact: bool = True
    oldest_waiting_seconds: float | None = None

    def __add__(self, other: "Contents") -> "Contents":
        ages = [each for each in (self.oldest_waiting_seconds, other.oldest_waiting_seconds) if each is not None]
        return Contents(
            self.waiting + other.waiting,
            self.delayed + other.delayed,
            self.running + other.running,
            self.exact and other.exact,
            max(ages, default=None),
        )


_RULES = "name, paused_at, max_running, version, created_at, updated_at"

# Routes are few and never deleted: every queue that ever had a task is found there.
LIST_RULES = """
WITH named AS (
  SELECT queue AS name FROM headrace.task_routes
  UNION SELECT queue FROM headrace.task_types
  UNION SELECT name FROM headrace.queues
)
SELECT named.name, queue.paused_at, queue.max_running, coalesce(queue.version, 0) AS version, queue.created_at,
       queue.updated_at
FROM named LEFT JOIN headrace.queues AS queue ON queue.name = named.name
ORDER BY named.name
LIMIT $1
"""


async def list_rules(tx: Tx, *, limit: int) -> list[QueueRules]:
    """Every queue that was ever used, declared or spoken about, by name."""
    return [QueueRules(*row) for row in await tx.fetch(LIST_RULES, limit)]


# The first claimable row of each lane, as survey_lanes finds them: the length of a backlog does not matter. Delayed
# rows are not among them.
FIRST_OF_LANES = """
WITH RECURSIVE first_of AS (
  (SELECT q.route_id, q.precedence, q.lane_id, q.run_at
   FROM headrace.task_queue AS q
   WHERE q.worker IS NULL AND NOT q.delayed
   ORDER BY q.route_id, q.precedence, q.lane_id, q.run_at, q.seq
   LIMIT 1)
  UNION ALL
  SELECT following.*
  FROM first_of, LATERAL (
    SELECT q.route_id, q.precedence, q.lane_id, q.run_at
    FROM headrace.task_queue AS q
    WHERE q.worker IS NULL AND NOT q.delayed
      AND (q.route_id, q.precedence, q.lane_id) > (first_of.route_id, first_of.precedence, first_of.lane_id)
    ORDER BY q.route_id, q.precedence, q.lane_id, q.run_at, q.seq
    LIMIT 1
  ) AS following
)"""

# The rows of each lane, up to its share, and the delayed ones in the order of their time. A backlog of millions costs
# no more than these. With a user, the lanes of others have no queue and are not counted.
_COUNT_WAITING = f"""{FIRST_OF_LANES}, seen AS MATERIALIZED (
  SELECT * FROM first_of LIMIT {MAX_LANES}
), first_delayed AS MATERIALIZED (
  SELECT lane_id, run_at FROM headrace.task_queue WHERE delayed ORDER BY run_at, seq LIMIT {{most_rows}}
), bounds AS MATERIALIZED (
  SELECT {{most_rows}} / greatest(count(*), 1) AS rows, count(*) = {MAX_LANES} AS cut FROM seen
)
SELECT lane.queue, lane.task_type, sum(due.number)::bigint AS waiting, 0::bigint AS delayed,
       NOT bool_or(bounds.cut OR due.number = bounds.rows) AS exact,
       extract(epoch FROM now() - min(seen.run_at) FILTER (WHERE due.number > 0))::double precision AS oldest
FROM seen
CROSS JOIN bounds
CROSS JOIN LATERAL (
  SELECT CASE WHEN $1::text IS NULL OR user_id = $1 THEN queue END AS queue, task_type
  FROM headrace.task_lanes WHERE id = seen.lane_id LIMIT 1
) AS lane
CROSS JOIN LATERAL (
  SELECT count(*) AS number
  FROM (
    SELECT FROM headrace.task_queue AS q
    WHERE q.worker IS NULL AND NOT q.delayed AND q.route_id = seen.route_id AND q.precedence = seen.precedence
      AND q.lane_id = seen.lane_id AND lane.queue IS NOT NULL
    ORDER BY q.run_at, q.seq  -- which only this index gives
    LIMIT (SELECT rows FROM bounds)
  ) AS counted
) AS due
GROUP BY lane.queue, lane.task_type
UNION ALL
SELECT lane.queue, lane.task_type, count(*) FILTER (WHERE first_delayed.run_at <= now()),
       count(*) FILTER (WHERE first_delayed.run_at > now()),
       (SELECT count(*) FROM first_delayed) < {{most_rows}},
       extract(epoch FROM now() - min(first_delayed.run_at)
               FILTER (WHERE first_delayed.run_at <= now()))::double precision
FROM first_delayed
CROSS JOIN LATERAL (
  SELECT CASE WHEN $1::text IS NULL OR user_id = $1 THEN queue END AS queue, task_type
  FROM headrace.task_lanes WHERE id = first_delayed.lane_id LIMIT 1
) AS lane
GROUP BY lane.queue, lane.task_type
"""
COUNT_WAITING = _COUNT_WAITING.format(most_rows=MOST_ROWS)
# For figures, which many processes read all the time.
COUNT_BACKLOG = _COUNT_WAITING.format(most_rows=MAX_BACKLOG)
COUNT_RUNNING = """
SELECT lane.queue, count(*) AS running
FROM headrace.task_queue AS q
JOIN headrace.task_lanes AS lane ON lane.id = q.lane_id
WHERE q.worker IS NOT NULL AND ($1::text IS NULL OR lane.user_id = $1)
GROUP BY lane.queue
"""


async def count_contents(tx: Tx, *, user_id: str | None = None) -> dict[str | None, Contents]:
    """The contents of each queue that is not empty, or of one user there.

    Under None are the contents of every other queue: nothing, and whether that is certain.
    """
    contents: dict[str | None, Contents] = {}
    for row in await tx.fetch(COUNT_WAITING, user_id):
        contents[row["queue"]] = contents.get(row["queue"], Contents()) + _contents_of(row)
    for row in await tx.fetch(COUNT_RUNNING, user_id):
        contents[row["queue"]] = contents.get(row["queue"], Contents()) + Contents(running=row["running"])
    return contents


async def count_backlog(tx: Tx) -> dict[tuple[str, str], Contents]:
    """What waits in each queue of each type, up to a lower bound. What runs is left out: to count it would be to read
    all that waits."""
    contents: dict[tuple[str, str], Contents] = {}
    for row in await tx.fetch(COUNT_BACKLOG, None):
        kind = row["queue"], row["task_type"]
        contents[kind] = contents.get(kind, Contents()) + _contents_of(row)
    return contents


def _contents_of(row: Row) -> Contents:
    return Contents(row["waiting"], row["delayed"], 0, row["exact"], row["oldest"])


IS_KNOWN = """
SELECT EXISTS (SELECT FROM headrace.queues WHERE name = $1)
    OR EXISTS (SELECT FROM headrace.task_routes WHERE queue = $1)
    OR EXISTS (SELECT FROM headrace.task_types WHERE queue = $1)
"""


async def is_known(tx: Tx, name: str) -> bool:
    known: bool = await tx.fetchval(IS_KNOWN, name)
    return known


LOCK_RULES = f"SELECT {_RULES} FROM headrace.queues WHERE name = $1 FOR UPDATE"
# Ten who pause a new queue at once meet at one row.
FOUND_QUEUE = "INSERT INTO headrace.queues (name) VALUES ($1) ON CONFLICT DO NOTHING"


async def lock_rules(tx: Tx, name: str) -> QueueRules:
    """The settings of a queue, to be changed in this transaction."""
    await tx.execute(FOUND_QUEUE, name)
    row = await tx.fetchrow(LOCK_RULES, name)
    assert row is not None  # queues are never deleted
    return QueueRules(*row)


PAUSE = f"""
UPDATE headrace.queues SET paused_at = now(), version = version + 1 WHERE name = $1 AND paused_at IS NULL
RETURNING {_RULES}
"""


async def pause(tx: Tx, name: str) -> QueueRules:
    return _changed(await tx.fetchrow(PAUSE, name))


RESUME = f"""
UPDATE headrace.queues SET paused_at = NULL, version = version + 1 WHERE name = $1 AND paused_at IS NOT NULL
RETURNING {_RULES}, pg_notify('headrace_tasks', '')
"""


async def resume(tx: Tx, name: str) -> QueueRules:
    """The workers that sleep are woken: there may be work again."""
    return _changed(await tx.fetchrow(RESUME, name))


SET_LIMIT = f"""
UPDATE headrace.queues SET max_running = $2, version = version + 1 WHERE name = $1
RETURNING {_RULES}, pg_notify('headrace_tasks', '')
"""


async def set_limit(tx: Tx, name: str, max_running: int | None) -> QueueRules:
    """The workers that sleep are woken: there may be room again."""
    return _changed(await tx.fetchrow(SET_LIMIT, name, max_running))


def _changed(row: Row | None) -> QueueRules:
    assert row is not None  # the caller has locked it
    return QueueRules(*tuple(row)[:6])


# A claim locks its worker's row: this waits for the claims under way and holds back new ones, of new workers, too.
HOLD_CLAIMS = "LOCK TABLE headrace.workers IN EXCLUSIVE MODE"
# Never waits for a row while it holds others: that could deadlock with a worker that writes a batch of endings.
MARK_LIMITED = """
UPDATE headrace.task_queue SET limited = true
WHERE seq IN (
  SELECT q.seq
  FROM headrace.task_queue AS q
  JOIN headrace.task_lanes AS lane ON lane.id = q.lane_id
  WHERE q.worker IS NOT NULL AND NOT q.limited AND (lane.queue = $1 OR lane.task_type = ANY ($2))
  FOR UPDATE OF q SKIP LOCKED
)
"""
ANY_UNCOUNTED = """
SELECT EXISTS (
  SELECT FROM headrace.task_queue AS q
  JOIN headrace.task_lanes AS lane ON lane.id = q.lane_id
  WHERE q.worker IS NOT NULL AND NOT q.limited AND (lane.queue = $1 OR lane.task_type = ANY ($2))
)
"""


async def count_running_tasks(
    tx: Tx, *, queue: str | None = None, types: Sequence[str] = (), rounds: int = 50, pause: float = 0.01
) -> None:
    """Let what runs in a queue, or of some types, take up slots as if the limit had been there when it was claimed.

    ``DatabaseBusy`` if one of the rows stays locked. Until the transaction ends all claims wait, and heartbeats
    too: it must end soon.
    """
    await tx.execute(HOLD_CLAIMS)
    for _ in range(rounds):
        await tx.execute(MARK_LIMITED, queue, types)
        if not await tx.fetchval(ANY_UNCOUNTED, queue, types):
            return
        await asyncio.sleep(pause)
    raise DatabaseBusy
