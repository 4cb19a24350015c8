"""Running a bulk action, batch by batch. Completed batches stay: the process that continues after a crash begins at
the last batch, and skips rows that are already done."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headrace import ids
from headrace.access import Caller, Role
from headrace.accounts.store import users
from headrace.admin.bulk import selection, store
from headrace.admin.bulk.model import TYPE, Bulk, BulkResource, Outcome, ScheduleAction, TaskAction
from headrace.admin.bulk.selection import Chosen
from headrace.audit import ANONYMOUS, ActorType, Who
from headrace.database import Database, Tx
from headrace.database_errors import DatabaseBusy, RowsLocked
from headrace.errors import Conflict, HeadraceError, Invalid, NotFound, Unavailable
from headrace.schedules import service as schedules
from headrace.tasks import many
from headrace.tasks import service as tasks
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Fatal, TaskChanged, TaskNotOver, TaskOver
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks

_BATCH = 500
_PATIENCE = 5  # how often a busy row is asked for again
_PAUSE_S = 0.2
# How long a run waits, all in all, for transactions that have locked users' units. Later such rows are refused.
_MAX_WAIT_FOR_UNITS_S = 10.0
# It moved on by itself, or was gone: nothing is wrong with that.
_MOVED_ON = (NotFound, TaskOver, TaskNotOver)


@dataclass(frozen=True, slots=True)
class _Work:
    db: Database
    tasks: Tasks
    caller: Caller
    bulk: Bulk
    wait: "_Wait"

    @property
    def note(self) -> dict[str, str]:
        return {"bulk": self.bulk.task_id}


@dataclass(slots=True)
class _Wait:
    """The rest of the time that a run may wait for locked units."""

    left_s: float = field(default_factory=lambda: _MAX_WAIT_FOR_UNITS_S)


def add_handlers(registry: Registry, db: Database, deps: Callable[[], Tasks], *, queue: str) -> None:
    """The task type that does it."""

    # Who stopped it may let it go on. One of each user's at a time: what else this queue is for must go on, too.
    @registry.task(TYPE, queue=queue, max_attempts=5, submit="users", limit_key="user", max_running_per_key=1)
    async def act_on_many(context: TaskContext, _payload: Any) -> dict[str, Any]:
        """Apply a requested action to every row that its filter matches."""
        return await carry_out(db, deps(), context)


async def carry_out(db: Database, deps: Tasks, context: TaskContext) -> dict[str, Any]:
    """Apply it to all matching rows. After an interruption, a later attempt continues where this one ended."""
    wait = _Wait()
    while True:
        context.check_canceled()
        async with db.transaction() as tx:
            bulk = await store.find_bulk(tx, context.task_id)
            if bulk is None or bulk.user_id != context.user_id:
                raise Fatal("This action was not requested.")
            if bulk.finished_at is not None:
                return _result(bulk)
            work = _Work(db, deps, await _caller_of(tx, bulk), bulk, wait)
            chosen = await _choose(tx, bulk)
        await _act(work, chosen, context)
        async with db.transaction() as tx:
            if not await store.advance(tx, bulk, chosen.position, over=chosen.position is None):
                raise Conflict("Another worker has taken this over.")
            looked_at = (await store.find_bulk(tx, bulk.task_id) or bulk).looked_at
        await context.progress(min(99, 100 * looked_at / max(bulk.matched, 1)))


def _result(bulk: Bulk) -> dict[str, Any]:
    return {"done": bulk.done, "skipped": bulk.skipped, "refused": bulk.refused, "refusals": list(bulk.refusals)}


async def _caller_of(tx: Tx, bulk: Bulk) -> Caller:
    """The requester with today's rights: a suspended user or a former administrator changes nothing further."""
    if bulk.user_id == ids.SYSTEM_USER:  # asked for on the database itself, by an operator whose rights do not end
        return Caller(replace(Who.system(), request_id=bulk.request_id), ids.SYSTEM_USER, Role.ADMIN)
    user = await users.find_user(tx, bulk.user_id)
    if user is None or not user.is_active or (bulk.as_admin and user.role is not Role.ADMIN):
        raise Fatal("The requester no longer has the right to do this.")
    who = user.acting(Who(ANONYMOUS, ActorType.USER, request_id=bulk.request_id))
    scopes = None if bulk.scopes is None else frozenset(bulk.scopes)
    return Caller(who, user.id, user.role if bulk.as_admin else Role.USER, scopes)


async def _choose(tx: Tx, bulk: Bulk) -> Chosen:
    # Loaded with the first bulk action: these models and those below them take 3 MB of every worker.
    from headrace.admin.bulk.schemas import ScheduleFilterIn, TaskFilterIn

    if bulk.resource is BulkResource.TASKS:
        criteria = TaskFilterIn.model_validate(bulk.filter)
        wanted = criteria.wanted(bulk.user_id, TaskAction(bulk.action))
        return await selection.choose_tasks(
            tx, criteria, wanted, asked_at=bulk.created_at, after=bulk.position, limit=_BATCH
        )
    meant = ScheduleFilterIn.model_validate(bulk.filter)
    which = meant.wanted(bulk.user_id, ScheduleAction(bulk.action))
    return await selection.choose_schedules(tx, meant, which, after=bulk.position, limit=_BATCH)


async def _act(work: _Work, chosen: Chosen, context: TaskContext) -> None:
    """All of a batch: together where a statement can do it, the rest one by one, each in a transaction of its own, so
    that none waits for another's lock."""
    left = [each for each in chosen.ids if each != context.task_id]
    locked: Collection[str] = ()
    if chosen.late:
        async with work.db.transaction() as tx:
            await store.add(tx, work.bulk.task_id, Outcome(skipped=chosen.late))
    match work.bulk.action:
        case TaskAction.CANCEL:
            done, locked = await _together(work, [each for each in left if each not in chosen.running])
            left = [each for each in left if each not in done and each not in locked]
        case TaskAction.DELETE:
            async with work.db.transaction() as tx:
                done = frozenset(await many.delete_tasks(tx, work.caller, left, data=work.note))
                await store.add(tx, work.bulk.task_id, Outcome(done=len(done), skipped=len(left) - len(done)))
            return
    locked = [*locked, *await _singly(work, left, context)]
    while locked and work.wait.left_s > 0:
        began = time.monotonic()
        await asyncio.sleep(_PAUSE_S)
        still: Collection[str] = ()
        if work.bulk.action == TaskAction.CANCEL:
            done, still = await _together(work, locked)
            locked = [each for each in locked if each not in done and each not in still]
        locked = [*still, *await _singly(work, locked, context)]
        work.wait.left_s -= time.monotonic() - began
    if locked:
        outcome = Outcome()
        for row_id in locked:
            outcome.refuse(row_id, RowsLocked.code, _UNITS_LOCKED)
        async with work.db.transaction() as tx:
            await store.add(tx, work.bulk.task_id, outcome)


_UNITS_LOCKED = "The open transaction of another database session has locked its owner's units: ask for it again later."


async def _singly(work: _Work, row_ids: Sequence[str], context: TaskContext) -> list[str]:
    """One by one; gives those whose owners' units are locked. Of each such owner only the first is tried."""
    locked: list[str] = []
    owners: Mapping[str, str] = {}
    tried: set[str] = set()
    for row_id in row_ids:
        context.check_canceled()
        if owners.get(row_id) in tried:
            locked.append(row_id)
        elif not await _one(work, row_id):
            locked.append(row_id)
            owners = owners or await _owners(work, row_ids)
            if row_id in owners:
                tried.add(owners[row_id])
    return locked


OWNERS = "SELECT id, user_id FROM headrace.tasks WHERE id = ANY ($1)"


async def _owners(work: _Work, row_ids: Sequence[str]) -> Mapping[str, str]:
    if work.bulk.resource is not BulkResource.TASKS:
        return {}
    return {row["id"]: row["user_id"] for row in await work.db.fetch_alone(OWNERS, list(row_ids))}


async def _together(work: _Work, waiting: Collection[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Cancel those that wait in one transaction; gives those that were, and those whose owners' units are locked."""
    locked: frozenset[str] = frozenset()
    for _ in range(_PATIENCE):
        try:
            async with work.db.transaction() as tx:
                done = await many.cancel_waiting_tasks(tx, work.tasks, work.caller, list(waiting), data=work.note)
                await store.add(tx, work.bulk.task_id, Outcome(done=len(done)))
            return frozenset(done), locked
        except RowsLocked as exc:  # the others do not wait for that transaction
            locked |= exc.task_ids
            waiting = [each for each in waiting if each not in exc.task_ids]
        except (DatabaseBusy, TaskChanged):
            await asyncio.sleep(_PAUSE_S)
    return frozenset(), locked  # one by one, then


async def _one(work: _Work, row_id: str) -> bool:
    """Do it to one row; False if it waits for a transaction that has locked its owner's units."""
    for patience in reversed(range(_PATIENCE)):
        outcome = Outcome()
        try:
            async with work.db.transaction() as tx:
                await _do(tx, work, row_id)
                outcome.done = 1
                await store.add(tx, work.bulk.task_id, outcome)
            return True
        except RowsLocked:
            return False
        except _MOVED_ON:
            outcome = Outcome(skipped=1)
        except (TaskChanged, DatabaseBusy) as exc:
            if patience:
                await asyncio.sleep(_PAUSE_S)
                continue
            outcome = Outcome()
            outcome.refuse(row_id, exc.code, exc.message)
        except Unavailable:
            raise  # the database is gone: another attempt continues here
        except HeadraceError as exc:
            outcome = Outcome()
            outcome.refuse(row_id, exc.code, exc.message)
        async with work.db.transaction() as tx:
            await store.add(tx, work.bulk.task_id, outcome)
        return True
    return True


async def _do(tx: Tx, work: _Work, row_id: str) -> None:
    match work.bulk.action:
        case TaskAction.CANCEL:
            await tasks.cancel_task(tx, work.tasks, work.caller, row_id)
        case TaskAction.RETRY:
            if await store.find_bulk(tx, row_id) is not None:  # a stopped deletion must not continue by itself
                raise Invalid("This acts on many rows itself: try it again by itself, if that is meant.")
            await tasks.retry_task(tx, work.tasks, work.caller, row_id, over_by=work.bulk.created_at)
        case ScheduleAction.ENABLE:
            await schedules.enable_schedule(tx, work.tasks, work.caller, row_id)
        case ScheduleAction.DISABLE:
            await schedules.disable_schedule(tx, work.tasks, work.caller, row_id)
