"""Verbs of runs: read, cancel, explain why one does not start."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from headrace import audit
from headrace.access import Caller
from headrace.audit import Action, Resource, ResourceType
from headrace.database import Tx
from headrace.schedules.errors import ExecutionNotFound, ExecutionOver
from headrace.schedules.model import Execution, ExecutionState
from headrace.schedules.service import check_owner
from headrace.schedules.store import executions as store
from headrace.schedules.store import schedules as schedules_store
from headrace.schedules.store.executions import ExecutionFilter, FoundExecutions
from headrace.sql import Mark
from headrace.tasks import service, why
from headrace.tasks.errors import TaskOver
from headrace.tasks.service import Tasks
from headrace.tasks.tracebacks import for_users
from headrace.tasks.why import Code, Reason


async def get_execution(tx: Tx, caller: Caller, execution_uid: str) -> Execution:
    """One run, with its result or its error and stack."""
    execution, owner = await _reach(tx, caller, execution_uid)
    if owner != caller.user_id:
        await audit.record(tx, caller.who, Action.READ, _resource(execution))
    return execution if caller.is_admin else replace(execution, error_stack=for_users(execution.error_stack))


async def list_executions(
    tx: Tx, caller: Caller, wanted: ExecutionFilter, *, older_than: Mark | None = None, limit: int
) -> FoundExecutions:
    """Runs, latest due time first. Only administrators list other users' runs."""
    await check_owner(tx, caller, wanted.user_id, ResourceType.EXECUTION)
    return await store.list_executions(tx, wanted, older_than=older_than, limit=limit)


async def cancel_execution(tx: Tx, ours: Tasks, caller: Caller, execution_uid: str) -> Execution:
    """Cancel a run: a waiting one ends with this commit, a running one receives a stop request and ends soon after.

    Idempotent. ``ExecutionOver`` if it ended otherwise before.
    """
    old, _ = await _reach(tx, caller, execution_uid)
    if old.state is ExecutionState.CANCELLED:
        return old
    if old.state.is_over:
        raise ExecutionOver(f"The run has already ended: {old.state}.", state=old.state)
    if old.task_id is None:
        # The rollback releases the schedule's lock: for a run with a task, the queue row is locked first.
        with suppress(_HasTask):
            async with tx.savepoint():
                await _cancel_held(tx, old)
                return await _changed(tx, caller, old)
    task_id = (await _get(tx, execution_uid)).task_id
    if task_id is None:  # ended or deleted while we waited for its schedule
        raise ExecutionOver
    try:
        await service.cancel_task(tx, ours, caller, task_id)
    except TaskOver as exc:
        raise ExecutionOver from exc
    return await _changed(tx, caller, old)


class _HasTask(Exception):
    """The run no longer waits: it has a task, or has ended."""


async def _cancel_held(tx: Tx, execution: Execution) -> None:
    if await schedules_store.lock_schedule(tx, execution.task_uid) is None:
        raise ExecutionNotFound
    if not await store.cancel_held(tx, [execution.execution_uid]):
        raise _HasTask


@dataclass(frozen=True, slots=True)
class RunExplanation:
    execution: Execution
    reasons: Sequence[Reason]


async def explain_execution(tx: Tx, caller: Caller, execution_uid: str) -> RunExplanation:
    """Why this run is not running. For a run that waits for others of its schedule, names them."""
    execution = await get_execution(tx, caller, execution_uid)
    if execution.state.is_over:
        over = Reason(Code.OVER, f"It has ended: {execution.state}.", {"state": execution.state})
        return RunExplanation(execution, [over])
    if execution.task_id is not None:
        return RunExplanation(execution, (await why.explain(tx, caller, execution.task_id)).reasons)
    schedule = await schedules_store.find_schedule(tx, execution.task_uid)
    if schedule is None:
        raise ExecutionNotFound
    before = await store.list_in_slots(tx, execution.task_uid)
    limit = schedule.max_concurrent
    text = f"It waits for other runs of its schedule to end: at most {limit} run at once."
    facts = {"scope": "schedule", "name": execution.task_name, "limit": limit, "executions": before}
    return RunExplanation(execution, [Reason(Code.LIMIT_REACHED, text, facts)])


async def _get(tx: Tx, execution_uid: str) -> Execution:
    execution = await store.find_execution(tx, execution_uid)
    if execution is None:
        raise ExecutionNotFound
    return execution


async def _reach(tx: Tx, caller: Caller, execution_uid: str) -> tuple[Execution, str]:
    execution = await _get(tx, execution_uid)
    owner = await store.find_owner(tx, execution_uid)
    if owner is None or (owner != caller.user_id and not caller.is_admin):
        raise ExecutionNotFound
    return execution, owner


async def _changed(tx: Tx, caller: Caller, old: Execution) -> Execution:
    new = await _get(tx, old.execution_uid)
    await audit.record(tx, caller.who, Action.UPDATED, _resource(new), old=old, new=new, data={"verb": "cancel"})
    return new


def _resource(execution: Execution) -> Resource:
    path = f"{execution.task_uid}/{execution.execution_uid}"
    return Resource(ResourceType.EXECUTION, execution.execution_uid, {"name": execution.task_name}, path)
