"""Overlap: what becomes of a due time while ``max_concurrent`` runs of its schedule are under way.

Whether it waits or is skipped is decided with the schedule locked. To cancel what runs, a task must be locked, and
everybody takes a task before its schedule; so that happens after the commit that fired, in a transaction of its own.
Who dies in between leaves rows that say what is to be done, and the next scheduler does it.
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
_AT_ONCE = 200  # runs that one pass tells to stop


async def count_waiting(tx: Tx, plans: Sequence[Plan], activity: Mapping[str, ScheduleActivity]) -> dict[str, int]:
    """How many runs wait of each schedule that says how many may; the others need not be counted."""
    capped = {
        plan.uid: plan.max_waiting for plan in plans if plan.max_waiting is not None and activity[plan.uid].waiting
    }
    return await store.count_waiting(tx, list(capped), list(capped.values())) if capped else {}


def admitted(plan: Plan, activity: ScheduleActivity, waiting: int, times: int) -> slice:
    """Which of so many due times have a run; the others are skipped. ``waiting`` matters where the plan has a cap."""
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
    """End runs that wait although later ones of their schedule would take their place. The schedules are locked."""
    uids = [plan.uid for plan in plans if plan.overlap_policy == OverlapPolicy.CANCEL_RUNNING]
    if not uids:
        return 0
    superseded = await store.list_superseded(tx, uids, most=None)
    held = [each.execution_uid for each in superseded if each.task_id is None]
    return await runs_store.cancel_held(tx, held, message=SUPERSEDED)


async def cancel_superseded(db: Database, tasks: Tasks) -> int:
    """Tell runs to stop that must make room for later ones, one in each transaction; gives how many.

    Any number of schedulers do this: whoever comes second finds that it was told.
    """
    async with db.transaction(readonly=True) as tx:
        superseded = await store.list_superseded(tx, None, most=_AT_ONCE)
    told = 0
    for each in superseded:
        if each.task_id is None:
            continue
        try:
            async with db.transaction() as tx:
                told += await _cancel(tx, tasks, each.schedule_uid, each.task_id)
        except TaskChanged:  # the next pass looks at it again
            continue
        except RowsLocked:
            # Blocked by an open transaction: that run waits for the next pass, other runs do not.
            log.info("scheduler.superseding_waits", schedule=each.schedule_uid, task_id=each.task_id)
        except Unavailable:
            raise
        except Exception:
            # A follower refuses this one: the others must not suffer for it, nor what is due.
            log.exception("scheduler.not_superseded", schedule=each.schedule_uid, task_id=each.task_id)
    if told:
        log.info("scheduler.superseded", runs=told)
    return told


async def _cancel(tx: Tx, tasks: Tasks, schedule_uid: str, task_id: str) -> bool:
    await lock_task(tx, task_id)
    # It may have ended meanwhile, or what was to come in its place was canceled by somebody.
    if all(each.task_id != task_id for each in await store.list_superseded(tx, [schedule_uid], most=None)):
        return False
    await runs_store.note_reason(tx, task_id, SUPERSEDED)
    return await stop_task(tx, tasks, task_id, message=SUPERSEDED, patient=False)
