"""Warnings about valid schedules."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from headrace.database import Tx
from headrace.schedules.model import MisfirePolicy, Schedule
from headrace.schedules.store.schedules import clock
from headrace.tasks import why
from headrace.tasks.errors import UnknownTaskType
from headrace.tasks.model import DEFAULT_QUEUE
from headrace.tasks.service import Tasks
from headrace.tasks.why import Code, Reason

_LATE = timedelta(minutes=1)  # with less a scheduler may be about to fire it


async def warnings_of(tx: Tx, tasks: Tasks, schedule: Schedule) -> Sequence[Reason]:
    """Why its runs would wait: no live worker takes them; and whether it is long overdue. A disabled schedule has no
    warnings."""
    if not schedule.enabled:
        return []
    try:
        queue = (await tasks.catalog.get(tx, schedule.type)).queue
    except UnknownTaskType:  # its runs will fail with this error
        queue = DEFAULT_QUEUE
    no_worker = await why.explain_no_worker(tx, schedule.type, queue, schedule.labels)
    past_due = _past_due(schedule, await clock(tx))
    return [each for each in (past_due, no_worker) if each is not None]


def _past_due(schedule: Schedule, now: datetime) -> Reason | None:
    due = schedule.next_run
    # A time set by the last change was in the past from the beginning.
    if due is None or not (due < schedule.updated_at or due < now - _LATE):
        return None
    text = f"It was due at {due:%Y-%m-%d %H:%M:%S} UTC, which has passed: {_misfire_text(schedule)}"
    return Reason(Code.PAST_DUE, text, {"next_run": due, "misfire_policy": schedule.misfire_policy})


def _misfire_text(schedule: Schedule) -> str:
    match schedule.misfire_policy, schedule.is_recurring:
        case MisfirePolicy.NONE, _:
            return "if that is longer ago than HEADRACE_SCHEDULER_MISFIRE_AFTER it is skipped (misfire_policy none)."
        case MisfirePolicy.ALL, True:
            return "it runs for every due time since then, up to HEADRACE_SCHEDULER_CATCH_UP (misfire_policy all)."
        case MisfirePolicy.LATEST, True:
            return "it runs at once for the latest due time since then (misfire_policy latest)."
        case _:
            return "it runs as soon as a scheduler is active."
