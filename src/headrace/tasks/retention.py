"""Deletes tasks that are over, with their logs and steps, and workers that have ended.

Often, and not once a night: rows that come at thousands a second must go at the same pace, or the table grows all
day. A type may declare its own retention, by how its tasks ended; the settings apply to all others.
"""

import asyncio
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headrace.database import Database, Row, Tx
from headrace.purging import BATCH, Journal, Keeps, Purge, RowRetention, count_with_lines
from headrace.tasks.retention_periods import ENDS
from headrace.tasks.store.tasks import HAS_NO_BYTES, purge_deleted

# Rows that one look along the index takes in, whether they go or not: it ends soon also where most of them stay.
_SLICE = 5000
# For each moment of work so long a pause: others want the disk and the processor, too.
_PAUSE_RATIO = 0.5
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
# Rows that were locked or not yet committed when a mark passed them are found by a full pass once a day.
_SLACK = timedelta(minutes=10)
_ALL_EVERY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Tasks that ended like this and are of these types, or of all others, are kept for so long."""

    status: str
    keep: timedelta
    types: Sequence[str]
    others: bool = False

    @property
    def name(self) -> str:
        """The identity of the rule: a mark is valid for the same rule only."""
        digest = hashlib.sha256("\n".join(self.types).encode()).hexdigest()[:12]
        return f"{self.status} {self.keep.total_seconds():g} {'not ' if self.others else ''}{digest}"


def _rules(keeps: Keeps, by_type: Mapping[str, Mapping[str, float | None]]) -> Iterator[_Rule]:
    for status in ENDS:
        alike: dict[float, list[str]] = {}
        for name, retention in by_type.items():
            if (seconds := retention.get(status)) is not None:
                alike.setdefault(seconds, []).append(name)
        for seconds, names in alike.items():
            yield _Rule(status, timedelta(seconds=seconds), sorted(names))
        if (keep := keeps[status]) is not None:
            yield _Rule(status, keep, sorted(name for name in by_type if status in by_type[name]), others=True)


BY_TYPE = "SELECT name, retention FROM headrace.task_types WHERE retention IS NOT NULL"


async def purge_finished(db: Database, keeps: Keeps, journal: Journal) -> None:
    """Remove expired tasks. Each rule continues at its last mark, so that tasks with a long retention are not read
    again because of the others."""
    async with db.transaction(readonly=True) as tx:
        by_type = {row["name"]: row["retention"] for row in await tx.fetch(BY_TYPE)}
    rules = list(_rules(keeps, by_type))
    for gone in journal.marks.keys() - {rule.name for rule in rules}:
        del journal.marks[gone]
    for rule in rules:
        await _walk(db, rule, journal)


async def _walk(db: Database, rule: _Rule, journal: Journal) -> None:
    until = journal.now - rule.keep
    mark = journal.marks.get(rule.name)
    begun, since = journal.now, _BEGINNING
    if mark is not None and journal.now - (last := datetime.fromisoformat(mark["begun"])) < _ALL_EVERY:
        begun, since = last, datetime.fromisoformat(mark["to"]) - _SLACK
    while since < until:
        async with db.transaction() as tx:
            end = await tx.fetchval(SLICE, rule.status, since, until, _SLICE)
        to = until if end is None else end
        await _purge_slice(db, rule, since, to, journal)
        since = to
        async with db.transaction() as tx:
            journal.marks[rule.name] = {"begun": begun.isoformat(), "to": to.isoformat()}
            await journal.note(tx, 0)


async def _purge_slice(db: Database, rule: _Rule, since: datetime, to: datetime, journal: Journal) -> None:
    while True:
        started = time.monotonic()
        async with db.transaction() as tx:
            counts: Row | None = await tx.fetchrow(
                PURGE_SLICE, rule.status, since, to, list(rule.types), not rule.others, BATCH
            )
            assert counts is not None
            await journal.note(tx, counts["gone"])
        if counts["due"] == 0:
            return
        await asyncio.sleep((time.monotonic() - started) * _PAUSE_RATIO)


# The end of the next slice. Many tasks may have ended at one instant: the slice takes in all of them.
SLICE = """
SELECT updated_at FROM headrace.tasks
WHERE status = $1 AND updated_at > $2 AND updated_at < $3
ORDER BY updated_at OFFSET $4 LIMIT 1
"""
# By updated_at, which has an index with the status: an ended task changes only by a retry or its deletion.
# Steps and results go with their task, logs have no foreign key, and runs of schedules keep their row without the task.
PURGE_SLICE = count_with_lines(
    "tasks",
    f"""
SELECT id FROM headrace.tasks
WHERE status = $1 AND updated_at >= $2 AND updated_at <= $3 AND (task_type = ANY ($4::text[])) = $5
  AND {HAS_NO_BYTES}
ORDER BY updated_at LIMIT $6 FOR UPDATE SKIP LOCKED
""",
    "task_logs",
    "task_id",
)

TASKS = RowRetention(
    "tasks",
    due="",
    cron="*/10 * * * *",
    description="Removes tasks that ended long ago, with their logs and steps.",
    walk=purge_finished,
)
WORKERS = RowRetention(
    "workers",
    """
SELECT number, types, heartbeat_at FROM headrace.workers
WHERE ended_at < $1
ORDER BY number LIMIT $2 FOR UPDATE SKIP LOCKED
""",
    cron="0 3 * * *",
    description="Removes workers that ended long ago.",
    key="number",
    # The time when its types were last seen outlives it: Catalog.check_registered depends on it.
    also="""
, seen AS (
  SELECT name, max(heartbeat_at) AS at FROM due, unnest(types) AS name GROUP BY name
), locked AS (
  SELECT type.name, seen.at
  FROM headrace.task_types AS type JOIN seen ON seen.name = type.name AND seen.at > type.seen_at
  ORDER BY type.name FOR NO KEY UPDATE OF type
), noted AS (
  UPDATE headrace.task_types AS type SET seen_at = locked.at FROM locked WHERE type.name = locked.name
)
""",
)
# What its owner has deleted is gone within minutes, payload, result and logs.
DELETED = Purge("deleted_tasks", purge_deleted)

_LANE_IDLE_FOR = timedelta(days=1)
RETIRE_LANES = "SELECT headrace.retire_lanes($1, $2)"


async def retire_lanes(tx: Tx, most: int) -> int:
    """Retire lanes that have no tasks, and delete those that were retired a day ago; gives how many of both."""
    changed: int = await tx.fetchval(RETIRE_LANES, _LANE_IDLE_FOR, most)
    return changed


# A limit key for each customer, say, makes a lane for each: those that are idle go.
LANES = Purge("idle_lanes", retire_lanes)
