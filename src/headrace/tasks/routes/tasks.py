"""Reading tasks, and why one is not running."""

from typing import Annotated

from fastapi import Query, Response

from headrace.access import AdminOnly, Caller
from headrace.edge.errors import InvalidCursor
from headrace.edge.etags import etag
from headrace.edge.instants import Instant
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.edge.vocabulary import Offered
from headrace.tasks import service
from headrace.tasks.errors import TaskNotFound
from headrace.tasks.model import COMMON_STATUSES, LABEL, TaskStatus
from headrace.tasks.routes.dependencies import Reader, TaskIdPath
from headrace.tasks.schemas import LogOut, StepOut, TaskItemOut, TaskOut
from headrace.tasks.store.tasks import Filter
from headrace.tasks.why import explain
from headrace.tasks.why_schemas import WhyOut

router = Router(prefix="/tasks", tags=["Tasks"])

_Word = Annotated[str | None, Query(max_length=255)]


@router.get("", response_model=Page[TaskItemOut], summary="List tasks", responses=problems(InvalidCursor, AdminOnly))
async def list_tasks(
    caller: Reader,
    db: Db,
    paging: Paging,
    status: Annotated[
        list[Annotated[TaskStatus, Offered(COMMON_STATUSES)]] | None,
        Query(
            description="One of these; may be repeated. `RUNNING` finds what shows a step as its "
            "status, too; a step's name finds that alone. A task that a worker took within the last "
            "moment may still be among the `QUEUED`, and shows as `RUNNING` there."
        ),
    ] = None,
    type: _Word = None,  # noqa: A002 - the parameter's name
    queue: _Word = None,
    created_after: Annotated[Instant | None, Query(description="From this time on.")] = None,
    created_before: Annotated[Instant | None, Query(description="Before this time.")] = None,
    user_id: Annotated[
        str | None, Query(max_length=64, description="Whose, for administrators: a user's id, or `*` for everybody's.")
    ] = None,
    internal: Annotated[
        bool, Query(description="Tasks of the product itself, too, whose types begin with `headrace.`.")
    ] = True,
    title: Annotated[str | None, Query(max_length=255, description="A part of the title, in any case.")] = None,
    label: Annotated[
        list[Annotated[str, Query(pattern=f"^{LABEL}={LABEL}$")]] | None,
        Query(max_length=8, description="`key=value`; may be repeated."),
    ] = None,
    key: Annotated[str | None, Query(max_length=255, description="The idempotency key of its submission.")] = None,
    error: Annotated[
        str | None, Query(max_length=255, description="A part of the error's code or message, in any case.")
    ] = None,
) -> Page[TaskItemOut]:
    """Your tasks, newest first. Their payloads and results are left out here.

    A page may be short, even empty, without being the last: continue until `next_cursor` is null. So the answer is fast
    for any number of tasks and any filter.
    """
    statuses = sorted(set(status)) if status else None
    listing = paging.of(
        "tasks",
        owner=user_id or caller.user_id,
        status=statuses,
        type=type,
        queue=queue,
        since=created_after,
        until=created_before,
        internal=internal,
        title=title,
        label=sorted(label) if label else None,
        key=key,
        error=error,
    )
    wanted = Filter(
        _owner(caller, user_id),
        statuses,
        type,
        queue,
        created_after,
        created_before,
        internal,
        title=title,
        labels=dict(each.split("=", 1) for each in label) if label else None,
        key=key,
        error=error,
    )
    async with db.autocommit() as tx:
        listed = await service.list_tasks(tx, caller, wanted, older_than=listing.after, limit=listing.fetch)
    return listing.page(
        listed.items, mark=lambda task: (task.created_at, task.id), item=TaskItemOut.of, resume=listed.resume
    )


def _owner(caller: Caller, user_id: str | None) -> str | None:
    if user_id is None:
        return caller.user_id
    return None if user_id == service.EVERYBODY else user_id


@router.get("/{task_id}", response_model=TaskOut, summary="Read a task", responses=problems(TaskNotFound))
async def get_task(task_id: TaskIdPath, caller: Reader, db: Db, response: Response) -> TaskOut:
    """One task, with its payload and its result. It shows the current state: also that a worker has just claimed it."""
    async with db.autocommit() as tx:
        task = await service.get_task(tx, caller, task_id)
    response.headers["ETag"] = etag(task.version)
    return TaskOut.of(task)


@router.get(
    "/{task_id}/logs",
    response_model=Page[LogOut],
    summary="Read a task's log",
    responses=problems(TaskNotFound, InvalidCursor),
)
async def list_task_logs(task_id: TaskIdPath, caller: Reader, db: Db, paging: Paging) -> Page[LogOut]:
    """How each attempt ended and what the handler wrote, oldest first."""
    listing = paging.of("task_logs", task=task_id)
    after = int(listing.after[1]) if listing.after else 0
    async with db.transaction() as tx:
        lines = await service.list_logs(tx, caller, task_id, after=after, limit=listing.fetch)
    return listing.page(lines, mark=lambda line: (line.created_at, str(line.id)), item=LogOut.of)


@router.get(
    "/{task_id}/steps",
    response_model=Page[StepOut],
    summary="Read a task's steps",
    responses=problems(TaskNotFound, InvalidCursor),
)
async def list_task_steps(
    task_id: TaskIdPath,
    caller: Reader,
    db: Db,
    paging: Paging,
    failed: Annotated[bool, Query(description="Only those that failed.")] = False,
) -> Page[StepOut]:
    """The steps of every attempt, in the order in which they were entered."""
    listing = paging.of("task_steps", task=task_id, failed=failed)
    after = int(listing.after[1]) if listing.after else 0
    async with db.transaction() as tx:
        steps = await service.list_steps(tx, caller, task_id, failed=failed, after=after, limit=listing.fetch)
    return listing.page(steps, mark=lambda step: (step.created_at, str(step.id)), item=StepOut.of)


@router.get(
    "/{task_id}/why", response_model=WhyOut, summary="Ask why a task is not running", responses=problems(TaskNotFound)
)
async def explain_task(task_id: TaskIdPath, caller: Reader, db: Db) -> WhyOut:
    """What stands between a task and its start: no worker for its type, a paused queue, a limit, a time, others."""
    async with db.transaction() as tx:
        return WhyOut.of(await explain(tx, caller, task_id))
