"""Requesting an action on many rows, and reading its progress."""

from collections.abc import Mapping
from typing import Any

from headrace import audit
from headrace.access import AdminOnly, Caller
from headrace.admin.bulk import store
from headrace.admin.bulk.errors import BulkNotFound, CountGrew, NothingToDo
from headrace.admin.bulk.model import MOST_COUNTED, TYPE, Bulk, BulkResource, ScheduleAction, TaskAction
from headrace.admin.bulk.schemas import ScheduleFilterIn, TaskFilterIn
from headrace.admin.bulk.selection import count_schedules, count_tasks
from headrace.audit import Action, Resource, ResourceType
from headrace.database import Tx
from headrace.sql import Mark
from headrace.tasks.model import TaskSpec
from headrace.tasks.service import Tasks
from headrace.tasks.store.counts import Counted

# What a list may grow by while a person reads the question: beyond that it is another question.
_GROWN_BY, _GROWN_AT_LEAST = 0.1, 10

_RESOURCES = {BulkResource.TASKS: ResourceType.TASK, BulkResource.SCHEDULES: ResourceType.SCHEDULED_TASK}
_ACTIONS = {
    TaskAction.DELETE: Action.DELETED,
    ScheduleAction.ENABLE: Action.ENABLED,
    ScheduleAction.DISABLE: Action.DISABLED,
}


async def count_matching_tasks(tx: Tx, caller: Caller, action: TaskAction | None, wanted: TaskFilterIn) -> Counted:
    """How many tasks there are, or how many the action would be done to: up to a bound."""
    _check_owner(caller, wanted.owner)
    return await count_tasks(tx, wanted, wanted.wanted(caller.user_id, action), most=MOST_COUNTED)


async def ask_for_tasks(
    tx: Tx, tasks: Tasks, caller: Caller, action: TaskAction, wanted: TaskFilterIn, *, expected: int
) -> Bulk:
    """Apply an action to every task that matches at that time. ``CountGrew`` if those are many more."""
    _check_owner(caller, wanted.owner)
    if not wanted.wanted(caller.user_id, action).statuses:
        raise NothingToDo
    # Tasks that are submitted after this moment are excluded, and so is the task of this action.
    now = await tx.fetchval("SELECT now()")
    before = now if wanted.created_before is None else min(now, wanted.created_before)
    fixed = wanted.model_copy(update={"created_before": before})
    counted = await count_tasks(tx, fixed, fixed.wanted(caller.user_id, action), most=MOST_COUNTED + 1)
    matched = counted.count
    _check_count(matched, expected)
    return await _begin(tx, tasks, caller, BulkResource.TASKS, action, fixed, matched=matched, expected=expected)


async def ask_for_schedules(
    tx: Tx, tasks: Tasks, caller: Caller, action: ScheduleAction, wanted: ScheduleFilterIn, *, expected: int
) -> Bulk:
    """The same for schedules."""
    _check_owner(caller, wanted.owner)
    matched = await count_schedules(tx, wanted, wanted.wanted(caller.user_id, action), most=MOST_COUNTED + 1)
    _check_count(matched, expected)
    return await _begin(tx, tasks, caller, BulkResource.SCHEDULES, action, wanted, matched=matched, expected=expected)


async def get_bulk(tx: Tx, caller: Caller, task_id: str) -> Bulk:
    """One of the caller's own; of anybody's for administrators."""
    bulk = await store.find_bulk(tx, task_id)
    if bulk is None or (bulk.user_id != caller.user_id and not caller.is_admin):
        raise BulkNotFound
    return bulk


async def list_bulks(tx: Tx, caller: Caller, *, older_than: Mark | None = None, limit: int) -> list[Bulk]:
    """The caller's own, newest first; administrators see everybody's."""
    owner = None if caller.is_admin else caller.user_id
    return await store.list_bulks(tx, user_id=owner, older_than=older_than, limit=limit)


def _check_owner(caller: Caller, owner: str | None) -> None:
    if owner not in (None, caller.user_id) and not caller.is_admin:
        raise AdminOnly("Only an administrator may act on other users' rows.")


def _check_count(matched: int, expected: int) -> None:
    if matched > expected + max(_GROWN_AT_LEAST, expected * _GROWN_BY) and expected < MOST_COUNTED:
        shown = f"{MOST_COUNTED:,} and more" if matched > MOST_COUNTED else f"{matched:,}"
        raise CountGrew(
            f"{shown} match by now, and you were shown {expected:,}: check the list, and ask again if that is meant.",
            count=min(matched, MOST_COUNTED),
            expected=expected,
        )


async def _begin(
    tx: Tx,
    tasks: Tasks,
    caller: Caller,
    resource: BulkResource,
    action: TaskAction | ScheduleAction,
    wanted: TaskFilterIn | ScheduleFilterIn,
    *,
    matched: int,
    expected: int,
) -> Bulk:
    shown: dict[str, Any] = wanted.model_dump(mode="json", exclude_none=True)
    spec = TaskSpec(
        TYPE,
        title=f"{action} {resource}: {min(matched, MOST_COUNTED):,} that match",
        trace_id=caller.who.trace_id,
        request_id=caller.who.request_id,
        own=True,
    )
    task_id = await tasks.submitter.submit(tx, spec, user_id=caller.user_id)
    bulk = await store.insert_bulk(
        tx,
        task_id,
        user_id=caller.user_id,
        as_admin=caller.is_admin,
        scopes=None if caller.scopes is None else sorted(caller.scopes),
        resource=resource,
        action=action,
        wanted=shown,
        expected=expected,
        matched=matched,
        request_id=caller.who.request_id,
    )
    data = {
        "verb": f"bulk {action}",
        "bulk": task_id,
        "count": str(matched),
        "expected": str(expected),
        **_audited_filter(shown),
    }
    target = Resource(_RESOURCES[resource], "*")
    await audit.record(tx, caller.who, _ACTIONS.get(action, Action.UPDATED), target, data=data)
    return bulk


def _audited_filter(wanted: Mapping[str, Any]) -> dict[str, str]:
    """The filter as text, for the audit trail."""
    return {
        name: f"{len(value)} named" if name == "ids" else ",".join(value) if isinstance(value, list) else str(value)
        for name, value in wanted.items()
    }
