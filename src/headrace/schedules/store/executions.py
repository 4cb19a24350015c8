"""SQL that reads runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from headrace import walks
from headrace.database import Row, Tx
from headrace.schedules.model import Execution, ExecutionState, Trigger
from headrace.sql import Mark, Where

# Rows scanned for one page: filters without an index make short pages, not slow ones.
MAX_SCANNED_ROWS = 2000

_COLUMNS = ", ".join(f"run.{name}" for name in Execution.__dataclass_fields__)
# Lists leave out stack and result.
_LISTED = ", ".join(
    f"NULL AS {name}" if name in ("result", "error_stack") else f"run.{name}" for name in Execution.__dataclass_fields__
)


def _execution_of(row: Row) -> Execution:
    fields: dict[str, Any] = {name: row[name] for name in Execution.__dataclass_fields__}
    typed = {"state": ExecutionState(row["state"]), "trigger_type": Trigger(row["trigger_type"])}
    return Execution(**fields | typed)


FIND = f"SELECT {_COLUMNS} FROM headrace.task_executions AS run WHERE run.execution_uid = $1"
# The schedule's row has the owner.
OWNER = """
SELECT schedule.user_id FROM headrace.task_executions AS run
JOIN headrace.scheduled_tasks AS schedule ON schedule.uid = run.task_uid
WHERE run.execution_uid = $1 AND schedule.deleted_at IS NULL
"""


async def find_execution(tx: Tx, execution_uid: str) -> Execution | None:
    row = await tx.fetchrow(FIND, execution_uid)
    return None if row is None else _execution_of(row)


LIST_OF_TASKS = f"SELECT {_LISTED} FROM headrace.task_executions AS run WHERE run.task_id = ANY ($1)"


async def list_of_tasks(tx: Tx, task_ids: Sequence[str]) -> list[Execution]:
    """The runs of these tasks, without result and stack."""
    return [_execution_of(row) for row in await tx.fetch(LIST_OF_TASKS, list(task_ids))]


async def find_owner(tx: Tx, execution_uid: str) -> str | None:
    owner: str | None = await tx.fetchval(OWNER, execution_uid)
    return owner


@dataclass(frozen=True, slots=True)
class ExecutionFilter:
    """Filters of runs; None does not filter. Times are due times. ``user_id`` None means all users."""

    user_id: str | None
    schedule_uid: str | None = None
    states: Sequence[ExecutionState] | None = None
    trigger: Trigger | None = None
    type: str | None = None
    since: datetime | None = None
    until: datetime | None = None


FoundExecutions = walks.Found[Execution]
"""Runs without result and stack."""


async def list_executions(
    tx: Tx, wanted: ExecutionFilter, *, older_than: Mark | None = None, limit: int
) -> FoundExecutions:
    """Runs, latest due time first."""
    return await walks.walk(
        tx,
        lambda mark, limit: listing(wanted, older_than=mark, limit=limit),
        _execution_of,
        lambda row: (row["scheduled_at"], row["execution_uid"]),
        older_than=older_than,
        limit=limit,
        rows=MAX_SCANNED_ROWS,
        statements=1,
    )


# Deleted schedules are few, and read once.
_OF_SCHEDULES_THAT_ARE = (
    "run.task_uid <> ALL (ARRAY(SELECT uid FROM headrace.scheduled_tasks WHERE deleted_at IS NOT NULL))"
)
_ORDER = "scheduled_at DESC, execution_uid DESC"


def listing(wanted: ExecutionFilter, *, older_than: Mark | None = None, limit: int) -> tuple[str, Sequence[object]]:
    """The statement of a list and its arguments: one scan of a suitable index, which applies the other filters."""
    sources: list[str] = []
    args: tuple[object, ...] = ()
    for state in _scanned_states(wanted):
        where = _scan_clauses(Where(first=len(args) + 1), wanted, state, older_than)
        sources.append(walks.source("headrace.task_executions", where, _ORDER, rows=MAX_SCANNED_ROWS))
        args += where.args
    rest = _remaining_clauses(Where(first=len(args) + 1), wanted)
    rest = replace(rest, clauses=(_OF_SCHEDULES_THAT_ARE, *rest.clauses))
    sql = walks.selection(_LISTED, sources, "run", rest, _ORDER, rows=MAX_SCANNED_ROWS)
    return sql, (*args, *rest.args, limit)


def _scanned_states(wanted: ExecutionFilter) -> Sequence[ExecutionState | None]:
    if wanted.schedule_uid is not None or wanted.trigger is Trigger.MANUAL:
        return [None]
    if wanted.states:
        return wanted.states
    # Runs of a user, and of a type, are indexed by state; the scans are merged.
    return [None] if wanted.user_id is None and wanted.type is None else list(ExecutionState)


def _scan_clauses(
    where: Where, wanted: ExecutionFilter, state: ExecutionState | None, older_than: Mark | None
) -> Where:
    whose = where.eq("task_uid", wanted.schedule_uid)
    where = whose.is_word("state", state, by_bytes=wanted.user_id is not None or wanted.type is not None)
    if wanted.schedule_uid is None:
        where = where.eq("user_id", wanted.user_id)
        if state is None and wanted.trigger is Trigger.MANUAL:
            where = where.is_word("trigger_type", "manual")
        elif wanted.user_id is None:
            where = where.eq("task_type", wanted.type)
    return (
        where.since("scheduled_at", wanted.since)
        .until("scheduled_at", wanted.until)
        .older_than(("scheduled_at", "execution_uid"), older_than)
    )


def _remaining_clauses(where: Where, wanted: ExecutionFilter) -> Where:
    return (
        where.eq("run.user_id", wanted.user_id)
        .among("run.state", wanted.states)
        .eq("run.trigger_type", wanted.trigger)
        .eq("run.task_type", wanted.type)
    )


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of a schedule's open runs, and durations of the last thousand ended ones."""

    pending: int
    running: int
    average_ms: float | None
    p95_ms: float | None
    longest_ms: int | None


FIGURES = """
WITH active AS (
  SELECT count(*) FILTER (WHERE state = 'pending') AS pending, count(*) FILTER (WHERE state = 'running') AS running
  FROM (
    -- Each by its own small index, for any length of history.
    SELECT state FROM headrace.task_executions
    WHERE task_uid = $1 AND state IN ('pending', 'running') AND task_id IS NOT NULL
    UNION ALL
    SELECT state FROM headrace.task_executions WHERE task_uid = $1 AND state = 'pending' AND task_id IS NULL
  ) AS runs
), lately AS (
  SELECT duration_ms FROM (
    SELECT duration_ms, state FROM headrace.task_executions
    WHERE task_uid = $1 ORDER BY scheduled_at DESC, execution_uid DESC LIMIT 1000
  ) AS seen
  WHERE state IN ('success', 'failure', 'timeout')
)
SELECT active.pending, active.running, avg(lately.duration_ms)::double precision,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY lately.duration_ms), max(lately.duration_ms)
FROM active LEFT JOIN lately ON true
GROUP BY active.pending, active.running
"""


async def read_figures(tx: Tx, schedule_uid: str) -> Figures:
    row = await tx.fetchrow(FIGURES, schedule_uid)
    assert row is not None
    return Figures(*row)


# The allowed moves are pending, running, cancelled, and one statement cannot update a row twice: so there are two.
START_HELD = """
UPDATE headrace.task_executions
SET state = 'running', run_by = 'nobody', started_at = clock_timestamp(), updated_at = now()
WHERE execution_uid = ANY ($1::varchar[]) AND state = 'pending' AND task_id IS NULL
"""
CANCEL_HELD = """
WITH ended AS (
  UPDATE headrace.task_executions
  SET state = 'cancelled', finished_at = started_at, error_message = $2, updated_at = now()
  WHERE execution_uid = ANY ($1::varchar[]) AND state = 'running' AND task_id IS NULL
  RETURNING task_uid, started_at
), counted AS (
  SELECT task_uid, count(*) AS number, max(started_at) AS started_at FROM ended GROUP BY task_uid
)
UPDATE headrace.scheduled_tasks AS schedule
SET total_executions = total_executions + counted.number,
    last_executed_at = greatest(last_executed_at, counted.started_at), updated_at = now()
FROM counted
WHERE schedule.uid = counted.task_uid
"""


async def cancel_held(tx: Tx, execution_uids: Sequence[str], *, message: str | None = None) -> int:
    """End runs that wait for a slot; returns their number, because some may have a task by now. The caller has locked
    their schedules."""
    started = await tx.count(START_HELD, execution_uids) if execution_uids else 0
    if started:
        await tx.execute(CANCEL_HELD, execution_uids, message)
    return started


NOTE_REASON = """
UPDATE headrace.task_executions SET error_message = $2, updated_at = now()
WHERE task_id = $1 AND state IN ('pending', 'running')
"""


async def note_reason(tx: Tx, task_id: str, message: str) -> None:
    """Record why a run is stopped; it shows once it is cancelled. The caller has locked its task."""
    await tx.execute(NOTE_REASON, task_id, message)


WAITING = """
SELECT execution_uid FROM headrace.task_executions
WHERE task_uid = $1 AND state = 'pending' AND task_id IS NULL ORDER BY scheduled_at, id LIMIT $2
"""
QUEUED = """
SELECT task_id FROM headrace.task_executions
WHERE task_uid = $1 AND state = 'pending' AND task_id IS NOT NULL ORDER BY task_id
"""


async def list_waiting(tx: Tx, schedule_uid: str, *, limit: int) -> list[str]:
    """Runs that wait for a slot, earliest first."""
    return [row["execution_uid"] for row in await tx.fetch(WAITING, schedule_uid, limit)]


async def list_queued(tx: Tx, schedule_uid: str) -> list[str]:
    """The tasks of runs that have not begun, or were just claimed."""
    return [row["task_id"] for row in await tx.fetch(QUEUED, schedule_uid)]


IN_SLOTS = """
SELECT execution_uid FROM headrace.task_executions
WHERE task_uid = $1 AND state IN ('pending', 'running') AND task_id IS NOT NULL ORDER BY scheduled_at LIMIT 20
"""


async def list_in_slots(tx: Tx, schedule_uid: str) -> list[str]:
    """Runs that occupy a slot of ``max_concurrent``; only some if there are many."""
    return [row["execution_uid"] for row in await tx.fetch(IN_SLOTS, schedule_uid)]
