"""Submitting, canceling, trying again, deleting."""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Response

from headrace.access import AdminOnly, PreconditionFailed
from headrace.database import Tx
from headrace.edge.authorization import OwnTurn
from headrace.edge.errors import InvalidIfMatch, TooManyAtOnce
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.errors import QuotaExhausted
from headrace.tasks import service
from headrace.tasks.errors import (
    LabelsUndeclared,
    OverCap,
    PayloadInvalid,
    PayloadTooLarge,
    QueueUndeclared,
    TaskChanged,
    TaskNotFound,
    TaskNotOver,
    TaskOver,
    TaskSpecInvalid,
    TooManyLanes,
    TooManyOpenTasks,
    TypeDenied,
    UnknownTaskType,
)
from headrace.tasks.model import Task
from headrace.tasks.routes.dependencies import Submits, TaskIdPath, TasksDep, Writer
from headrace.tasks.schemas import BatchIn, BatchOut, SubmitIn, TaskOut

router = Router(prefix="/tasks", tags=["Tasks"])

SubmitOnce = Annotated[Once, Depends(idempotent("tasks.create"))]
SubmitBatchOnce = Annotated[Once, Depends(idempotent("tasks.create_batch"))]
_REFUSED = (
    UnknownTaskType,
    TypeDenied,
    PayloadInvalid,
    PayloadTooLarge,
    TaskSpecInvalid,
    OverCap,
    QueueUndeclared,
    LabelsUndeclared,
    TooManyLanes,
    TooManyOpenTasks,
    QuotaExhausted,
)
_CHANGE = (TaskNotFound, TaskChanged, PreconditionFailed, InvalidIfMatch)


@router.post(
    "",
    status_code=201,
    response_model=TaskOut,
    summary="Submit a task",
    responses=problems(*_REFUSED, AdminOnly, *ONCE),
)
async def submit_task(body: SubmitIn, caller: Submits, db: Db, deps: TasksDep, once: SubmitOnce) -> Response:
    """Submit a task. The payload is checked against the type: faults are named.

    A type says who may submit it (`submit` in the list of task types): administrators, users, or API keys with a scope
    that names it. An API key with `tasks:write` may submit what its user may; one with `tasks:submit:TYPE` that type
    alone. Users are held to caps (priority, attempts, timeout, delay, size, open tasks), and to declared queues.
    """

    async def act(tx: Tx) -> Answer:
        task = await service.submit_task(
            tx, deps, caller, replace(body.spec(), request_key=once.key), user_id=body.user_id
        )
        headers = {"Location": f"/v1/tasks/{task.id}", "ETag": etag(task.version)}
        return Answer(TaskOut.fields_of(task), status=201, headers=headers, task_id=task.id)

    return await once.run(db, act)


@router.post(
    "/batch",
    status_code=201,
    response_model=BatchOut,
    summary="Submit many tasks",
    responses=problems(*_REFUSED, *ONCE),
)
async def submit_tasks(body: BatchIn, caller: Submits, db: Db, deps: TasksDep, once: SubmitBatchOnce) -> Response:
    """Submit up to a thousand tasks: all of them or none. `details.index` says which one was refused."""

    async def act(tx: Tx) -> Answer:
        specs = [task.spec() for task in body.tasks]
        return Answer(BatchOut(ids=await service.submit_tasks(tx, deps, caller, specs)), status=201)

    return await once.run(db, act)


@router.post(
    "/{task_id}/cancel",
    response_model=TaskOut,
    summary="Cancel a task",
    responses=problems(*_CHANGE, TaskOver, TooManyAtOnce),
)
async def cancel_task(
    task_id: TaskIdPath,
    caller: Writer,
    turn: OwnTurn,
    db: Db,
    deps: TasksDep,
    expected: ExpectedVersion,
    response: Response,
) -> TaskOut:
    """Cancel a task. One that waits is over at once. A running one is asked to stop: `cancel_requested_at` is set, and
    it is over when its handler has stopped, or was killed. Canceling again changes nothing."""
    async with turn, db.transaction(defers=True) as tx:
        return _shown(response, await service.cancel_task(tx, deps, caller, task_id, expected=expected))


@router.post(
    "/{task_id}/retry",
    response_model=TaskOut,
    summary="Run a task again",
    responses=problems(
        *_CHANGE, TaskOver, TaskNotOver, TypeDenied, TooManyLanes, TooManyOpenTasks, QuotaExhausted, TooManyAtOnce
    ),
)
async def retry_task(
    task_id: TaskIdPath,
    caller: Writer,
    turn: OwnTurn,
    db: Db,
    deps: TasksDep,
    expected: ExpectedVersion,
    response: Response,
) -> TaskOut:
    """Send a task that failed or was canceled into its queue again. Steps that are done are not done again."""
    async with turn, db.transaction(defers=True) as tx:
        return _shown(response, await service.retry_task(tx, deps, caller, task_id, expected=expected))


@router.delete("/{task_id}", status_code=204, summary="Delete a task", responses=problems(*_CHANGE, TaskNotOver))
async def delete_task(task_id: TaskIdPath, caller: Writer, db: Db, expected: ExpectedVersion) -> None:
    """Remove a task that is over: from now on it is not found. Its payload, result and error message are gone at once;
    its logs, steps and row within the quarter of an hour, where a worker is running."""
    async with db.transaction(defers=True) as tx:
        await service.delete_task(tx, caller, task_id, expected=expected)


def _shown(response: Response, task: Task) -> TaskOut:
    response.headers["ETag"] = etag(task.version)
    return TaskOut.of(task)
