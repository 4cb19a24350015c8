"""Firing schedules that are due: many in one transaction, each due time once.

One transaction locks the schedules (those that somebody else has at this moment are passed over), submits the tasks,
inserts the runs and moves ``next_run`` on from the due time. The unique key on schedule, due time and attempt stands
behind it: no due time can fire twice, whatever is done to ``next_run``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import compress

from headrace.audit import Who
from headrace.database import Row, Tx
from headrace.database_errors import RowsLocked
from headrace.schedules import due, overlap
from headrace.schedules.due import Due, MisfireConfig, Rhythm
from headrace.schedules.errors import ScheduleBusy
from headrace.schedules.model import MisfirePolicy, OverlapPolicy, Trigger, new_execution_uid
from headrace.schedules.store import firing as store
from headrace.schedules.store.firing import ScheduleActivity
from headrace.schedules.submission import Plan, Run, submit_runs
from headrace.tasks.submit import Submitter

# Runs that one transaction makes, or little more: a thousand schedules that catch up with a thousand each would never
# be through before the statement's limit, and would be tried for ever.
_AT_ONCE = 5000


@dataclass(slots=True)
class Fired:
    """What one pass did."""

    schedules: int = 0
    executions: int = 0
    skipped: int = 0
    missed: int = 0  # those of the skipped that were due while no scheduler was there
    uids: list[str] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)  # how long each run had been due when the look began
    blocked: list[str] = field(default_factory=list)  # due, and left for later: their owners' units are locked


async def fire_due(
    tx: Tx,
    submitter: Submitter,
    misfires: MisfireConfig,
    *,
    now: datetime | None = None,
    limit: int,
    but: Sequence[str] = (),
) -> Fired:
    """Fire up to ``limit`` schedules that are due, by the database's clock unless a test or a replay gives another."""
    rows = await store.lock_due(tx, now=now, limit=limit, but=but)
    if not rows:
        return Fired()
    looked = _as_many_as_fit([_look(row, misfires) for row in rows])
    rows = rows[: len(looked)]
    standings = await store.inspect_schedules(
        tx,
        [row["uid"] for row in rows],
        [found.fire[0] if found.fire else None for found in looked],
        [found.fire[-1] if found.fire else None for found in looked],
    )
    at = rows[0]["at"]
    plans = [Plan.of(row) for row in rows]
    waiting = await overlap.count_waiting(tx, plans, standings)
    runs: list[Run] = []
    times: list[datetime] = []
    skipped: list[int] = []
    for plan, found in zip(plans, looked, strict=True):
        standing = standings[plan.uid]
        fresh = [each for each in found.fire if each not in standing.fired]
        kept = fresh[overlap.admitted(plan, standing, waiting.get(plan.uid, 0), len(fresh))]
        runs += [Run(plan, new_execution_uid()) for _ in kept]
        times += kept
        skipped.append(found.skipped + len(fresh) - len(kept))
    await _start_what_may(tx, submitter, runs, standings, patient=False)
    # These stay due, and are left as they are: another transaction has locked the units of their owner.
    blocked = {run.schedule.uid for run in runs if run.blocked}
    if blocked:
        times = [each for each, run in zip(times, runs, strict=True) if run.schedule.uid not in blocked]
        runs = [run for run in runs if run.schedule.uid not in blocked]
        fires = [plan.uid not in blocked for plan in plans]
        rows, plans = list(compress(rows, fires)), list(compress(plans, fires))
        looked, skipped = list(compress(looked, fires)), list(compress(skipped, fires))
    await insert_runs(tx, runs, times, trigger=Trigger.SCHEDULED)
    await overlap.supersede_waiting(tx, plans)
    # Whoever frees a slot fills it; should one be free all the same, nobody waits for longer than until the next time.
    free = [row["uid"] for row in rows if standings[row["uid"]].waits_in_vain(row["max_concurrent"])]
    if free:
        await _release(tx, submitter, free, patient=False)
    await store.advance(tx, [row["uid"] for row in rows], [found.next_run for found in looked], skipped)
    late_s = [(at - due_at).total_seconds() for due_at in times]
    missed = sum(found.skipped for found in looked)
    return Fired(len(rows), len(runs), sum(skipped), missed, [row["uid"] for row in rows], late_s, sorted(blocked))


def _look(row: Row, misfires: MisfireConfig) -> Due:
    rhythm = Rhythm(row["cron_expr"], row["interval"], row["timezone"])
    return due.decide(rhythm, row["next_run"], row["at"], MisfirePolicy(row["misfire_policy"]), misfires)


def _as_many_as_fit(looked: Sequence[Due]) -> Sequence[Due]:
    """The first of them, at least one; the others are due as they were, and come next."""
    total = 0
    for position, found in enumerate(looked):
        total += len(found.fire)
        if position and total > _AT_ONCE:
            return looked[:position]
    return looked


async def _start_what_may(
    tx: Tx, submitter: Submitter, runs: Sequence[Run], standings: Mapping[str, ScheduleActivity], *, patient: bool
) -> None:
    """Submit the tasks of runs for which there is a slot. The others wait without a task, and are in nobody's way."""
    taken = {uid: each.active for uid, each in standings.items()}
    now_startable = []
    for run in runs:
        plan = run.schedule
        # Those that wait already go first.
        if not standings[plan.uid].waiting and taken[plan.uid] < plan.max_concurrent:
            now_startable.append(run)
            taken[plan.uid] += 1
    await submit_runs(tx, submitter, now_startable, patient=patient)
    # What one run of a schedule is refused for, all are: to let the others wait would be to wait for nobody.
    refusals = {run.schedule.uid: run.refused for run in now_startable if run.refused is not None}
    for run in runs:
        if run.task_id is None:
            run.refused = refusals.get(run.schedule.uid)


async def insert_runs(
    tx: Tx, runs: Sequence[Run], times: Sequence[datetime], *, trigger: Trigger, trigger_by: str | None = None
) -> None:
    """Write the runs down, those that were refused as failed."""
    if not runs:
        return
    refused = [run for run in runs if run.refused is not None]
    at: datetime | None = await tx.fetchval(store.CLOCK) if refused else None
    await tx.execute(
        store.INSERT_RUNS,
        [run.schedule.uid for run in runs],
        [run.schedule.user_id for run in runs],
        [run.schedule.name for run in runs],
        [run.schedule.type for run in runs],
        [run.execution_uid for run in runs],
        [run.task_id for run in runs],
        times,
        [run.refused and run.refused.message for run in runs],
        trigger,
        trigger_by,
        at,
    )
    if at is not None:
        await _count_refused(tx, refused, at)


async def _count_refused(tx: Tx, refused: Sequence[Run], at: datetime) -> None:
    uids = [run.schedule.uid for run in refused]
    await tx.execute(store.COUNT_REFUSED, uids, [run.refused and run.refused.message for run in refused], at)


async def fire_by_hand(tx: Tx, submitter: Submitter, plan: Plan, *, by: str, who: Who, now: datetime) -> Run:
    """One run at once, beside the schedule's own times; ``ScheduleBusy`` where it would have to wait and may not. The
    caller has locked the schedule."""
    standings = await store.inspect_schedules(tx, [plan.uid], [None], [None])
    waiting = await overlap.count_waiting(tx, [plan], standings)
    run = Run(plan, new_execution_uid(), who=who)
    if not [run][overlap.admitted(plan, standings[plan.uid], waiting.get(plan.uid, 0), 1)]:
        raise ScheduleBusy
    await _start_what_may(tx, submitter, [run], standings, patient=True)
    await insert_runs(tx, [run], [now], trigger=Trigger.MANUAL, trigger_by=by)
    await overlap.supersede_waiting(tx, [plan])
    if run.task_id is None and plan.overlap_policy == OverlapPolicy.CANCEL_RUNNING:  # a scheduler makes room for it
        await tx.execute(store.WAKE)
    return run


async def release_held(tx: Tx, submitter: Submitter, uids: Sequence[str], *, patient: bool) -> int:
    """Start runs that waited for a slot, the earliest first. The caller has locked the schedules.

    ``RowsLocked`` if another transaction has locked the units of an owner: at once, or if ``patient`` after a while.
    """
    started, blocked = await _release(tx, submitter, uids, patient=patient)
    if blocked:
        raise RowsLocked(user_ids=blocked)
    return started


async def _release(tx: Tx, submitter: Submitter, uids: Sequence[str], *, patient: bool) -> tuple[int, set[str]]:
    """Start runs that waited; gives how many, and the owners whose runs wait on because their units are locked."""
    runs = [Run(Plan.of(row), row["execution_uid"]) for row in await tx.fetch(store.HELD, list(uids))]
    await submit_runs(tx, submitter, runs, patient=patient)
    started = [run for run in runs if run.task_id is not None]
    if started:
        await tx.execute(store.GIVE_TASKS, [run.execution_uid for run in started], [run.task_id for run in started])
    refused = {run.schedule.uid: run for run in runs if run.refused is not None}
    if refused:
        await _refuse_held(tx, refused)
    return len(started), {run.schedule.user_id for run in runs if run.blocked}


async def _refuse_held(tx: Tx, like: Mapping[str, Run]) -> None:
    """End all that wait of these schedules as this run of theirs: what one is refused for, all are."""
    refused = [
        replace(like[row["task_uid"]], execution_uid=row["execution_uid"])
        for row in await tx.fetch(store.WAITING, list(like))
    ]
    execution_uids = [run.execution_uid for run in refused]
    at: datetime = await tx.fetchval(store.CLOCK)
    await tx.execute(store.START_REFUSED, execution_uids, at)
    await tx.execute(store.END_REFUSED, execution_uids, [run.refused and run.refused.message for run in refused])
    await _count_refused(tx, refused, at)
