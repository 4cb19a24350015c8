"""Queues, workers and task types."""

from typing import Annotated

from fastapi import Path, Query, Response

from headrace.access import PreconditionFailed
from headrace.edge.authorization import Admin
from headrace.edge.errors import InvalidIfMatch
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.paging import Page
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.tasks import queues
from headrace.tasks.errors import QueueNotFound
from headrace.tasks.queue_schemas import LimitIn, QueueOut, QueueRulesOut, TaskTypeOut, WorkerOut
from headrace.tasks.routes.dependencies import Reader
from headrace.tasks.store.queues import QueueRules

router = Router(tags=["Queues"])

Name = Annotated[str, Path(min_length=1, max_length=64, examples=["default"])]
Create = Annotated[bool, Query(description="Also a queue that nothing knows yet.")]
_CHANGE = (PreconditionFailed, InvalidIfMatch)


@router.get("/queues", response_model=Page[QueueOut], summary="List queues")
async def list_queues(caller: Reader, db: Db) -> Page[QueueOut]:
    """Every queue by name, with what you have in it; administrators see what everybody has.

    Counting stops at a bound: then `exact` is false, and there may be more.
    """
    owner = None if caller.is_admin else caller.user_id
    async with db.transaction(readonly=True) as tx:
        return Page(items=[QueueOut.counted(queue) for queue in await queues.list_queues(tx, user_id=owner)])


@router.post(
    "/queues/{name}/pause",
    response_model=QueueRulesOut,
    summary="Pause a queue",
    responses=problems(*_CHANGE, QueueNotFound),
)
async def pause_queue(
    name: Name,
    caller: Admin,
    db: Db,
    expected: ExpectedVersion,
    response: Response,
    create: Create = False,
) -> QueueRulesOut:
    """Start nothing more from this queue. Claimed tasks continue. Pausing twice changes nothing."""
    async with db.transaction() as tx:
        return _shown(response, await queues.pause_queue(tx, caller, name, expected=expected, create=create))


@router.post(
    "/queues/{name}/resume",
    response_model=QueueRulesOut,
    summary="Resume a queue",
    responses=problems(*_CHANGE, QueueNotFound),
)
async def resume_queue(
    name: Name, caller: Admin, db: Db, expected: ExpectedVersion, response: Response
) -> QueueRulesOut:
    """Start tasks from this queue again, at once."""
    async with db.transaction() as tx:
        return _shown(response, await queues.resume_queue(tx, caller, name, expected=expected))


@router.put(
    "/queues/{name}/limit",
    response_model=QueueRulesOut,
    summary="Limit a queue",
    responses=problems(*_CHANGE, QueueNotFound),
)
async def limit_queue(
    name: Name,
    body: LimitIn,
    caller: Admin,
    db: Db,
    expected: ExpectedVersion,
    response: Response,
    create: Create = False,
) -> QueueRulesOut:
    """Limit how many of this queue's tasks run at once, over all machines. Running tasks count, and continue."""
    async with db.transaction() as tx:
        rules = await queues.limit_queue(
            tx, caller, name, max_running=body.max_running, expected=expected, create=create
        )
    return _shown(response, rules)


@router.get("/workers", response_model=Page[WorkerOut], summary="List workers")
async def list_workers(caller: Admin, db: Db) -> Page[WorkerOut]:  # noqa: ARG001 - asked for to be let in
    """Worker processes that have not ended: their last heartbeats, and what they run."""
    async with db.transaction(readonly=True) as tx:
        return Page(items=[WorkerOut.of(worker) for worker in await queues.list_workers(tx)])


@router.get("/task-types", response_model=Page[TaskTypeOut], summary="List task types")
async def list_task_types(caller: Reader, db: Db) -> Page[TaskTypeOut]:  # noqa: ARG001 - asked for to be let in
    """The task types that can be submitted: every type that a worker has registered, with its payload's schema."""
    async with db.transaction(readonly=True) as tx:
        return Page(items=[TaskTypeOut.of(task_type) for task_type in await queues.list_types(tx)])


def _shown(response: Response, rules: QueueRules) -> QueueRulesOut:
    response.headers["ETag"] = etag(rules.version)
    return QueueRulesOut.of(rules)
