"""SQL for the obstacles between a task and its start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from headrace.database import Tx
from headrace.tasks.store.queues import FIRST_OF_LANES, MAX_LANES


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position of a waiting task in the queue, and the settings of its queue and its type."""

    seq: int
    run_at: datetime
    due: bool
    precedence: int
    lane_id: int
    route_id: int
    queue: str
    task_type: str
    user_id: str
    limit_key: str
    labels: Mapping[str, str]
    paused_at: datetime | None
    queue_limit: int | None
    type_limit: int | None
    key_limit: int | None
    plan_limit: int | None


FIND_POSITION = """
SELECT q.seq, q.run_at, q.run_at <= now() AS due, q.precedence, q.lane_id, q.route_id,
       lane.queue, lane.task_type, lane.user_id, lane.limit_key, coalesce(task.labels, '{}'),
       queue.paused_at, queue.max_running, type.max_running,
       CASE WHEN lane.limit_key <> '' THEN type.max_running_per_key END,
       CASE WHEN type.limited_by_plan THEN headrace.plan_concurrency(lane.user_id) END
FROM headrace.tasks AS task
JOIN headrace.task_queue AS q ON q.seq = task.queue_seq
JOIN headrace.task_lanes AS lane ON lane.id = q.lane_id
LEFT JOIN headrace.queues AS queue ON queue.name = lane.queue
LEFT JOIN headrace.task_types AS type ON type.name = lane.task_type
WHERE task.id = $1 AND q.worker IS NULL
"""


async def find_position(tx: Tx, task_id: str) -> QueuePosition | None:
    """None for a task that does not wait."""
    row = await tx.fetchrow(FIND_POSITION, task_id)
    return None if row is None else QueuePosition(*row)


LAST_SEEN = "SELECT max(heartbeat_at) FROM headrace.workers WHERE $1 = ANY (types)"


async def last_seen(tx: Tx, task_type: str) -> datetime | None:
    """When a worker with this type was last heard of."""
    at: datetime | None = await tx.fetchval(LAST_SEEN, task_type)
    return at


IS_DECLARED = "SELECT EXISTS (SELECT FROM headrace.task_types WHERE name = $1)"


async def is_declared(tx: Tx, task_type: str) -> bool:
    """Whether a program has ever declared this type."""
    declared: bool = await tx.fetchval(IS_DECLARED, task_type)
    return declared


@dataclass(frozen=True, slots=True)
class Waiting:
    """Tasks that are alike to a worker, and since when the first of them could have started."""

    task_type: str
    queue: str
    labels: Mapping[str, str]
    since: datetime


# Labels of a lane that waits for its type say that it does so, and nothing else.
LIST_WAITING = f"""{FIRST_OF_LANES}
SELECT lane.task_type, lane.queue, lane.labels - 'undeclared type' AS labels, min(met.run_at) AS since
FROM (SELECT * FROM first_of LIMIT {MAX_LANES}) AS met
JOIN headrace.task_lanes AS lane ON lane.id = met.lane_id
WHERE met.run_at < now() - $1::interval
  AND NOT EXISTS (SELECT FROM headrace.queues WHERE name = lane.queue AND paused_at IS NOT NULL)
GROUP BY 1, 2, 3
ORDER BY since
"""


async def list_waiting(tx: Tx, *, for_longer_than: timedelta) -> list[Waiting]:
    """Kinds of tasks that wait though their time has come and their queue is not paused, the longest first."""
    return [Waiting(*row) for row in await tx.fetch(LIST_WAITING, for_longer_than)]


class LimitScope(StrEnum):
    QUEUE = "queue"
    TYPE = "type"
    KEY = "key"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Slots:
    """The holders of a limit's slots: the user's own tasks, some of them by name, and others' as a number."""

    taken: int
    others: int
    own: Sequence[str]


# As free_slots counts, which decides when a task is taken.
FIND_HOLDERS = """
SELECT count(*) AS taken, count(*) FILTER (WHERE lane.user_id <> $3) AS others,
       (array_agg(running.task_id ORDER BY running.seq) FILTER (WHERE lane.user_id = $3))[:20] AS own
FROM headrace.task_queue AS running
JOIN headrace.task_lanes AS lane ON lane.id = running.lane_id
WHERE running.limited
  AND CASE $1::text WHEN 'queue' THEN lane.queue WHEN 'type' THEN lane.task_type WHEN 'plan' THEN lane.user_id
                    ELSE lane.task_type || ' ' || lane.limit_key END = $2
  AND ($1::text <> 'plan'
       OR EXISTS (SELECT FROM headrace.task_types AS type WHERE type.name = lane.task_type AND type.limited_by_plan))
"""


async def find_holders(tx: Tx, scope: LimitScope, name: str, *, user_id: str) -> Slots:
    """Who counts against a limit; ``name`` as ``headrace.free_slots`` takes it."""
    row = await tx.fetchrow(FIND_HOLDERS, scope, name, user_id)
    assert row is not None
    return Slots(row["taken"], row["others"], row["own"] or ())


@dataclass(frozen=True, slots=True)
class Ahead:
    """The tasks ahead of it: of a higher priority, and earlier ones of the same. ``exact`` unless at the bound."""

    higher: int
    earlier: int
    exact: bool


MAX_AHEAD = 1000
# Both walk along the index of claimable tasks, and stop at the bound.
COUNT_AHEAD = f"""
WITH higher AS (
  SELECT count(*) AS number
  FROM (
    SELECT FROM headrace.task_routes AS route
    CROSS JOIN LATERAL (
      SELECT FROM headrace.task_queue AS q
      WHERE q.worker IS NULL AND NOT q.delayed AND q.route_id = route.id AND q.precedence < $1
      ORDER BY q.precedence, q.lane_id, q.run_at, q.seq
      LIMIT {MAX_AHEAD}
    ) AS met
    WHERE route.task_type = ANY ($5) AND route.labels <> headrace.undeclared()
      AND NOT EXISTS (SELECT FROM headrace.queues WHERE name = route.queue AND paused_at IS NOT NULL)
    LIMIT {MAX_AHEAD}
  ) AS counted
), earlier AS (
  SELECT count(*) AS number
  FROM (
    SELECT FROM headrace.task_queue AS q
    WHERE q.worker IS NULL AND NOT q.delayed AND q.route_id = $6 AND q.precedence = $1 AND q.lane_id = $2
      AND (q.run_at, q.seq) < ($3, $4)
    ORDER BY q.run_at, q.seq
    LIMIT {MAX_AHEAD}
  ) AS counted
)
SELECT higher.number, earlier.number, greatest(higher.number, earlier.number) < {MAX_AHEAD} FROM higher, earlier
"""


async def count_ahead(tx: Tx, standing: QueuePosition, *, types: Sequence[str]) -> Ahead:
    """The tasks ahead of this one, of the ``types`` that its workers run."""
    row = await tx.fetchrow(
        COUNT_AHEAD,
        standing.precedence,
        standing.lane_id,
        standing.run_at,
        standing.seq,
        list(types),
        standing.route_id,
    )
    assert row is not None
    return Ahead(*row)


FIND_LOCKERS = """
SELECT headrace.entitlement_lockers(
  ARRAY(SELECT held.entitlement_id FROM headrace.usage_ledger AS held WHERE held.task_id = $1 AND held.status = 'HELD'))
"""


async def find_unit_lockers(tx: Tx, task_id: str) -> list[dict[str, Any]]:
    """The sessions whose open transactions keep the units locked that are held for a task: pid, user, application and
    age in seconds, which is None where this role may not see it."""
    lockers: list[dict[str, Any]] = await tx.fetchval(FIND_LOCKERS, task_id)
    return lockers
