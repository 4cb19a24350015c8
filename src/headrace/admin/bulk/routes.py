"""Actions on many rows over HTTP."""

from typing import Annotated

from fastapi import Depends, Query, Request, Response

from headrace.access import AdminOnly
from headrace.admin.bulk import service
from headrace.admin.bulk.errors import BulkNotFound, CountGrew, NothingToDo
from headrace.admin.bulk.model import Bulk, TaskAction
from headrace.admin.bulk.schemas import BulkOut, CountOut, ScheduleBulkIn, TaskBulkIn, TaskFilterIn
from headrace.database import Tx
from headrace.edge.errors import InvalidCursor
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.instants import Instant
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.schedules.routes.dependencies import Writer as ScheduleWriter
from headrace.tasks.errors import UnknownTaskType
from headrace.tasks.model import TaskStatus
from headrace.tasks.routes.dependencies import Reader, TaskIdPath, TasksDep, TasksOrMake, Writer

router = Router(tags=["Bulk"])

TasksOnce = Annotated[Once, Depends(idempotent("tasks.bulk"))]
SchedulesOnce = Annotated[Once, Depends(idempotent("schedules.bulk"))]
_REFUSED = (CountGrew, NothingToDo, AdminOnly, UnknownTaskType)
_Word = Annotated[str | None, Query(max_length=255)]


def create_router(deps: TasksOrMake) -> Router:
    """The routes, with these tasks."""

    async def give(request: Request) -> None:
        request.state.tasks = deps

    parent = Router(prefix="/v1", dependencies=[Depends(give)])
    parent.include(router)
    return parent


@router.get(
    "/tasks/count",
    response_model=CountOut,
    summary="Count tasks",
    responses=problems(AdminOnly),
)
async def count_tasks(
    caller: Reader,
    db: Db,
    action: Annotated[TaskAction | None, Query(description="Tasks to which it cannot be done are not counted.")] = None,
    status: Annotated[list[TaskStatus] | None, Query(max_length=20)] = None,
    type: _Word = None,  # noqa: A002 - the parameter's name
    queue: _Word = None,
    created_after: Annotated[Instant | None, Query()] = None,
    created_before: Annotated[Instant | None, Query()] = None,
    user_id: Annotated[
        str | None, Query(max_length=64, description="Whose, for administrators: a user's id, or `*` for everybody's.")
    ] = None,
    internal: Annotated[bool, Query(description="Tasks of the product itself, too.")] = True,
) -> CountOut:
    """How many tasks a filter matches: what a person is shown before anything is done to them."""
    wanted = TaskFilterIn.model_construct(
        status=status,
        type=type,
        queue=queue,
        created_after=created_after,
        created_before=created_before,
        owner=user_id,
        ids=None,
        internal=internal,
    )
    async with db.transaction(readonly=True) as tx:
        return CountOut.of(await service.count_matching_tasks(tx, caller, action, wanted))


@router.post(
    "/tasks/bulk",
    status_code=201,
    response_model=BulkOut,
    summary="Act on many tasks",
    responses=problems(*_REFUSED, *ONCE),
)
async def act_on_tasks(body: TaskBulkIn, caller: Writer, db: Db, deps: TasksDep, once: TasksOnce) -> Response:
    """Cancel, retry or delete every task that a filter matches, or those that are named.

    A task does it: follow `task_id` as any other, cancel it to stop; completed rows stay completed. Tasks that are
    submitted after the request are not touched. Your own tasks only, administrators everyone's. Each batch is in the
    audit trail with its ids.
    """

    async def act(tx: Tx) -> Answer:
        made = await service.ask_for_tasks(tx, deps, caller, body.action, body.filter, expected=body.expected)
        return _answer(made)

    return await once.run(db, act)


@router.post(
    "/schedules/bulk",
    status_code=201,
    response_model=BulkOut,
    summary="Act on many schedules",
    responses=problems(*_REFUSED, *ONCE),
)
async def act_on_schedules(
    body: ScheduleBulkIn, caller: ScheduleWriter, db: Db, deps: TasksDep, once: SchedulesOnce
) -> Response:
    """Enable or disable every schedule that a filter matches, or those that are named. Done by a task, as for tasks."""

    async def act(tx: Tx) -> Answer:
        made = await service.ask_for_schedules(tx, deps, caller, body.action, body.filter, expected=body.expected)
        return _answer(made)

    return await once.run(db, act)


@router.get(
    "/tasks/bulk", response_model=Page[BulkOut], summary="List actions on many rows", responses=problems(InvalidCursor)
)
async def list_bulk_actions(caller: Reader, db: Db, paging: Paging) -> Page[BulkOut]:
    """Yours, newest first; administrators see everybody's. They are kept for 90 days."""
    listing = paging.of("bulk_actions", reader=caller.user_id, admin=caller.is_admin)
    async with db.transaction(readonly=True) as tx:
        bulks = await service.list_bulks(tx, caller, older_than=listing.after, limit=listing.fetch)
    return listing.page(bulks, mark=lambda bulk: (bulk.created_at, bulk.task_id), item=BulkOut.of)


@router.get(
    "/tasks/bulk/{task_id}",
    response_model=BulkOut,
    summary="See how far an action on many rows is",
    responses=problems(BulkNotFound),
)
async def get_bulk_action(task_id: TaskIdPath, caller: Reader, db: Db) -> BulkOut:
    """The request, its progress, and refused rows."""
    async with db.transaction(readonly=True) as tx:
        return BulkOut.of(await service.get_bulk(tx, caller, task_id))


def _answer(bulk: Bulk) -> Answer:
    headers = {"Location": f"/v1/tasks/bulk/{bulk.task_id}"}
    return Answer(BulkOut.of(bulk), status=201, headers=headers, task_id=bulk.task_id)
