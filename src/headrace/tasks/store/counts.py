"""Counting tasks, up to a bound."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.database import Row, Tx
from headrace.sql import Where
from headrace.tasks.store.tasks import Filter, has_status_index, walk_clauses

COUNT_WALK = 4_000  # rows that a count reads; an index alone is read up to the bound of the count
MAX_DELETED = 2_000  # deleted rows that a count reads beside an index; the purge leaves few


@dataclass(frozen=True, slots=True)
class Counted:
    """``exact`` is False where counting ended early: then ``count`` is a lower bound."""

    count: int
    exact: bool


async def count_tasks(tx: Tx, wanted: Filter, *, most: int) -> Counted:
    """How many tasks a list of all of them would hold, by the status in the row, as the list. Up to ``most``, and after
    reading ``COUNT_WALK`` rows where a part of the filter has no index."""
    if _needs_status_index(wanted) and not await has_status_index(tx):
        # The operator has dropped it: without it, the order would be a sort of all tasks of the status.
        sql, args = counting(wanted, by_status=False)
        return _counted((await tx.fetch(sql, *args))[0], most)
    if _is_indexed(wanted) and (deleted := await _count_deleted(tx, wanted)) is not None:
        sql, args = counting_by_index(wanted, most=most + 1 + deleted)
        count: int = await tx.fetchval(sql, *args) - deleted
        return Counted(min(count, most), exact=count <= most)
    sql, args = counting(wanted)
    return _counted((await tx.fetch(sql, *args))[0], most)


def _counted(row: Row, most: int) -> Counted:
    count = row["count"]
    return Counted(min(count, most), exact=count <= most and row["walked"] < COUNT_WALK)


def _needs_status_index(wanted: Filter) -> bool:
    return wanted.user_id is None and _is_by_status(wanted)


def counting_by_index(wanted: Filter, *, most: int) -> tuple[str, Sequence[object]]:
    """The statement of a count that an index answers alone, and its arguments."""
    walk, args = _walk("", wanted, most, by_status=_is_by_status(wanted))
    return f"SELECT count(*) FROM {walk}", args


def counting(wanted: Filter, *, by_status: bool = True) -> tuple[str, Sequence[object]]:
    """The statement of any count, and its arguments. The walk is limited by what one index gives alone; the rest of the
    filter is applied to the rows it reads."""
    by_status = by_status and _is_by_status(wanted)
    walk, args = _walk("deleted_at, task_type, queue, status", wanted, COUNT_WALK, by_status=by_status)
    rest = (
        Where(first=len(args) + 1)
        .is_null("deleted_at")
        .eq("task_type", wanted.task_type)
        .eq("queue", wanted.queue)
        .not_prefixed("task_type", wanted.excluded_prefix)
    )
    if not by_status:
        rest = rest.among("status", wanted.statuses)
    fits = " AND ".join(rest.clauses)
    return f"SELECT count(*) AS walked, count(*) FILTER (WHERE {fits}) AS count FROM {walk}", (*args, *rest.args)


def _is_indexed(wanted: Filter) -> bool:
    """Whether an index answers all of the filter, but for deleted tasks."""
    is_plain = (wanted.task_type, wanted.queue, wanted.excluded_prefix) == (None, None, None)
    return is_plain and (wanted.statuses is None or _is_by_status(wanted))


def _is_by_status(wanted: Filter) -> bool:
    """Whether an index begins with the status: of one user's tasks, and of everybody's without a time."""
    has_time = wanted.created_since is not None or wanted.created_until is not None
    return wanted.statuses is not None and (wanted.user_id is not None or not has_time)


def _walk(columns: str, wanted: Filter, most: int, *, by_status: bool) -> tuple[str, Sequence[object]]:
    """A limited number of rows from one index, for FROM; for each status a walk of its own. Without the
    order the planner may read the table instead, up to a user's first task."""
    if wanted.user_id is not None:
        order = "user_id, created_at DESC" if by_status else "user_id DESC, created_at DESC"
    else:
        order = "updated_at DESC" if by_status else "created_at DESC"
    parts: list[str] = []
    args: tuple[object, ...] = ()
    for status in wanted.statuses or () if by_status else [None]:
        where = walk_clauses(Where(first=len(args) + 1), wanted, status)
        parts.append(f"(SELECT {columns} FROM headrace.tasks {where.sql} ORDER BY {order} LIMIT {most:d})")
        args += where.args
    return f"(SELECT * FROM ({' UNION ALL '.join(parts)}) AS part LIMIT {most:d}) AS walked", args


async def _count_deleted(tx: Tx, wanted: Filter) -> int | None:
    """Of these the deleted ones, which an index has but no list shows; None if many wait for the purge."""
    where = Where().eq("user_id", wanted.user_id).among("status", wanted.statuses)
    where = where.since("created_at", wanted.created_since).until("created_at", wanted.created_until)
    sql = f"""
SELECT CASE WHEN count(*) <= {MAX_DELETED} THEN count(*) FILTER ({where.sql or "WHERE true"}) END
FROM (
  SELECT user_id, status, created_at FROM headrace.tasks WHERE deleted_at IS NOT NULL LIMIT {MAX_DELETED + 1}
) AS deleted
"""
    deleted: int | None = await tx.fetchval(sql, *where.args)
    return deleted
