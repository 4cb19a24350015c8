"""Fires due schedules: many in one transaction, each due time exactly once.

One transaction locks the schedules (rows locked by others are skipped), submits tasks, inserts runs and advances
``next_run`` from the due time. The unique key on schedule, due time and attempt guarantees that no due time fires
twice, whatever is done to ``next_run``.
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

# Approximate limit of runs in one transaction: a thousand schedules that catch up a thousand runs each would exceed the
# statement timeout, and be retried for ever.
_MAX_RUNS = 5000


@dataclass(slots=True)
class Fired:
    """The result of one pass."""

    schedules: int = 0
    executions: int = 0
    skipped: int = 0
    missed: int = 0  # skipped times that were due while no scheduler ran
    uids: list[str] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)  # how long each run had been due when the pass began
    blocked: list[str] = field(default_factory=list)  # due, but postponed: their owners' units are locked


async def fire_due(
    tx: Tx,
    submitter: Submitter,
    misfires: MisfireConfig,
    *,
    now: datetime | None = None,
    limit: int,
    exclude: Sequence[str] = (),
) -> Fired:
    """Fire at most ``limit`` due schedules, by the database's clock, or by ``now`` in tests and replays."""
    rows = await store.lock_due(tx, now=now, limit=limit, exclude=exclude)
    if not rows:
        return Fired()
    decided = _limit_runs([_decide_due(row, misfires) for row in rows])
    rows = rows[: len(decided)]
    standings = await store.inspect_schedules(
        tx,
        [row["uid"] for row in rows],
        [found.fire[0] if found.fire else None for found in decided],
        [found.fire[-1] if found.fire else None for found in decided],
    )
    at = rows[0]["at"]
    plans = [Plan.of(row) for row in rows]
    waiting = await overlap.count_waiting(tx, plans, standings)
    runs: list[Run] = []
    times: list[datetime] = []
    skipped: list[int] = []
    for plan, found in zip(plans, decided, strict=True):
        standing = standings[plan.uid]
        fresh = [each for each in found.fire if each not in standing.fired]
        kept = fresh[overlap.admitted(plan, standing, waiting.get(plan.uid, 0), len(fresh))]
        runs += [Run(plan, new_execution_uid()) for _ in kept]
        times += kept
        skipped.append(found.skipped + len(fresh) - len(kept))
    await _start_free_slots(tx, submitter, runs, standings, patient=False)
    # These stay due and unchanged: another transaction locks the units of their owner.
    blocked = {run.schedule.uid for run in runs if run.blocked}
    if blocked:
        times = [each for each, run in zip(times, runs, strict=True) if run.schedule.uid not in blocked]
        runs = [run for run in runs if run.schedule.uid not in blocked]
        fires = [plan.uid not in blocked for plan in plans]
        rows, plans = list(compress(rows, fires)), list(compress(plans, fires))
        decided, skipped = list(compress(decided, fires)), list(compress(skipped, fires))
    await insert_runs(tx, runs, times, trigger=Trigger.SCHEDULED)
    await overlap.supersede_waiting(tx, plans)
    # A run that ends fills its slot; if a slot is free nevertheless, waiting runs start at the latest at the next time.
    free = [row["uid"] for row in rows if standings[row["uid"]].can_start_waiting(row["max_concurrent"])]
    if free:
        await _release(tx, submitter, free, patient=False)
    await store.advance(tx, [row["uid"] for row in rows], [found.next_run for found in decided], skipped)
    late_s = [(at - due_at).total_seconds() for due_at in times]
    missed = sum(found.skipped for found in decided)
    return Fired(len(rows), len(runs), sum(skipped), missed, [row["uid"] for row in rows], late_s, sorted(blocked))


def _decide_due(row: Row, misfires: MisfireConfig) -> Due:
    rhythm = Rhythm(row["cron_expr"], row["interval"], row["timezone"])
    return due.decide(rhythm, row["next_run"], row["at"], MisfirePolicy(row["misfire_policy"]), misfires)


def _limit_runs(decided: Sequence[Due]) -> Sequence[Due]:
    """The first decisions within the limit, at least one; the others stay due and come next."""
    total = 0
    for position, found in enumerate(decided):
        total += len(found.fire)
        if position and total > _MAX_RUNS:
            return decided[:position]
    return decided


async def _start_free_slots(
    tx: Tx, submitter: Submitter, runs: Sequence[Run], standings: Mapping[str, ScheduleActivity], *, patient: bool
) -> None:
    """Submit tasks for runs with a free slot. The others wait without a task, and block nothing."""
    taken = {uid: each.active for uid, each in standings.items()}
    now_startable = []
    for run in runs:
        plan = run.schedule
        # Waiting runs go first.
        if not standings[plan.uid].waiting and taken[plan.uid] < plan.max_concurrent:
            now_startable.append(run)
            taken[plan.uid] += 1
    await submit_runs(tx, submitter, now_startable, patient=patient)
    # A refusal applies to all runs of a schedule: the others would wait for ever.
    refusals = {run.schedule.uid: run.refused for run in now_startable if run.refused is not None}
    for run in runs:
        if run.task_id is None:
            run.refused = refusals.get(run.schedule.uid)


async def insert_runs(
    tx: Tx, runs: Sequence[Run], times: Sequence[datetime], *, trigger: Trigger, trigger_by: str | None = None
) -> None:
    """Insert the runs; refused ones are inserted as failed."""
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
    """Fire one run now, beside the schedule's own times; ``ScheduleBusy`` if it may not wait for a slot. The caller has
    locked the schedule."""
    standings = await store.inspect_schedules(tx, [plan.uid], [None], [None])
    waiting = await overlap.count_waiting(tx, [plan], standings)
    run = Run(plan, new_execution_uid(), who=who)
    if not [run][overlap.admitted(plan, standings[plan.uid], waiting.get(plan.uid, 0), 1)]:
        raise ScheduleBusy
    await _start_free_slots(tx, submitter, [run], standings, patient=True)
    await insert_runs(tx, [run], [now], trigger=Trigger.MANUAL, trigger_by=by)
    await overlap.supersede_waiting(tx, [plan])
    if run.task_id is None and plan.overlap_policy == OverlapPolicy.CANCEL_RUNNING:  # a scheduler frees a slot for it
        await tx.execute(store.WAKE)
    return run


async def release_held(tx: Tx, submitter: Submitter, uids: Sequence[str], *, patient: bool) -> int:
    """Start runs that wait for a slot, earliest first. The caller has locked the schedules.

    ``RowsLocked`` if another transaction locks the units of an owner: at once, or after a while if ``patient``.
    """
    started, blocked = await _release(tx, submitter, uids, patient=patient)
    if blocked:
        raise RowsLocked(user_ids=blocked)
    return started


async def _release(tx: Tx, submitter: Submitter, uids: Sequence[str], *, patient: bool) -> tuple[int, set[str]]:
    """Start waiting runs; returns their number, and the owners whose runs still wait because their units are locked."""
    runs = [Run(Plan.of(row), row["execution_uid"]) for row in await tx.fetch(store.HELD, list(uids))]
    await submit_runs(tx, submitter, runs, patient=patient)
    started = [run for run in runs if run.task_id is not None]
    if started:
        await tx.execute(store.ATTACH_TASKS, [run.execution_uid for run in started], [run.task_id for run in started])
    refused = {run.schedule.uid: run for run in runs if run.refused is not None}
    if refused:
        await _refuse_held(tx, refused)
    return len(started), {run.schedule.user_id for run in runs if run.blocked}


async def _refuse_held(tx: Tx, like: Mapping[str, Run]) -> None:
    """End all waiting runs of these schedules with the refusal of one run: it applies to all."""
    refused = [
        replace(like[row["task_uid"]], execution_uid=row["execution_uid"])
        for row in await tx.fetch(store.WAITING, list(like))
    ]
    execution_uids = [run.execution_uid for run in refused]
    at: datetime = await tx.fetchval(store.CLOCK)
    await tx.execute(store.START_REFUSED, execution_uids, at)
    await tx.execute(store.END_REFUSED, execution_uids, [run.refused and run.refused.message for run in refused])
    await _count_refused(tx, refused, at)
