"""Which rows are meant: the filter of a list, or some of its rows by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from headrace.database import Tx
from headrace.schedules.store import schedules as schedule_store
from headrace.schedules.store.schedules import ScheduleFilter
from headrace.sql import Mark
from headrace.tasks.model import Task, TaskStatus
from headrace.tasks.store import counts as task_counts
from headrace.tasks.store import tasks as task_store
from headrace.tasks.store.counts import Counted
from headrace.tasks.store.tasks import Filter

if TYPE_CHECKING:
    from headrace.admin.bulk.schemas import ScheduleFilterIn, TaskFilterIn


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some rows of those that are meant: their ids, and of tasks whether a worker has them. ``position`` is where to go
    on; with None there are no more."""

    ids: Sequence[str]
    running: frozenset[str]
    position: Mark | None
    late: int = 0  # tasks that were not over yet when it was asked for, and are by now: they are left alone


async def count_tasks(tx: Tx, criteria: "TaskFilterIn", wanted: Filter, *, most: int) -> Counted:
    if criteria.ids is None:
        return await task_counts.count_tasks(tx, wanted, most=most)
    return Counted(len(_matching(await task_store.list_named(tx, criteria.ids), wanted)), exact=True)


async def choose_tasks(
    tx: Tx, criteria: "TaskFilterIn", wanted: Filter, *, asked_at: datetime, after: Mark | None, limit: int
) -> Chosen:
    """The next tasks, newest first."""
    if criteria.ids is not None:
        return _chosen(_matching(await task_store.list_named(tx, criteria.ids), wanted), None, asked_at)
    listed = await task_store.list_tasks(tx, wanted, older_than=after, limit=limit)
    if listed.resume is not None:
        return _chosen(listed.items, listed.resume, asked_at)
    last = listed.items[-1] if len(listed.items) == limit else None
    return _chosen(listed.items, None if last is None else (last.created_at, last.id), asked_at)


def _chosen(tasks: Sequence[Task], position: Mark | None, asked_at: datetime) -> Chosen:
    waiting = (TaskStatus.QUEUED, TaskStatus.UPLOADED)
    # A task that failed again meanwhile, or ended only now, is not what the requester saw.
    meant = [task for task in tasks if task.finished_at is None or task.finished_at <= asked_at]
    running = frozenset(task.id for task in meant if task.status not in waiting and not task.status.is_over)
    return Chosen([task.id for task in meant], running, position, late=len(tasks) - len(meant))


def _matching(tasks: Mapping[str, Task], wanted: Filter) -> list[Task]:
    """Those of these that the filter matches, too: other users' rows count as missing."""
    return [
        task
        for task in tasks.values()
        if wanted.user_id in (None, task.user_id)
        and (wanted.statuses is None or task.status in wanted.statuses)
        and wanted.task_type in (None, task.task_type)
        and wanted.queue in (None, task.queue)
        and (wanted.excluded_prefix is None or not task.task_type.startswith(wanted.excluded_prefix))
        and (wanted.created_since is None or task.created_at >= wanted.created_since)
        and (wanted.created_until is None or task.created_at < wanted.created_until)
    ]


async def count_schedules(tx: Tx, criteria: "ScheduleFilterIn", wanted: ScheduleFilter, *, most: int) -> int:
    schedules = await schedule_store.list_schedules(tx, wanted, limit=most)  # there are thousands, not millions
    return len([each for each in schedules if criteria.ids is None or each.uid in criteria.ids])


async def choose_schedules(
    tx: Tx, criteria: "ScheduleFilterIn", wanted: ScheduleFilter, *, after: Mark | None, limit: int
) -> Chosen:
    """The next schedules, newest first."""
    schedules = await schedule_store.list_schedules(tx, wanted, older_than=after, limit=limit)
    last = schedules[-1] if len(schedules) == limit else None
    uids = [each.uid for each in schedules if criteria.ids is None or each.uid in criteria.ids]
    return Chosen(uids, frozenset(), None if last is None else (last.created_at, last.uid))
