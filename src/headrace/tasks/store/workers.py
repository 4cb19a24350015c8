"""SQL for who runs tasks, and which kinds of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headrace.database import Tx

# Maximum number of a worker's running tasks that are listed.
NAMED = 20


@dataclass(frozen=True, slots=True)
class Held:
    """A task in a worker's hands."""

    task_id: str
    task_type: str
    queue: str
    attempt: int
    since: datetime


@dataclass(frozen=True, slots=True)
class SeenWorker:
    """A worker that has not ended. ``silent_for`` counts from its last heartbeat; beyond its lease it is given up."""

    number: int
    id: str
    host: str
    pid: int
    queues: Sequence[str] | None
    types: Sequence[str]
    labels: Mapping[str, str]
    concurrency: int
    running: int
    slots: Mapping[str, Mapping[str, Any]]
    finished: int
    started_at: datetime
    heartbeat_at: datetime
    stopping_at: datetime | None
    lease: timedelta
    silent_for: timedelta
    holds: Sequence[Held] = ()

    @property
    def alive(self) -> bool:
        return self.silent_for <= self.lease

    @property
    def takes_tasks(self) -> bool:
        return self.alive and self.stopping_at is None

    def slots_for(self, task_type: str) -> tuple[int, int]:
        """How many tasks of this type it can run at once, and how many slots of its pool are taken."""
        for pool in self.slots.values():
            if task_type in pool["types"]:
                return pool["slots"], pool["running"]
        return self.concurrency, self.running

    def takes_queue(self, queue: str) -> bool:
        return self.queues is None or queue in self.queues

    def has_labels(self, labels: Mapping[str, str]) -> bool:
        return labels.items() <= self.labels.items()


_SEEN = """number, id, host, pid, queues, types, labels, concurrency, running, slots, finished, started_at,
       heartbeat_at, stopping_at, lease, now() - heartbeat_at AS silent_for"""

LIST_WORKERS = f"SELECT {_SEEN} FROM headrace.workers WHERE ended_at IS NULL ORDER BY number LIMIT $1"
LIST_HELD = """
SELECT held.worker, held.task_id, lane.task_type, lane.queue, held.attempt, held.claimed_at
FROM (
  SELECT q.*, row_number() OVER (PARTITION BY q.worker ORDER BY q.claimed_at, q.seq) AS position
  FROM headrace.task_queue AS q
  WHERE q.worker = ANY ($1)
) AS held
JOIN headrace.task_lanes AS lane ON lane.id = held.lane_id
WHERE held.position <= $2
ORDER BY held.worker, held.position
"""


async def list_workers(tx: Tx, *, limit: int, named: int = 0) -> list[SeenWorker]:
    """Workers that have not ended, the oldest first; of each up to ``named`` of the tasks that it holds."""
    rows = await tx.fetch(LIST_WORKERS, limit)
    held: dict[int, list[Held]] = {}
    if named and rows:
        for number, *facts in await tx.fetch(LIST_HELD, [row["number"] for row in rows], named):
            held.setdefault(number, []).append(Held(*facts))
    return [SeenWorker(**dict(row, holds=held.get(row["number"], ()))) for row in rows]


@dataclass(frozen=True, slots=True)
class SeenType:
    """A task type that a worker has registered at some time. ``workers`` of those that are alive have it."""

    name: str
    description: str
    queue: str
    priority: int
    max_attempts: int
    timeout_seconds: int | None
    emits_events: bool
    max_running: int | None
    max_running_per_key: int | None
    limit_key: str | None
    limited_by_plan: bool
    units: str | None
    submit: str
    retention: Any
    payload_schema: Any
    updated_at: datetime
    workers: int


LIST_TYPES = """
SELECT type.name, type.description, type.queue, type.priority, type.max_attempts, type.timeout_seconds,
       type.emits_events, type.max_running, type.max_running_per_key, type.limit_key,
       coalesce(type.limited_by_plan, false), type.units, coalesce(type.submit, 'admins'), type.retention,
       type.payload_schema, type.updated_at,
       (SELECT count(*) FROM headrace.workers AS w
        WHERE w.ended_at IS NULL AND w.heartbeat_at + w.lease >= now() AND type.name = ANY (w.types)) AS workers
FROM headrace.task_types AS type
ORDER BY type.name
LIMIT $1
"""


async def list_types(tx: Tx, *, limit: int) -> list[SeenType]:
    return [SeenType(*row) for row in await tx.fetch(LIST_TYPES, limit)]
