"""Verbs of schedules. Users reach only their own, administrators all; every change is audited."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

import asyncpg

from headrace import audit
from headrace.access import AdminOnly, Caller, check_version
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Tx
from headrace.schedules import permission, rules
from headrace.schedules.due import Rhythm
from headrace.schedules.errors import ExecutionNotFound, ScheduleInvalid, ScheduleNotFound
from headrace.schedules.firing import fire_by_hand, release_held
from headrace.schedules.model import Execution, OverlapPolicy, Schedule, ScheduleSpec, ScheduleUid, new_schedule_uid
from headrace.schedules.store import executions as runs_store
from headrace.schedules.store import schedules as store
from headrace.schedules.store.executions import Figures
from headrace.schedules.store.schedules import ScheduleFilter
from headrace.schedules.submission import Plan
from headrace.sql import Mark
from headrace.tasks.service import Tasks, stop_waiting

EVERY_USER = "*"
_MAX_RUNS = 2000  # runs deleted with the schedule at once: few have more, and the request stays short
_WITH_SCHEDULE = "Canceled while it waited: its schedule was disabled."
_RHYTHM = frozenset({"cron", "interval", "run_at", "timezone"})


# -- making and changing


async def create_schedule(
    tx: Tx, tasks: Tasks, caller: Caller, spec: ScheduleSpec, *, now: datetime | None = None
) -> Schedule:
    """Create a schedule of the caller; ``ScheduleInvalid`` names the invalid field."""
    await rules.check_spec(tx, tasks.catalog, spec, user_id=caller.user_id)
    await permission.check_spec(tx, tasks, caller, spec, owner=caller.user_id)
    await permission.check_count(tx, tasks.caps, caller)
    next_run = _first_run(spec, await store.clock(tx, now))
    schedule = await _store(tx, new_schedule_uid(), spec, user_id=caller.user_id, next_run=next_run)
    assert schedule is not None  # its uid is new
    await audit.record(tx, caller.who, Action.CREATED, _resource(schedule), new=schedule)
    return schedule


async def ensure_schedule(
    tx: Tx, who: Who, uid: str, spec: ScheduleSpec, *, user_id: str, now: datetime | None = None
) -> bool:
    """Create a schedule that ships with a program, unless it exists; later changes by users stay.

    Its type need not be registered yet: the worker that runs it may start later.
    """
    next_run = _first_run(spec, await store.clock(tx, now))
    schedule = await _store(tx, ScheduleUid(uid), spec, user_id=user_id, next_run=next_run)
    if schedule is not None:
        await audit.record(tx, who, Action.CREATED, _resource(schedule), new=schedule)
    return schedule is not None


async def _store(
    tx: Tx, uid: ScheduleUid, spec: ScheduleSpec, *, user_id: str, next_run: datetime | None
) -> Schedule | None:
    try:
        return await store.insert_schedule(tx, uid, spec, user_id=user_id, next_run=next_run)
    except asyncpg.CheckViolationError as exc:
        raise rules.refused_by_database(exc.constraint_name) or exc from exc


def _first_run(spec: ScheduleSpec, now: datetime) -> datetime | None:
    """The first due time. A disabled schedule has none, unless it is a single run."""
    if not spec.is_recurring:
        return spec.run_at
    if not spec.enabled:
        return None
    return spec.run_at or _rhythm(spec).first(now)


def _rhythm(spec: ScheduleSpec) -> Rhythm:
    return Rhythm(spec.cron, spec.interval, spec.timezone)


async def update_schedule(
    tx: Tx,
    tasks: Tasks,
    caller: Caller,
    uid: str,
    changes: Mapping[str, Any],
    *,
    expected: int | None = None,
    now: datetime | None = None,
) -> Schedule:
    """Change some fields of a schedule. Running runs are not affected; later runs use the new values. Idempotent.

    The next run stays unchanged, unless the timing or ``enabled`` changes.
    """
    old = await _hold(tx, caller, uid, expected)
    if "type" in changes and changes["type"] != old.type:
        raise ScheduleInvalid("The type of a schedule cannot change: create another schedule.", fields=["type"])
    spec = replace(_spec_of(old, changes), **changes)
    if (
        _stored_values(spec) == _stored_values(_spec_of(old, {}))
        and changes.get("run_at", old.next_run) == old.next_run
    ):
        return old
    fired_once = not spec.is_recurring and spec.run_at is None and not _RHYTHM & changes.keys()
    if changes != {"enabled": False}:  # a schedule can always be disabled, even if its type or zone is gone
        checked = replace(spec, run_at=old.created_at) if fired_once else spec
        await rules.check_spec(tx, tasks.catalog, checked, user_id=old.user_id)
        await permission.check_spec(tx, tasks, caller, spec, owner=old.user_id)
    at = await store.clock(tx, now)
    next_run = _first_run(spec, at) if _moves(old, spec, changes) else old.next_run
    try:
        new = await store.update_schedule(tx, uid, spec, next_run=next_run)
    except asyncpg.CheckViolationError as exc:
        raise rules.refused_by_database(exc.constraint_name) or exc from exc
    if new.max_concurrent > old.max_concurrent:
        await release_held(tx, tasks.submitter, [uid], patient=True)
    await audit.record(tx, caller.who, _action(old, new), _resource(new), old=old, new=new)
    return new


def _spec_of(schedule: Schedule, changes: Mapping[str, Any]) -> ScheduleSpec:
    # Setting one kind of timing clears the others.
    kept = not {"cron", "interval", "run_at"} & {name for name, value in changes.items() if value is not None}
    return ScheduleSpec(
        name=schedule.name,
        type=schedule.type,
        cron=schedule.cron_expr if kept else None,
        interval=schedule.interval if kept or set(changes) & {"run_at"} else None,
        run_at=schedule.next_run if kept and not schedule.is_recurring else None,
        timezone=schedule.timezone,
        description=schedule.description,
        misfire_policy=schedule.misfire_policy,
        enabled=schedule.enabled,
        max_duration_seconds=schedule.max_duration_seconds,
        timeout_grace_period=schedule.timeout_grace_period,
        max_extension_seconds=schedule.max_extension_seconds,
        max_retries=schedule.max_retries,
        max_concurrent=schedule.max_concurrent,
        overlap_policy=schedule.overlap_policy,
        max_waiting=schedule.max_waiting if _keeps_max_waiting(changes) else None,
        priority=schedule.priority,
        labels=schedule.labels,
        data=schedule.data,
    )


def _keeps_max_waiting(changes: Mapping[str, Any]) -> bool:
    """Whether max_waiting stays: it is cleared with the policy it belongs to."""
    return OverlapPolicy(changes.get("overlap_policy", OverlapPolicy.QUEUE_ALL)) is OverlapPolicy.QUEUE_ALL


def _stored_values(spec: ScheduleSpec) -> tuple[ScheduleSpec, str]:
    """The stored values without the next run. The data as JSON, where 1, 1.0 and true differ."""
    return replace(spec, run_at=None, data=None), json.dumps(spec.data, sort_keys=True)


def _moves(old: Schedule, new: ScheduleSpec, changes: Mapping[str, Any]) -> bool:
    if old.enabled != new.enabled:
        return True
    before = (old.cron_expr, old.interval, old.timezone)
    return before != (new.cron, new.interval, new.timezone) or changes.get("run_at") is not None


def _action(old: Schedule, new: Schedule) -> Action:
    if old.enabled == new.enabled:
        return Action.UPDATED
    return Action.ENABLED if new.enabled else Action.DISABLED


async def enable_schedule(tx: Tx, tasks: Tasks, caller: Caller, uid: str, *, expected: int | None = None) -> Schedule:
    """Let a schedule run again from now on; times due meanwhile are not caught up. Idempotent.

    For a single run whose time has passed, its ``misfire_policy`` applies.
    """
    return await _switch(tx, tasks, caller, uid, enabled=True, expected=expected)


@dataclass(frozen=True, slots=True)
class Disabled:
    schedule: Schedule
    canceled: int  # runs that had not begun


async def disable_schedule(
    tx: Tx, tasks: Tasks, caller: Caller, uid: str, *, expected: int | None = None, cancel_pending: bool = False
) -> Disabled:
    """Stop firing. Running runs continue, and so do waiting ones, unless ``cancel_pending``. Idempotent."""
    if not cancel_pending:
        return Disabled(await _switch(tx, tasks, caller, uid, enabled=False, expected=expected), 0)
    schedule = await _switch(tx, tasks, caller, uid, enabled=False, expected=expected)
    canceled = await _cancel_pending(tx, tasks, uid)
    if canceled:
        runs = Resource(ResourceType.EXECUTION, EVERY_USER, {"name": schedule.name}, f"{uid}/{EVERY_USER}")
        await audit.record(tx, caller.who, Action.UPDATED, runs, data={"verb": "cancel", "count": str(canceled)})
    return Disabled(await _get(tx, uid), canceled)


async def _cancel_pending(tx: Tx, tasks: Tasks, uid: str) -> int:
    """End every run that has not begun. The caller holds the schedule's lock, so this must not wait for a transaction
    that holds a task and wants the schedule."""
    canceled = 0
    while held := await runs_store.list_waiting(tx, uid, limit=_MAX_RUNS):  # first: they would take the freed slots
        canceled += await runs_store.cancel_held(tx, held, message=_WITH_SCHEDULE)
    queued = await runs_store.list_queued(tx, uid)
    return canceled + await stop_waiting(tx, tasks, queued, message=_WITH_SCHEDULE)


async def _switch(tx: Tx, tasks: Tasks, caller: Caller, uid: str, *, enabled: bool, expected: int | None) -> Schedule:
    old = await _hold(tx, caller, uid, expected)
    if old.enabled == enabled:
        return old
    return await update_schedule(tx, tasks, caller, uid, {"enabled": enabled})


async def delete_schedule(tx: Tx, caller: Caller, uid: str, *, expected: int | None = None) -> None:
    """Remove a schedule and its history. Running runs continue as tasks; waiting ones are removed. To keep the
    history, disable it instead.

    With this commit it is deleted for all callers. The rest of a long history is purged later (``purge_deleted``).
    """
    old = await _hold(tx, caller, uid, expected)
    await store.delete_schedule(tx, uid)
    await store.purge_runs(tx, uid, limit=_MAX_RUNS)
    await audit.record(tx, caller.who, Action.DELETED, _resource(old), old=old)


async def purge_deleted(tx: Tx, limit: int) -> int:
    """Purge some history of deleted schedules; returns the number of rows. After a kill the next call continues: each
    commit leaves a deleted schedule with fewer runs."""
    gone = 0
    while gone < limit and (uid := await store.lock_deleted(tx)) is not None:
        went = await store.purge_runs(tx, uid, limit=limit - gone)
        if went == 0:  # the remaining runs are locked
            break
        gone += went
    return gone


async def run_schedule(tx: Tx, tasks: Tasks, caller: Caller, uid: str, *, now: datetime | None = None) -> Execution:
    """Run it once now, enabled or not; its own times stay unchanged. Beyond ``max_concurrent`` it waits."""
    schedule = await _hold(tx, caller, uid, None)
    await permission.check_type(tx, tasks, caller, schedule.type)
    plan = Plan(**{name: getattr(schedule, name) for name in Plan.__dataclass_fields__})
    at = await store.clock(tx, now)
    run = await fire_by_hand(tx, tasks.submitter, plan, by=caller.user_id, who=caller.who, now=at)
    execution = await runs_store.find_execution(tx, run.execution_uid)
    if execution is None:
        raise ExecutionNotFound
    path = f"{schedule.uid}/{execution.execution_uid}"
    resource = Resource(ResourceType.EXECUTION, execution.execution_uid, {"name": execution.task_name}, path)
    await audit.record(tx, caller.who, Action.CREATED, resource, new=execution)
    return execution


# -- reading


async def get_schedule(tx: Tx, caller: Caller, uid: str) -> Schedule:
    schedule = await _reach(tx, caller, uid)
    if schedule.user_id != caller.user_id:
        await audit.record(tx, caller.who, Action.READ, _resource(schedule))
    return schedule


async def list_schedules(
    tx: Tx, caller: Caller, wanted: ScheduleFilter, *, older_than: Mark | None = None, limit: int
) -> Sequence[Schedule]:
    """Schedules, newest first. Only administrators list other users' schedules."""
    await check_owner(tx, caller, wanted.user_id, ResourceType.SCHEDULED_TASK)
    return await store.list_schedules(tx, wanted, older_than=older_than, limit=limit)


async def check_owner(tx: Tx, caller: Caller, user_id: str | None, kind: ResourceType) -> None:
    """Let only administrators list other users' rows, and audit it."""
    if user_id == caller.user_id:
        return
    if not caller.is_admin:
        raise AdminOnly("Only an administrator may list other people's schedules and runs.")
    await audit.record(tx, caller.who, Action.READ, Resource(kind, "*"), data={"user_id": user_id or EVERY_USER})


async def upcoming(tx: Tx, caller: Caller, uid: str, *, count: int, now: datetime | None = None) -> Sequence[datetime]:
    """The next due times of a schedule; none while it is disabled."""
    schedule = await get_schedule(tx, caller, uid)
    if not schedule.enabled:
        return []
    rhythm = Rhythm(schedule.cron_expr, schedule.interval, schedule.timezone)
    due = schedule.next_run
    if schedule.is_recurring:
        at = await store.clock(tx, now)
        due = due if due is not None and due > at else rhythm.following(due, at)
    return list(islice(rhythm.times(due), count))


async def preview(tx: Tx, rhythm: Rhythm, *, count: int, after: datetime | None = None) -> Sequence[datetime]:
    """The next due times of an unsaved rhythm; the same errors as when it is saved."""
    rules.check_rhythm(ScheduleSpec("preview", "preview", rhythm.cron, rhythm.interval, timezone=rhythm.timezone))
    at = await store.clock(tx, after)
    if not 1970 <= at.year <= 9000:
        raise ScheduleInvalid("after must lie between the years 1970 and 9000.", fields=["after"])
    return list(islice(rhythm.times(rhythm.first(at)), count))


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a schedule. The counts equal its ended runs."""

    schedule: Schedule
    figures: Figures


async def get_statistics(tx: Tx, caller: Caller, uid: str) -> Statistics:
    schedule = await get_schedule(tx, caller, uid)
    return Statistics(schedule, await runs_store.read_figures(tx, uid))


async def _get(tx: Tx, uid: str) -> Schedule:
    schedule = await store.find_schedule(tx, uid)
    if schedule is None:
        raise ScheduleNotFound
    return schedule


async def _reach(tx: Tx, caller: Caller, uid: str) -> Schedule:
    schedule = await _get(tx, uid)
    if schedule.user_id != caller.user_id and not caller.is_admin:
        raise ScheduleNotFound
    return schedule


async def _hold(tx: Tx, caller: Caller, uid: str, expected: int | None) -> Schedule:
    """The schedule, locked until this transaction ends."""
    await _reach(tx, caller, uid)  # before the lock: unauthorized callers must not block a schedule
    schedule = await store.lock_schedule(tx, uid)
    if schedule is None:
        raise ScheduleNotFound
    check_version(schedule.version, expected)
    return schedule


def _resource(schedule: Schedule) -> Resource:
    return Resource(ResourceType.SCHEDULED_TASK, schedule.uid, {"name": schedule.name, "type": schedule.type})
