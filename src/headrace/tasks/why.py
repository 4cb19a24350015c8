"""Why is this not running? Everything that stands between a task and its start, for people and for programs."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from headrace.access import Caller
from headrace.database import Tx
from headrace.tasks.model import Task, TaskStatus
from headrace.tasks.service import get_task
from headrace.tasks.store import obstacles as store
from headrace.tasks.store import workers as workers_store
from headrace.tasks.store.obstacles import LimitScope, QueuePosition, Waiting
from headrace.tasks.store.workers import SeenWorker

_MAX_WORKERS = 1000
_NAMES = 20
_ORDINARY_S = 0.5  # a transaction that has locked units for less is ordinary work


class Code(StrEnum):
    """The kind of reason, for programs."""

    OVER = "over"
    RUNNING = "running"
    STOPPING = "stopping"
    UNITS_LOCKED = "units_locked"
    NOT_QUEUED = "not_queued"
    SCHEDULED = "scheduled"
    BACKING_OFF = "backing_off"
    QUEUE_PAUSED = "queue_paused"
    NO_WORKER = "no_worker"
    NO_WORKER_FOR_TYPE = "no_worker_for_type"
    NO_WORKER_FOR_QUEUE = "no_worker_for_queue"
    NO_WORKER_WITH_LABELS = "no_worker_with_labels"
    LIMIT_REACHED = "limit_reached"
    WORKERS_BUSY = "workers_busy"
    BEHIND_OTHERS = "behind_others"
    ANY_MOMENT = "any_moment"
    PAST_DUE = "past_due"  # of a schedule: its next run lies in the past


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that is so: a sentence for people, a code and facts for programs."""

    code: Code
    text: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A task's status, and the reasons why it is not running, the most important first."""

    task: Task
    reasons: Sequence[Reason]


async def explain(tx: Tx, caller: Caller, task_id: str) -> Explanation:
    """Why this task is not running. Obstacles to its start come first, then the tasks ahead of it."""
    task = await get_task(tx, caller, task_id)
    standing = await store.find_position(tx, task.id)
    if standing is None:
        locked = [] if task.status.is_over else await _units_locked(tx, caller, task)
        return Explanation(task, [*locked, _not_waiting(task)])
    reasons: list[Reason] = []
    if not standing.due:
        reasons.append(_not_due(task, standing.run_at))
    if standing.paused_at is not None:
        reasons.append(
            Reason(
                Code.QUEUE_PAUSED,
                f"The queue {standing.queue} has been paused since {_time(standing.paused_at)}.",
                {"queue": standing.queue, "since": standing.paused_at},
            )
        )
    workers = await _at_work(tx)
    fit = [each for each in workers if _fits(each, standing.task_type, standing.queue, standing.labels)]
    if not fit:
        reasons.append(await _no_worker(tx, standing.task_type, standing.queue, standing.labels, workers))
    reasons += await _limits(tx, standing)
    if not reasons:
        reasons = await _its_turn(tx, standing, fit)
    return Explanation(task, reasons)


async def explain_no_worker(tx: Tx, task_type: str, queue: str, labels: Mapping[str, str]) -> Reason | None:
    """Why no worker that is alive would take such a task; None if one would."""
    workers = await _at_work(tx)
    if any(_fits(each, task_type, queue, labels) for each in workers):
        return None
    return await _no_worker(tx, task_type, queue, labels, workers)


async def stranded(tx: Tx, *, for_longer_than: timedelta) -> list[tuple[Waiting, Reason]]:
    """Kinds of tasks that wait and that no worker that is alive would take, with why."""
    workers = await _at_work(tx)
    return [
        (each, await _no_worker(tx, each.task_type, each.queue, each.labels, workers))
        for each in await store.list_waiting(tx, for_longer_than=for_longer_than)
        if not any(_fits(worker, each.task_type, each.queue, each.labels) for worker in workers)
    ]


async def _at_work(tx: Tx) -> Sequence[SeenWorker]:
    return [each for each in await workers_store.list_workers(tx, limit=_MAX_WORKERS) if each.takes_tasks]


def _not_waiting(task: Task) -> Reason:
    if task.status.is_over:
        return Reason(
            Code.OVER,
            f"It is over: {task.status} since {_time(task.finished_at)}.",
            {"status": task.status, "finished_at": task.finished_at, "error_code": task.error_code},
        )
    if task.status is TaskStatus.UPLOADED:
        return Reason(Code.NOT_QUEUED, "It has not been sent into a queue yet.")
    facts = {"worker_id": task.worker_id, "since": task.started_at, "attempt": task.attempt}
    if task.cancel_requested_at is not None:
        return Reason(
            Code.STOPPING,
            f"It runs on {task.worker_id}, and was asked to stop at {_time(task.cancel_requested_at)}.",
            {**facts, "cancel_requested_at": task.cancel_requested_at},
        )
    return Reason(Code.RUNNING, f"It is running: on {task.worker_id} since {_time(task.started_at)}.", facts)


async def _units_locked(tx: Tx, caller: Caller, task: Task) -> list[Reason]:
    """Whose open transaction keeps the end of a task from being written. Only administrators learn who that session
    is."""
    sessions = await store.find_unit_lockers(tx, task.id)
    if any(each["age"] is None for each in sessions):  # hidden from this role: is it more than ordinary work?
        await asyncio.sleep(_ORDINARY_S)
        still = {each["pid"] for each in await store.find_unit_lockers(tx, task.id)}
        sessions = [each for each in sessions if each["pid"] in still]
    reasons = []
    for each in sessions:
        if each["age"] is not None and each["age"] < _ORDINARY_S:
            continue
        age = "" if each["age"] is None else f", open for {each['age']:.0f} s,"
        who = f"{each['application'] or each['user']}, pid {each['pid']}" if caller.is_admin else f"pid {each['pid']}"
        facts = each if caller.is_admin else {"pid": each["pid"], "age": each["age"]}
        text = (
            f"Another session's transaction ({who}){age} has locked the units that are held for it: if it fails or is "
            "canceled, its end is written when that transaction has ended."
        )
        reasons.append(Reason(Code.UNITS_LOCKED, text, facts))
    return reasons


def _not_due(task: Task, run_at: datetime) -> Reason:
    if task.retries == 0:
        return Reason(Code.SCHEDULED, f"It is not to run before {_time(run_at)}.", {"run_at": run_at})
    return Reason(
        Code.BACKING_OFF,
        f"Attempt {task.attempt} failed; that was failure {task.retries} of {task.max_attempts}. "
        f"The next attempt comes at {_time(run_at)}.",
        {
            "run_at": run_at,
            "failures": task.retries,
            "max_attempts": task.max_attempts,
            "error_code": task.error_code,
        },
    )


def _fits(worker: SeenWorker, task_type: str, queue: str, labels: Mapping[str, str]) -> bool:
    return task_type in worker.types and worker.takes_queue(queue) and worker.has_labels(labels)


async def _no_worker(
    tx: Tx, task_type: str, queue: str, labels: Mapping[str, str], workers: Sequence[SeenWorker]
) -> Reason:
    """Why no worker takes it: the first thing that none of them has."""
    if not workers:
        seen = await store.last_seen(tx, task_type)
        return Reason(Code.NO_WORKER, "No worker is alive.", {"type": task_type, "last_seen_at": seen})
    of_type = [each for each in workers if task_type in each.types]
    if not of_type:
        seen = await store.last_seen(tx, task_type)
        types = _some(name for each in workers for name in each.types)
        when = "never been seen" if seen is None else f"not been seen since {_time(seen)}"
        declared = await store.is_declared(tx, task_type)
        spelt = "" if declared else "No program has ever declared it: is it spelt right? "
        return Reason(
            Code.NO_WORKER_FOR_TYPE,
            f"No worker that is alive knows the type {task_type}; one that does has {when}. {spelt}"
            f"Known are: {', '.join(types) or 'none'}.",
            {"type": task_type, "last_seen_at": seen, "known_types": types, "declared": declared},
        )
    of_queue = [each for each in of_type if each.takes_queue(queue)]
    if not of_queue:
        queues = _some(name for each in of_type for name in each.queues or ())
        return Reason(
            Code.NO_WORKER_FOR_QUEUE,
            f"No worker for {task_type} takes from the queue {queue}, only from {', '.join(queues)}.",
            {"queue": queue, "taken_queues": queues},
        )
    wanted = ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))
    return Reason(
        Code.NO_WORKER_WITH_LABELS,
        f"No worker for {task_type} and the queue {queue} has the labels {wanted}.",
        {"labels": dict(labels)},
    )


async def _limits(tx: Tx, standing: QueuePosition) -> list[Reason]:
    limits = (
        (LimitScope.QUEUE, standing.queue, standing.queue, standing.queue_limit),
        (LimitScope.TYPE, standing.task_type, standing.task_type, standing.type_limit),
        (LimitScope.KEY, f"{standing.task_type} {standing.limit_key}", standing.limit_key, standing.key_limit),
        (LimitScope.PLAN, standing.user_id, standing.user_id, standing.plan_limit),
    )
    reached = []
    for scope, counted_as, name, most in limits:
        if most is None:
            continue
        slots = await store.find_holders(tx, scope, counted_as, user_id=standing.user_id)
        if slots.taken >= most:
            facts = {
                "scope": scope,
                "name": name,
                "limit": most,
                "running": slots.taken,
                "own_tasks": list(slots.own),
                "tasks_of_others": slots.others,
            }
            whose = "this user" if scope is LimitScope.PLAN else f"the {scope} {name}"
            by = " by their plan" if scope is LimitScope.PLAN else ""
            text = f"{slots.taken} tasks of {whose} are running, of {most} that may run at once{by}."
            reached.append(Reason(Code.LIMIT_REACHED, text, facts))
    return reached


async def _its_turn(tx: Tx, standing: QueuePosition, fit: Sequence[SeenWorker]) -> list[Reason]:
    """Nothing blocks its start: is it the workers, or the tasks ahead of it?"""
    reasons = []
    taken = [each.slots_for(standing.task_type) for each in fit]
    slots, running = sum(size for size, _ in taken), sum(busy for _, busy in taken)
    if running >= slots:
        text = f"The workers for it are busy: they run {running} such tasks, of {slots} that they can run at once."
        reasons.append(Reason(Code.WORKERS_BUSY, text, {"workers": len(fit), "running": running, "slots": slots}))
    ahead = await store.count_ahead(tx, standing, types=sorted({name for each in fit for name in each.types}))
    if ahead.higher or ahead.earlier:
        least = "" if ahead.exact else "at least "
        text = f"Before it come {least}{ahead.higher} of a higher priority and {ahead.earlier} earlier ones like it."
        facts = {"higher_priority": ahead.higher, "earlier": ahead.earlier, "exact": ahead.exact}
        reasons.append(Reason(Code.BEHIND_OTHERS, text, facts))
    text = f"Nothing keeps it from starting, any moment now; workers that can take it: {len(fit)}."
    return reasons or [Reason(Code.ANY_MOMENT, text, {"workers": len(fit)})]


def _some(names: Iterable[str]) -> list[str]:
    return sorted(set(names))[:_NAMES]


def _time(at: datetime | None) -> str:
    return "an unknown time" if at is None else at.isoformat(timespec="seconds")
