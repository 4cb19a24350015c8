"""Showing on the wide row, and telling the followers, that tasks run: of those that run for longer than a moment."""

import time
from collections.abc import Iterable

from headrace import logs
from headrace.errors import Unavailable
from headrace.tasks.worker.reporting import LeaseReporter
from headrace.tasks.worker.runs import Run

log = logs.get(__name__)

# A task that runs longer than this shows as RUNNING on its wide row; a shorter one is written once, with its end.
_SHOW_AFTER_S = 0.1


async def show_starts(runs: Iterable[Run], reporter: LeaseReporter) -> None:
    """Show those that have run for a while and are not shown yet."""
    since = time.monotonic() - _SHOW_AFTER_S
    unseen = [
        run
        for run in runs
        if run.started < since
        and not run.waiting
        and not run.claimed.start_told
        and not run.start_refused
        # The handler's own transaction keeps its claim locked until it commits; no other start waits for it.
        and not run.claimed.finishing
    ]
    if unseen:
        await _tell_starts(unseen, reporter)


async def _tell_starts(runs: list[Run], reporter: LeaseReporter) -> None:
    """Show that these run. A start that a follower refuses is shown with the end; the others are not affected."""
    try:
        await reporter.start([run.claimed for run in runs])
    except Unavailable:
        raise
    except Exception:
        if len(runs) > 1:
            for run in runs:
                await _tell_starts([run], reporter)
            return
        log.exception("task.start_refused", task_id=runs[0].claimed.task_id)
        runs[0].start_refused = True
