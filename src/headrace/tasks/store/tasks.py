"""Reading tasks. The answer is current: a task that was just claimed shows as running before its row says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from headrace import walks
from headrace.database import Row, Tx
from headrace.purging import delete_with_lines
from headrace.sql import Mark, Where
from headrace.tasks.model import FIRST_STATUS, Task, TaskId, TaskStatus

INTERNAL = "headrace."  # what types of the product itself begin with

# Both rows in one statement, and so in one snapshot: the engine writes them together.
SHOWN = f"""
  task.id, task.user_id, task.task_type, task.title, task.priority,
  CASE WHEN place.worker IS NOT NULL AND task.status = 'QUEUED' THEN {FIRST_STATUS} ELSE task.status END AS status,
  task.current_step, task.progress, task.retries, task.eta_sec, task.error_code, task.error_message, task.queue,
  CASE WHEN place.worker IS NULL THEN task.attempt ELSE place.attempt END AS attempt,
  CASE WHEN place.worker IS NULL THEN task.worker_id ELSE worker.id END AS worker_id,
  CASE WHEN place.worker IS NULL THEN task.started_at ELSE place.claimed_at END AS started_at,
  task.run_at, task.max_attempts, task.timeout_seconds, task.labels, task.limit_key, task.cancel_requested_at,
  task.schedule_uid, task.trace_id, task.queued_at, task.finished_at, task.version, task.created_at, task.updated_at,
  task.deleted_at"""

# LIMIT keeps these from being turned into joins over the whole queue.
LEASE = """
LEFT JOIN LATERAL (
  SELECT q.worker, q.attempt, q.claimed_at FROM headrace.task_queue AS q WHERE q.seq = task.queue_seq LIMIT 1
) AS place ON true
LEFT JOIN LATERAL (SELECT w.id FROM headrace.workers AS w WHERE w.number = place.worker LIMIT 1) AS worker ON true"""


def task_of(row: Row) -> Task:
    fields: dict[str, Any] = {name: row[name] for name in Task.__dataclass_fields__}
    return Task(**fields | {"id": TaskId(row["id"]), "status": TaskStatus(row["status"])})


FIND_TASK = f"""
SELECT {SHOWN}, task.payload, task.result
FROM headrace.tasks AS task {LEASE}
WHERE task.id = $1 AND task.deleted_at IS NULL
"""


async def find_task(tx: Tx, task_id: str) -> Task | None:
    row = await tx.fetchrow(FIND_TASK, task_id)
    return None if row is None else task_of(row)


FIND_OWNER = "SELECT user_id FROM headrace.tasks WHERE id = $1 AND deleted_at IS NULL"


async def find_owner(tx: Tx, task_id: str) -> str | None:
    owner: str | None = await tx.fetchval(FIND_OWNER, task_id)
    return owner


LIST_NAMED = f"""
SELECT {SHOWN}, NULL AS payload, NULL AS result
FROM headrace.tasks AS task {LEASE}
WHERE task.id = ANY ($1) AND task.deleted_at IS NULL
"""


async def list_named(tx: Tx, task_ids: Sequence[str]) -> dict[str, Task]:
    """Those of these tasks that are there, without payload and result."""
    return {row["id"]: task_of(row) for row in await tx.fetch(LIST_NAMED, list(task_ids))}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tasks to list; None for what does not matter. ``user_id`` None is everybody's."""

    user_id: str | None
    statuses: Sequence[TaskStatus] | None = None
    task_type: str | None = None
    queue: str | None = None
    created_since: datetime | None = None
    created_until: datetime | None = None
    internal: bool = True  # those of the product itself, too
    title: str | None = None  # a part of it, in any case
    labels: Mapping[str, str] | None = None  # at least these
    key: str | None = None  # the idempotency key that it was submitted with
    error: str | None = None  # a part of its error's code or message, in any case

    @property
    def excluded_prefix(self) -> str | None:
        """What the types begin with that are left out."""
        return None if self.internal else INTERNAL


Found = walks.Found[Task]
"""Tasks without payload and result."""


async def list_tasks(tx: Tx, wanted: Filter, *, older_than: Mark | None = None, limit: int) -> Found:
    """Tasks, newest first.

    The status that counts here is the row's: one that a worker took within the last moment is still among the queued,
    and shows as running there.
    """
    first = await _walked(tx, wanted, older_than=older_than, limit=limit, statements=1)
    if first.resume is None:
        return first
    if older_than is None and not first.items and not await _was_ever(tx, wanted):
        return walks.Found([])
    if wanted.user_id is None and wanted.statuses:
        rare = await _list_rare(tx, wanted, older_than=older_than, limit=limit)
        if rare.tasks is not None:
            return walks.Found(rare.tasks)
        if rare.newest is not None and rare.newest < first.resume[0]:
            first = replace(first, resume=(rare.newest + timedelta(microseconds=1), ""))
    rest = await _walked(
        tx, wanted, older_than=first.resume, limit=limit - len(first.items), statements=walks.STATEMENTS - 1
    )
    return walks.Found([*first.items, *rest.items], rest.resume)


async def _was_ever(tx: Tx, wanted: Filter) -> bool:
    """Every task was given a route, and routes are never deleted: without a route there is no need to scan further."""
    where = Where().eq("queue", wanted.queue).eq("task_type", wanted.task_type)
    return bool(await tx.fetchval(f"SELECT EXISTS (SELECT FROM headrace.task_routes {where.sql})", *where.args))


async def _walked(tx: Tx, wanted: Filter, *, older_than: Mark | None, limit: int, statements: int) -> Found:
    return await walks.walk(
        tx,
        lambda mark, limit: listing(wanted, older_than=mark, limit=limit),
        task_of,
        lambda row: (row["created_at"], row["id"]),
        older_than=older_than,
        limit=limit,
        rows=_rows_of_walk(wanted),
        statements=statements,
    )


@dataclass(frozen=True, slots=True)
class _RareTasks:
    """The page if at most ``walks.ROWS`` tasks have these statuses, else None; and the newest change of one."""

    tasks: Sequence[Task] | None
    newest: datetime | None


# The operator may have dropped it, and without it the statements would read the whole table.
_HAS_STATUS_INDEX = """
SELECT coalesce((SELECT indisvalid FROM pg_index
                 WHERE indexrelid = to_regclass('headrace.idx_tasks_status_updated_at')), false)
"""


async def has_status_index(tx: Tx) -> bool:
    return bool(await tx.fetchval(_HAS_STATUS_INDEX))


async def _list_rare(tx: Tx, wanted: Filter, *, older_than: Mark | None, limit: int) -> _RareTasks:
    """Everybody's tasks of some statuses from the index on the status, which finds a hundred among millions."""
    assert wanted.statuses is not None
    if not await has_status_index(tx):
        return _RareTasks(None, None)
    changed = _newest_changed("updated_at", wanted.statuses)
    sql = f"SELECT count(*) AS size, max(updated_at) AS newest FROM ({changed}) AS changed"
    size, newest = (await tx.fetch(sql, *wanted.statuses))[0]
    if size > walks.ROWS:
        return _RareTasks(None, newest)
    sql, args = listing_rare(wanted, older_than=older_than, limit=limit)
    return _RareTasks([task_of(row) for row in await tx.fetch(sql, *args)], newest)


def _newest_changed(columns: str, statuses: Sequence[TaskStatus]) -> str:
    """One more than a walk reads, to distinguish all of them from more. The order makes the index the only way."""
    # A limit for each status, and none over all: the newest change must be that of every status.
    parts = (
        f"(SELECT {columns} FROM headrace.tasks WHERE status = ${number} ORDER BY updated_at DESC "
        f"LIMIT {walks.ROWS + 1})"
        for number in range(1, len(statuses) + 1)
    )
    return f"SELECT * FROM ({' UNION ALL '.join(parts)}) AS part"


def listing_rare(wanted: Filter, *, older_than: Mark | None = None, limit: int) -> tuple[str, Sequence[object]]:
    """The statement of a list by a rare status and its arguments."""
    statuses = wanted.statuses or ()
    where = Where(first=len(statuses) + 1).since("task.created_at", wanted.created_since)
    where = where.until("task.created_at", wanted.created_until)
    where = _rest(where.older_than(("task.created_at", "task.id"), older_than), wanted)
    order = "ORDER BY created_at DESC, id DESC"
    sql = f"""
SELECT {SHOWN}, NULL AS payload, NULL AS result
FROM (
  SELECT task.* FROM ({_newest_changed("*", statuses)}) AS task {where.sql} {order} LIMIT ${where.next}
) AS task {LEASE}
{order}
"""
    return sql, (*statuses, *where.args, limit)


def listing(wanted: Filter, *, older_than: Mark | None = None, limit: int) -> tuple[str, Sequence[object]]:
    """The statement of a list and its arguments: one walk along an index for each status, merged.

    Of one user's tasks by status, and of one user's or everybody's without, rows come in order from the index. The
    other filters are applied to what the walk meets.
    """
    by_status = wanted.user_id is not None and wanted.statuses is not None
    rows = _rows_of_walk(wanted)
    # The user is part of the order, though there is only one: so only an index that begins with the user gives it. By
    # an index on the time alone the walk would lead over everybody else's tasks, without a bound. Upwards only the
    # index with the status gives it, downwards only the one without: no walk leads over tasks of other statuses.
    user = "" if wanted.user_id is None else "user_id, " if by_status else "user_id DESC, "
    order = f"{user}created_at DESC, id DESC"
    sources: list[str] = []
    args: tuple[object, ...] = ()
    for status in wanted.statuses if by_status and wanted.statuses is not None else [None]:
        where = walk_clauses(Where(first=len(args) + 1), wanted, status, older_than)
        sources.append(walks.source("headrace.tasks", where, order, rows=rows))
        args += where.args
    rest = _rest(Where(first=len(args) + 1), wanted)
    columns = f"{SHOWN}, NULL AS payload, NULL AS result"
    return walks.selection(columns, sources, "task", rest, order, joins=LEASE, rows=rows), (*args, *rest.args, limit)


def _rows_of_walk(wanted: Filter) -> int:
    """Of one user's tasks each status has a walk of its own."""
    return walks.share(1 if wanted.user_id is None else len(wanted.statuses or ()))


def walk_clauses(where: Where, wanted: Filter, status: TaskStatus | None, older_than: Mark | None = None) -> Where:
    """What an index answers of a filter, for a walk over the tasks of one status or of all."""
    if wanted.user_id is not None:
        # Twice, and so as = ANY: the planner would drop a plain equality from the order.
        where = where.among("user_id", [wanted.user_id, wanted.user_id])
    return (
        where.eq("status", status)
        .since("created_at", wanted.created_since)
        .until("created_at", wanted.created_until)
        .older_than(("created_at", "id"), older_than)
    )


def _rest(where: Where, wanted: Filter) -> Where:
    where = where.is_null("task.deleted_at").eq("task.task_type", wanted.task_type).eq("task.queue", wanted.queue)
    where = where.not_prefixed("task.task_type", wanted.excluded_prefix)
    where = where.has_text("task.title", wanted.title).contains("task.labels", wanted.labels)
    where = where.has_text_in(("task.error_code", "task.error_message"), wanted.error)
    where = where.eq("task.idempotency_key", wanted.key)
    return where.among("task.status", wanted.statuses) if wanted.user_id is None else where


@dataclass(frozen=True, slots=True)
class LogLine:
    """How an attempt ended, or a line that a handler wrote (``LOG``)."""

    id: int
    attempt: int
    status: str
    message: str | None
    created_at: datetime


LIST_LOGS = """
SELECT id, attempt, status, message, created_at FROM headrace.task_logs
WHERE task_id = $1 AND id > $2 ORDER BY id LIMIT $3
"""


async def list_logs(tx: Tx, task_id: str, *, after: int = 0, limit: int) -> list[LogLine]:
    """In the order in which they were written."""
    return [LogLine(*row) for row in await tx.fetch(LIST_LOGS, task_id, after, limit)]


LAST_LOG_ID = "SELECT coalesce(max(id), 0) FROM headrace.task_logs WHERE task_id = $1"


async def last_log_id(tx: Tx, task_id: str) -> int:
    """The id of the newest line, 0 before the first."""
    last: int = await tx.fetchval(LAST_LOG_ID, task_id)
    return last


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step of one attempt."""

    id: int
    step_name: str
    status: str
    attempt: int
    started_at: datetime | None
    ended_at: datetime | None
    duration_ms: int | None
    detail: Any
    created_at: datetime


# A result's row goes with its task's, and nothing else names its bytes: those go first.
HAS_NO_BYTES = """NOT EXISTS (
  SELECT FROM headrace.task_results AS result WHERE result.task_id = tasks.id AND result.purged_at IS NULL
)"""
# Nor do the files of its steps, which its steps name: those of a removal that failed are kept for another attempt.
HAS_NO_STEP_FILES = """NOT EXISTS (
  SELECT FROM headrace.task_steps AS step WHERE step.task_id = tasks.id AND step.detail_json ? 'files'
)"""
PURGE_DELETED = delete_with_lines(
    "tasks",
    f"""
SELECT id FROM headrace.tasks
WHERE deleted_at IS NOT NULL AND {HAS_NO_BYTES} AND {HAS_NO_STEP_FILES}
ORDER BY deleted_at LIMIT $1 FOR UPDATE SKIP LOCKED
""",
    "task_logs",
    "task_id",
)


async def purge_deleted(tx: Tx, limit: int) -> int:
    """Remove what its owners have deleted; gives how many."""
    return await tx.count(PURGE_DELETED, limit)


LIST_STEPS = """
SELECT id, step_name, status, attempt, started_at, ended_at, duration_ms, detail_json, created_at
FROM headrace.task_steps WHERE task_id = $1 AND id > $2 AND (NOT $4 OR status = 'FAILED') ORDER BY id LIMIT $3
"""


async def list_steps(tx: Tx, task_id: str, *, failed: bool = False, after: int = 0, limit: int) -> list[StepLine]:
    """In the order in which they were first entered; all, or those that failed."""
    return [StepLine(*row) for row in await tx.fetch(LIST_STEPS, task_id, after, limit, failed)]
