"""Overlap: the treatment of a due time while ``max_concurrent`` runs of its schedule are under way.

Whether it waits or is skipped is decided under the schedule's lock. Canceling a run locks its task, and tasks are
always locked before schedules; so it happens after the firing commit, in a transaction of its own. If the process dies
in between, the rows record what to cancel, and the next scheduler does it.
"""

from collections.abc import Mapping, Sequence

from headrace import logs
from headrace.database import Database, Tx
from headrace.database_errors import RowsLocked
from headrace.errors import Unavailable
from headrace.schedules.model import OverlapPolicy
from headrace.schedules.store import executions as runs_store
from headrace.schedules.store import firing as store
from headrace.schedules.store.firing import ScheduleActivity
from headrace.schedules.submission import Plan
from headrace.tasks.errors import TaskChanged
from headrace.tasks.service import Tasks, stop_task
from headrace.tasks.store.moves import lock_task

log = logs.get(__name__)

SUPERSEDED = "Canceled for a later run of its schedule (overlap_policy cancel_running)."
_MAX_RUNS = 200  # runs stopped in one pass


async def count_waiting(tx: Tx, plans: Sequence[Plan], activity: Mapping[str, ScheduleActivity]) -> dict[str, int]:
    """Count waiting runs of schedules with a cap; the others need no count."""
    capped = {
        plan.uid: plan.max_waiting for plan in plans if plan.max_waiting is not None and activity[plan.uid].waiting
    }
    return await store.count_waiting(tx, list(capped), list(capped.values())) if capped else {}


def admitted(plan: Plan, activity: ScheduleActivity, waiting: int, times: int) -> slice:
    """The slice of ``times`` due times that run; the others are skipped. ``waiting`` matters if the plan has a cap."""
    free = 0 if activity.waiting else max(0, plan.max_concurrent - activity.active)
    match OverlapPolicy(plan.overlap_policy):
        case OverlapPolicy.QUEUE_ALL if plan.max_waiting is None:
            return slice(0, times)
        case OverlapPolicy.QUEUE_ALL:
            assert plan.max_waiting is not None
            return slice(0, free + max(0, plan.max_waiting - waiting))
        case OverlapPolicy.QUEUE_ONE:
            return slice(0, free + (not activity.waiting))
        case OverlapPolicy.SKIP:
            return slice(0, free)
        case OverlapPolicy.CANCEL_RUNNING:
            return slice(max(0, times - plan.max_concurrent), times)


async def supersede_waiting(tx: Tx, plans: Sequence[Plan]) -> int:
    """End waiting runs that later ones of their schedule replace. The schedules are locked."""
    uids = [plan.uid for plan in plans if plan.overlap_policy == OverlapPolicy.CANCEL_RUNNING]
    if not uids:
        return 0
    superseded = await store.list_superseded(tx, uids, most=None)
    held = [each.execution_uid for each in superseded if each.task_id is None]
    return await runs_store.cancel_held(tx, held, message=SUPERSEDED)


async def cancel_superseded(db: Database, tasks: Tasks) -> int:
    """Stop running runs that later ones replace, each in its own transaction; returns their number.

    Safe in several schedulers at once: the second finds the run already stopped.
    """
    async with db.transaction(readonly=True) as tx:
        superseded = await store.list_superseded(tx, None, most=_MAX_RUNS)
    stopped = 0
    for each in superseded:
        if each.task_id is None:
            continue
        try:
            async with db.transaction() as tx:
                stopped += await _cancel(tx, tasks, each.schedule_uid, each.task_id)
        except TaskChanged:  # the next pass handles it
            continue
        except RowsLocked:
            # Blocked by an open transaction: only this run waits for the next pass.
            log.info("scheduler.superseding_waits", schedule=each.schedule_uid, task_id=each.task_id)
        except Unavailable:
            raise
        except Exception:
            # A follower refuses this run: continue with the others and with what is due.
            log.exception("scheduler.not_superseded", schedule=each.schedule_uid, task_id=each.task_id)
    if stopped:
        log.info("scheduler.superseded", runs=stopped)
    return stopped


async def _cancel(tx: Tx, tasks: Tasks, schedule_uid: str, task_id: str) -> bool:
    await lock_task(tx, task_id)
    # It may have ended meanwhile, or its replacement may have been canceled.
    if all(each.task_id != task_id for each in await store.list_superseded(tx, [schedule_uid], most=None)):
        return False
    await runs_store.note_reason(tx, task_id, SUPERSEDED)
    return await stop_task(tx, tasks, task_id, message=SUPERSEDED, patient=False)
