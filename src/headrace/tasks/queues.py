"""Queues, workers and task types: their state, and administrators' settings of queues."""

from dataclasses import dataclass

from headrace import audit
from headrace.access import Caller, check_version
from headrace.audit import Action, Resource, ResourceType
from headrace.database import Tx
from headrace.tasks.errors import QueueNotFound
from headrace.tasks.model import DEFAULT_QUEUE
from headrace.tasks.store import queues as store
from headrace.tasks.store import workers as workers_store
from headrace.tasks.store.queues import Contents, QueueRules
from headrace.tasks.store.workers import NAMED, SeenType, SeenWorker

# More than any deployment has; a list that was filled on purpose stays readable.
_MAX_LISTED = 1000


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue: its settings and its contents."""

    rules: QueueRules
    contents: Contents


async def list_queues(tx: Tx, *, user_id: str | None = None) -> list[Queue]:
    """Every queue by name, with everybody's tasks counted, or one user's.

    Counting stops at a bound, so that a backlog of millions is as quick to list as none.
    """
    contents = await store.count_contents(tx, user_id=user_id)
    nothing = contents.get(None, Contents())
    return [Queue(rules, contents.get(rules.name, nothing)) for rules in await store.list_rules(tx, limit=_MAX_LISTED)]


async def pause_queue(
    tx: Tx, caller: Caller, name: str, *, expected: int | None = None, create: bool = False
) -> QueueRules:
    """Start nothing more from this queue. Claimed tasks continue; pausing twice changes nothing.

    ``QueueNotFound`` for an unknown one, which may be a typing error, unless ``create`` is set.
    """
    if not create:
        await _require_known(tx, name, otherwise=" `--create` (`?create=true`) pauses it before its first task.")
    old = await _lock(tx, name, expected)
    if old.paused_at is not None:
        return old
    new = await store.pause(tx, name)
    await audit.record(tx, caller.who, Action.DISABLED, _resource(name), old=old, new=new)
    return new


async def resume_queue(tx: Tx, caller: Caller, name: str, *, expected: int | None = None) -> QueueRules:
    """Start tasks from this queue again, at once. Resuming a queue that is not paused changes nothing."""
    await _require_known(tx, name)
    old = await _lock(tx, name, expected)
    if old.paused_at is None:
        return old
    new = await store.resume(tx, name)
    await audit.record(tx, caller.who, Action.ENABLED, _resource(name), old=old, new=new)
    return new


async def limit_queue(
    tx: Tx,
    caller: Caller,
    name: str,
    *,
    max_running: int | None,
    expected: int | None = None,
    create: bool = False,
) -> QueueRules:
    """Limit how many tasks of this queue run at once, over all machines; None for no limit.

    Running tasks count at once, and are not stopped if they exceed it. ``QueueNotFound`` as for a pause.
    """
    if not create:
        await _require_known(tx, name, otherwise=" `?create=true` limits it before its first task.")
    old = await _lock(tx, name, expected)
    if old.max_running == max_running:
        return old
    if max_running is not None:
        await store.count_running_tasks(tx, queue=name)
    new = await store.set_limit(tx, name, max_running)
    await audit.record(tx, caller.who, Action.UPDATED, _resource(name), old=old, new=new)
    return new


async def list_workers(tx: Tx) -> list[SeenWorker]:
    """Workers that have not ended, each with some of the tasks in its hands."""
    return await workers_store.list_workers(tx, limit=_MAX_LISTED, named=NAMED)


async def list_types(tx: Tx) -> list[SeenType]:
    """Every task type that a worker has ever registered, by name."""
    return await workers_store.list_types(tx, limit=_MAX_LISTED)


async def _require_known(tx: Tx, name: str, *, otherwise: str = "") -> None:
    if name != DEFAULT_QUEUE and not await store.is_known(tx, name):
        raise QueueNotFound(f"Nothing knows a queue {name}: `headrace queues list` shows all.{otherwise}")


async def _lock(tx: Tx, name: str, expected: int | None) -> QueueRules:
    rules = await store.lock_rules(tx, name)
    check_version(rules.version, expected)
    return rules


def _resource(name: str) -> Resource:
    return Resource(ResourceType.QUEUE, name, {"name": name})
