"""What users do with tasks: submit, read, cancel, retry, delete. Users reach only their own tasks, administrators all.

Another user's task is answered like a missing one. Every change is audited, and so is an administrator's access to
tasks of others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from asyncpg import ForeignKeyViolationError

from headrace import audit
from headrace.access import AdminOnly, Caller, ScopeMissing, check_version
from headrace.audit import Action, Resource, ResourceType
from headrace.database import Tx
from headrace.errors import Invalid
from headrace.sql import Mark
from headrace.tasks.caps import Caps, check_caps, lane_key
from headrace.tasks.catalog import Catalog, KnownType
from headrace.tasks.errors import TaskNotFound, TaskNotOver, TaskOver, TaskSpecInvalid, TypeDenied, UnknownTaskType
from headrace.tasks.followers import Followers
from headrace.tasks.model import DEFAULT_QUEUE, RUNNING, Change, Task, TaskSpec, TaskStatus, Transition
from headrace.tasks.open_tasks import OpenTasks
from headrace.tasks.rights import Rights
from headrace.tasks.store import moves
from headrace.tasks.store import tasks as store
from headrace.tasks.store.moves import QueueRow
from headrace.tasks.store.tasks import Filter, Found, LogLine, StepLine
from headrace.tasks.submit import Submitter
from headrace.tasks.tracebacks import for_users
from headrace.tasks.units import units

EVERYBODY = "*"
_WAITED = "Canceled while it waited."


@dataclass(frozen=True, slots=True)
class Tasks:
    """What the verbs work with; the wiring makes it once."""

    submitter: Submitter
    catalog: Catalog
    followers: Followers
    caps: Caps = field(default_factory=Caps)
    open_tasks: OpenTasks = field(default_factory=OpenTasks)

    @classmethod
    def of(cls, submitter: Submitter) -> "Tasks":
        return cls(submitter, submitter.catalog, submitter.followers)


# -- submitting


async def submit_task(
    tx: Tx,
    tasks: Tasks,
    caller: Caller,
    spec: TaskSpec,
    *,
    user_id: str | None = None,
    data: Mapping[str, str] | None = None,
) -> Task:
    """Submit one task as the caller's own, or as that of ``user_id``, which is for administrators alone.

    With an idempotency key that was used before, it is the task of then. ``TypeDenied``, ``ScopeMissing`` or an error
    that names a cap if the caller may not. ``data`` is what else the trail gets to know.
    """
    if user_id not in (None, caller.user_id) and not caller.is_admin:
        raise AdminOnly("Only an administrator may submit tasks for others.")
    own_spec = _from(caller, spec)
    await _check_caps(tx, tasks, caller, [spec], [own_spec])
    try:
        task_id, stored = await tasks.submitter.submit_once(
            tx, own_spec, user_id=user_id or caller.user_id, rights=Rights.of(caller)
        )
    except ForeignKeyViolationError as exc:
        if exc.constraint_name != "fk_tasks_users_user_id":
            raise
        raise TaskSpecInvalid(f"There is no user {user_id}.", fields=["user_id"]) from exc
    task = stored or await _get(tx, task_id)
    if stored is not None:
        await audit.record(tx, caller.who, Action.CREATED, _resource(task), new=task, data=data or {})
    return seen_by(caller, task)  # the task of then may have failed


async def submit_tasks(tx: Tx, tasks: Tasks, caller: Caller, specs: Sequence[TaskSpec]) -> list[str]:
    """Submit them all or none, in this order; gives their ids. A refusal says in ``index`` which one is to blame.

    The trail gets one event with all the ids: a thousand would say no more, and cost more than the tasks do.
    """
    own_specs = [_from(caller, spec) for spec in specs]
    try:
        await _check_caps(tx, tasks, caller, specs, own_specs)
        task_ids = await tasks.submitter.submit_many(tx, own_specs, user_id=caller.user_id, rights=Rights.of(caller))
    except (Invalid, TypeDenied, ScopeMissing) as refused:
        index = await _first_refused(tx, tasks, caller, specs)
        raise type(refused)(f"Task {index}: {refused.message}", **{**refused.details, "index": index}) from None
    if task_ids:
        await audit.record(
            tx,
            caller.who,
            Action.CREATED,
            Resource(ResourceType.TASK, EVERYBODY),
            new={"id": task_ids, "user_id": caller.user_id},
            data={"count": str(len(task_ids))},
        )
    return task_ids


async def _check_caps(
    tx: Tx, tasks: Tasks, caller: Caller, specs: Sequence[TaskSpec], own_specs: Sequence[TaskSpec]
) -> None:
    """Refuse what the caller may not; ``own_specs`` are the same as they will be stored (``_from``)."""
    await check_caps(tx, tasks.catalog, tasks.caps, caller, specs)
    await tasks.open_tasks.check(tx, caller, tasks.caps.open_tasks, len(specs))
    if not caller.is_admin:
        keys = [lane_key(caller, await tasks.catalog.get(tx, spec.type), spec) for spec in own_specs]
        await tasks.open_tasks.check_lanes(tx, caller, tasks.caps.lanes, {key for key in keys if key is not None})


async def _first_refused(tx: Tx, tasks: Tasks, caller: Caller, specs: Sequence[TaskSpec]) -> int:
    """Which of these is refused first, by halving: of a bad half nothing is written, a good one is undone."""
    good, bad = 0, len(specs)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            async with tx.savepoint():
                await check_caps(tx, tasks.catalog, tasks.caps, caller, specs[good:middle])
                own_specs = [_from(caller, spec) for spec in specs[good:middle]]
                await tasks.submitter.submit_many(tx, own_specs, user_id=caller.user_id, rights=Rights.of(caller))
                raise _Undo
        except _Undo:
            good = middle
        except (Invalid, TypeDenied, ScopeMissing):
            bad = middle
    return good


class _Undo(Exception):
    pass


def _from(caller: Caller, spec: TaskSpec) -> TaskSpec:
    """The spec with the request's trace and id; a limit key counts among the caller's own tasks.

    Otherwise any user could fill the slots of another user's key. Administrators' keys are shared by all.
    """
    key = spec.limit_key
    return replace(
        spec,
        trace_id=caller.who.trace_id if spec.trace_id is None else spec.trace_id,
        request_id=caller.who.request_id,
        limit_key=key if key is None or caller.is_admin else f"{caller.user_id}/{key}",
    )


# -- reading


async def get_task(tx: Tx, caller: Caller, task_id: str) -> Task:
    """One task, with its payload and its result."""
    task = await _reach(tx, caller, task_id)
    if task.user_id != caller.user_id:
        await audit.record_read(tx, caller.who, _resource(task))
    return seen_by(caller, task)


def seen_by(caller: Caller, task: Task) -> Task:
    """Of a stack, users see their own code; administrators see all of it."""
    if caller.is_admin or task.error_message is None:
        return task
    return replace(task, error_message=for_users(task.error_message))


def line_seen_by(caller: Caller, line: LogLine) -> LogLine:
    return line if caller.is_admin else replace(line, message=for_users(line.message))


async def list_tasks(tx: Tx, caller: Caller, wanted: Filter, *, older_than: Mark | None = None, limit: int) -> Found:
    """Tasks, newest first, without payload and result. Only administrators list another user's, or everyone's."""
    if wanted.user_id != caller.user_id:
        if not caller.is_admin:
            raise AdminOnly("Only an administrator may list other people's tasks.")
        owner = wanted.user_id or EVERYBODY
        await audit.record(tx, caller.who, Action.READ, Resource(ResourceType.TASK, "*"), data={"user_id": owner})
    if wanted.statuses is not None and TaskStatus.RUNNING in wanted.statuses:
        wanted = replace(wanted, statuses=sorted({*wanted.statuses, *RUNNING}))
    listed = await store.list_tasks(tx, wanted, older_than=older_than, limit=limit)
    return replace(listed, items=[seen_by(caller, task) for task in listed.items])


async def list_logs(tx: Tx, caller: Caller, task_id: str, *, after: int = 0, limit: int) -> list[LogLine]:
    """What became of the attempts and what the handlers wrote, in that order."""
    task = await get_task(tx, caller, task_id)
    lines = await store.list_logs(tx, task.id, after=after, limit=limit)
    return [line_seen_by(caller, line) for line in lines]


async def list_steps(
    tx: Tx, caller: Caller, task_id: str, *, failed: bool = False, after: int = 0, limit: int
) -> list[StepLine]:
    """The steps of every attempt, or those that failed, in the order in which they were entered."""
    task = await get_task(tx, caller, task_id)
    return await store.list_steps(tx, task.id, failed=failed, after=after, limit=limit)


# -- changing


async def cancel_task(tx: Tx, tasks: Tasks, caller: Caller, task_id: str, *, expected: int | None = None) -> Task:
    """Cancel a task: a waiting one ends with this commit, a running one is asked to stop and ends soon after.

    Canceling twice changes nothing. ``TaskOver`` if it ended otherwise before; a running one may still do so.
    ``RowsLocked`` if another transaction keeps the owner's units locked for longer than two seconds.
    """
    old, queue_row = await _hold(tx, caller, task_id, expected)
    if old.status is TaskStatus.CANCELED:
        return seen_by(caller, old)
    if old.status.is_over:
        raise TaskOver(f"The task is over already: it {_ENDED[old.status]}.", status=old.status)
    if not await _cancel(tx, tasks, old, queue_row, request_id=caller.who.request_id):
        return seen_by(caller, old)
    return await _changed(tx, caller, old, "cancel")


async def _cancel(
    tx: Tx,
    tasks: Tasks,
    task: Task,
    queue_row: QueueRow | None,
    *,
    request_id: str | None = None,
    message: str = _WAITED,
    patient: bool = True,
) -> bool:
    """End it or ask its worker to; False if that was asked before. The caller has locked it, and it is not over."""
    if queue_row is None or queue_row.worker is None:
        await moves.cancel_waiting(tx, task.id, queue_row, message=message, patient=patient)
        await _follow(tx, tasks, task, Change.CANCELED, request_id)
        return True
    if task.cancel_requested_at is None:
        await moves.ask_to_cancel(tx, task.id, queue_row)
        return True
    return False


async def stop_task(tx: Tx, tasks: Tasks, task_id: str, *, message: str = _WAITED, patient: bool = True) -> bool:
    """Cancel a task together with its cause, the owner's account or a run of a schedule; False if there is
    nothing to do. The audit trail records the cause, and not the task's title. Without ``patient`` it
    raises ``RowsLocked`` at once if another transaction has locked the owner's units."""
    queue_row = await moves.lock_task(tx, task_id)
    task = await store.find_task(tx, task_id)
    if task is None or task.status.is_over:
        return False
    return await _cancel(tx, tasks, task, queue_row, message=message, patient=patient)


async def stop_waiting(tx: Tx, tasks: Tasks, task_ids: Sequence[str], *, message: str) -> int:
    """Cancel those of these that no worker has claimed; gives how many. It does not wait: a locked task is being
    claimed, and runs."""
    waiting = await moves.lock_unclaimed(tx, task_ids)
    return sum([await stop_task(tx, tasks, task_id, message=message) for task_id in waiting])


async def retry_task(
    tx: Tx,
    tasks: Tasks,
    caller: Caller,
    task_id: str,
    *,
    expected: int | None = None,
    over_by: datetime | None = None,
) -> Task:
    """Run a task again that failed or was canceled: it waits, with as many attempts as at first.

    ``TaskNotOver`` while it waits or runs, and if it was not over ``over_by`` a time; ``TaskOver`` if it succeeded,
    which is final. Its units of today's price are held; ``QuotaExhausted`` if they are not left. Only a user who may
    submit its type may retry it, within the cap of open tasks.
    """
    old, _ = await _hold(tx, caller, task_id, expected)
    if not old.status.is_over:
        raise TaskNotOver("The task is not over yet: there is nothing to try again.", status=old.status)
    if over_by is not None and old.finished_at is not None and old.finished_at > over_by:
        raise TaskNotOver("The task has since run and ended again.", status=old.status)
    if old.status is TaskStatus.SUCCEEDED:
        raise TaskOver("The task succeeded: submit another one to do it again.", status=old.status)
    known = await known_or_plain(tx, tasks, old.task_type)
    Rights.of(caller).check(known.name, known.submit)
    await tasks.open_tasks.check(tx, caller, tasks.caps.open_tasks, 1)
    labels = tuple(sorted((old.labels or {}).items()))
    lane = old.task_type, old.queue, old.limit_key or "", labels, old.priority
    await tasks.open_tasks.check_lanes(tx, caller, tasks.caps.lanes, {lane})
    cost = units(old.task_type, known.units, old.payload)
    await moves.requeue(tx, old.id, message="Tried again by hand.", units=cost)
    await _follow(tx, tasks, old, Change.REVIVED, caller.who.request_id, cost)
    return await _changed(tx, caller, old, "retry")


async def delete_task(tx: Tx, caller: Caller, task_id: str, *, expected: int | None = None) -> None:
    """Remove a task that is over; ``TaskNotOver`` before that. Payload, result and error are gone with this commit; the
    row, logs and steps are out of sight, and gone with the next purge."""
    old, _ = await _hold(tx, caller, task_id, expected)
    if not old.status.is_over:
        raise TaskNotOver(status=old.status)
    await moves.soft_delete(tx, old.id, user_id=old.user_id)
    await audit.record(tx, caller.who, Action.DELETED, _resource(old), old=old)


_ENDED: Mapping[TaskStatus, str] = {TaskStatus.SUCCEEDED: "succeeded", TaskStatus.FAILED: "failed"}


async def _get(tx: Tx, task_id: str) -> Task:
    task = await store.find_task(tx, task_id)
    if task is None:
        raise TaskNotFound
    return task


async def _reach(tx: Tx, caller: Caller, task_id: str) -> Task:
    task = await _get(tx, task_id)
    if task.user_id != caller.user_id and not caller.is_admin:
        raise TaskNotFound
    return task


async def _hold(tx: Tx, caller: Caller, task_id: str, expected: int | None) -> tuple[Task, QueueRow | None]:
    """The task as it is and stays until this transaction ends, and its place in the queue."""
    # Before the locks: a caller must not block a task that they may not see.
    if await store.find_owner(tx, task_id) != caller.user_id and not caller.is_admin:
        raise TaskNotFound
    queue_row = await moves.lock_task(tx, task_id)
    task = await _get(tx, task_id)
    check_version(task.version, expected)
    return task, queue_row


async def _changed(tx: Tx, caller: Caller, old: Task, verb: str) -> Task:
    new = await _get(tx, old.id)
    await audit.record(tx, caller.who, Action.UPDATED, _resource(new), old=old, new=new, data={"verb": verb})
    return seen_by(caller, new)


async def _follow(
    tx: Tx, tasks: Tasks, task: Task, change: Change, request_id: str | None, cost: int | None = None
) -> None:
    moved = Transition(
        change,
        task.id,
        task.task_type,
        task.user_id,
        attempt=task.attempt,
        schedule_uid=task.schedule_uid,
        request_id=request_id,
        units=cost,
    )
    await tasks.followers.follow(tx, [(await known_or_plain(tx, tasks, task.task_type), moved)])


async def known_or_plain(tx: Tx, tasks: Tasks, task_type: str) -> KnownType:
    """The type, or an empty one: for a task that was submitted in SQL, or by a program whose worker never ran.
    It can be canceled anyway, with events."""
    try:
        return await tasks.catalog.get(tx, task_type)
    except UnknownTaskType:
        return KnownType(task_type, DEFAULT_QUEUE, 0, 1, None, True, lambda payload: payload)


def _resource(task: Task) -> Resource:
    facts = {"type": task.task_type, "title": task.title}
    return Resource(ResourceType.TASK, task.id, facts, f"{task.queue}/{task.task_type}")
