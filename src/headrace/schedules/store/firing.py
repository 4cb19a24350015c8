"""SQL for firing: locks due schedules, and writes the runs of many in one statement."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.database import Database, Row, Tx
from headrace.schedules.submission import PLAN_COLUMNS

# The holder of the row lock fires it; other schedulers skip locked rows.
LOCK_DUE = f"""
SELECT {PLAN_COLUMNS}, schedule.cron_expr, schedule."interval", schedule.timezone, schedule.next_run,
       schedule.misfire_policy, coalesce($1, now()) AS at
FROM headrace.scheduled_tasks AS schedule
WHERE schedule.enabled AND schedule.next_run <= coalesce($1, now()) AND schedule.uid <> ALL ($3::varchar[])
ORDER BY schedule.next_run
LIMIT $2
FOR NO KEY UPDATE SKIP LOCKED
"""


async def lock_due(tx: Tx, *, now: datetime | None, limit: int, exclude: Sequence[str] = ()) -> list[Row]:
    """Lock due schedules."""
    return await tx.fetch(LOCK_DUE, now, limit, list(exclude))


# A statement of its own, after the locks: it sees the commits of the last lock holders.
INSPECT = "SELECT uid, active, waiting, fired FROM headrace.inspect_schedules($1, $2, $3)"


@dataclass(frozen=True, slots=True)
class ScheduleActivity:
    """How many runs of a schedule occupy a slot, whether others wait for one, and which of the given due times have
    fired already."""

    active: int
    waiting: bool
    fired: frozenset[datetime]

    def can_start_waiting(self, max_concurrent: int) -> bool:
        return self.waiting and self.active < max_concurrent


async def inspect_schedules(
    tx: Tx, uids: Sequence[str], first_dues: Sequence[datetime | None], last_dues: Sequence[datetime | None]
) -> dict[str, ScheduleActivity]:
    rows = await tx.fetch(INSPECT, uids, first_dues, last_dues)
    return {row["uid"]: ScheduleActivity(row["active"], row["waiting"], frozenset(row["fired"] or ())) for row in rows}


COUNT_WAITING = "SELECT uid, waiting FROM headrace.count_waiting($1, $2)"


async def count_waiting(tx: Tx, uids: Sequence[str], most: Sequence[int]) -> dict[str, int]:
    """Count runs that wait for a slot, for each schedule up to its ``most``."""
    return {row["uid"]: row["waiting"] for row in await tx.fetch(COUNT_WAITING, uids, most)}


LIST_SUPERSEDED = "SELECT uid, execution_uid, task_id FROM headrace.superseded_executions($1, $2)"


@dataclass(frozen=True, slots=True)
class Superseded:
    """A run that a later one of its schedule replaces; without a task it only waits."""

    schedule_uid: str
    execution_uid: str
    task_id: str | None


async def list_superseded(tx: Tx, uids: Sequence[str] | None, *, most: int | None) -> list[Superseded]:
    """Superseded runs of these schedules, or of all, that were not stopped yet."""
    return [Superseded(*row) for row in await tx.fetch(LIST_SUPERSEDED, uids, most)]


WAKE = "SELECT pg_notify('headrace_schedules', '')"
# clock_timestamp() after the locks: ends of one schedule are dated in the order of their counts.
CLOCK = "SELECT clock_timestamp()"
INSERT_RUNS = "SELECT headrace.insert_executions($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
# Refused runs are counted at once, because no worker will end them.
COUNT_REFUSED = """
UPDATE headrace.scheduled_tasks AS schedule
SET total_executions = total_executions + given.number, failure_executions = failure_executions + given.number,
    consecutive_failures = consecutive_failures + given.number, last_executed_at = greatest(last_executed_at, $3),
    last_failure_error = given.error, updated_at = now()
FROM (
  SELECT uid, count(*) AS number, max(refused) AS error
  FROM unnest($1::varchar[], $2::text[]) AS refusals (uid, refused)
  GROUP BY uid
) AS given
WHERE schedule.uid = given.uid
"""
MAX_SKIPPED = 2**31 - 1  # a schedule of every second with a first time long ago could exceed it
ADVANCE = f"""
UPDATE headrace.scheduled_tasks AS schedule
SET next_run = given.next_run, skipped_runs = least(schedule.skipped_runs + given.skipped, {MAX_SKIPPED}),
    updated_at = now()
FROM unnest($1::varchar[], $2::timestamptz[], $3::bigint[]) AS given (uid, next_run, skipped)
WHERE schedule.uid = given.uid
"""


async def advance(tx: Tx, uids: Sequence[str], next_runs: Sequence[datetime | None], skipped: Sequence[int]) -> None:
    await tx.execute(ADVANCE, uids, next_runs, skipped)


NEXT_DUE = """
WITH first AS (
  SELECT min(next_run) AS due FROM headrace.scheduled_tasks
  WHERE enabled AND next_run IS NOT NULL AND uid <> ALL ($2::varchar[])
)
SELECT first.due, first.due - clock_timestamp() AS wait, (
  SELECT count(*) FROM (
    SELECT FROM headrace.scheduled_tasks WHERE enabled AND next_run = first.due LIMIT $1
  ) AS at_once
) AS schedules
FROM first
WHERE first.due IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Upcoming:
    """The next due time, the wait until then by the database's clock, and the number of schedules due at it."""

    due: datetime
    wait: timedelta
    schedules: int


async def find_upcoming(db: Database, *, most: int, exclude: Sequence[str] = ()) -> Upcoming | None:
    """What is due next, without ``exclude``; counting stops at ``most``."""
    rows = await db.fetch_alone(NEXT_DUE, most, list(exclude))
    return Upcoming(*rows[0]) if rows else None


UNTIL = "SELECT $1::timestamptz - clock_timestamp()"


async def time_until(tx: Tx, due: datetime) -> timedelta:
    wait: timedelta = await tx.fetchval(UNTIL, due)
    return wait


# Waiting runs, as many as there are free slots. The caller has locked the schedules.
HELD = f"""
SELECT {PLAN_COLUMNS}, held.execution_uid
FROM headrace.waiting_executions($1) AS held
JOIN headrace.scheduled_tasks AS schedule ON schedule.uid = held.uid
ORDER BY schedule.uid, held.scheduled_at
"""
ATTACH_TASKS = "SELECT headrace.attach_tasks($1, $2)"
WAITING = """
SELECT task_uid, execution_uid FROM headrace.task_executions
WHERE task_uid = ANY ($1::varchar[]) AND state = 'pending' AND task_id IS NULL
"""
START_REFUSED = """
UPDATE headrace.task_executions SET state = 'running', run_by = 'nobody', started_at = $2, updated_at = now()
WHERE execution_uid = ANY ($1::varchar[]) AND state = 'pending'
"""
END_REFUSED = """
UPDATE headrace.task_executions AS run
SET state = 'failure', finished_at = run.started_at, error_message = given.refused, updated_at = now()
FROM unnest($1::varchar[], $2::text[]) AS given (execution_uid, refused)
WHERE run.execution_uid = given.execution_uid AND run.state = 'running'
"""
