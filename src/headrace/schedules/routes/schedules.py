"""Routes that create, read, change and run schedules."""

from typing import Annotated

from fastapi import Depends, Query, Response

from headrace.access import AdminOnly, PreconditionFailed
from headrace.database import Tx
from headrace.edge.authorization import OwnTurn
from headrace.edge.errors import InvalidCursor, InvalidIfMatch, TooManyAtOnce
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.schedules import service
from headrace.schedules.errors import (
    CronInvalid,
    CronNeverDue,
    ScheduleBusy,
    ScheduleInvalid,
    ScheduleNameTaken,
    ScheduleNotFound,
    TimezoneUnknown,
    TooManySchedules,
)
from headrace.schedules.model import Schedule
from headrace.schedules.routes.dependencies import Owner, Reader, ScheduleIdPath, TasksDep, Word, Writer, owner_of
from headrace.schedules.schemas import (
    MAX_TIMES,
    DisabledOut,
    ExecutionOut,
    PreviewIn,
    ScheduleChangeIn,
    ScheduleIn,
    ScheduleItemOut,
    ScheduleOut,
    ScheduleStatisticsOut,
    TimesOut,
)
from headrace.schedules.store.schedules import ScheduleFilter
from headrace.schedules.warnings import warnings_of
from headrace.tasks.errors import OverCap, TaskChanged, TypeDenied
from headrace.tasks.model import LABEL
from headrace.tasks.service import Tasks

router = Router(prefix="/schedules", tags=["Schedules"])

CreateOnce = Annotated[Once, Depends(idempotent("schedules.create"))]
RunOnce = Annotated[Once, Depends(idempotent("schedules.run"))]
_WHEN = (CronInvalid, CronNeverDue, TimezoneUnknown)
_REFUSED = (ScheduleInvalid, ScheduleNameTaken, TypeDenied, OverCap, *_WHEN)
_CHANGE = (ScheduleNotFound, PreconditionFailed, InvalidIfMatch)
Label = Annotated[str, Query(pattern=f"^{LABEL}={LABEL}$")]
Count = Annotated[int, Query(ge=1, le=MAX_TIMES, description="The number of due times.")]


@router.post(
    "",
    status_code=201,
    response_model=ScheduleOut,
    summary="Create a schedule",
    responses=problems(*_REFUSED, TooManySchedules, *ONCE),
)
async def create_schedule(body: ScheduleIn, caller: Writer, db: Db, deps: TasksDep, once: CreateOnce) -> Response:
    """Create a schedule. An invalid field is named in `details.fields`. The type must be registered: declared by a
    program, or seen in a worker within `HEADRACE_TASK_TYPE_LIFETIME`; if no worker takes it now, `warnings` says so.
    You must be allowed to submit the type, now and each time it fires; caps apply to users."""

    async def act(tx: Tx) -> Answer:
        schedule = await service.create_schedule(tx, deps, caller, body.spec())
        headers = {"Location": f"/v1/schedules/{schedule.uid}", "ETag": etag(schedule.version)}
        shown = ScheduleOut.warned(schedule, await warnings_of(tx, deps, schedule))
        return Answer(shown, status=201, headers=headers)

    return await once.run(db, act)


@router.post(
    "/preview",
    response_model=TimesOut,
    summary="Preview due times",
    responses=problems(ScheduleInvalid, *_WHEN),
)
async def preview_schedule(body: PreviewIn, caller: Reader, db: Db) -> TimesOut:  # noqa: ARG001 - required for authorization
    """The next due times of an expression or an interval, before it is saved."""
    async with db.transaction(readonly=True) as tx:
        return TimesOut(times=list(await service.preview(tx, body.rhythm(), count=body.count, after=body.after)))


@router.get(
    "", response_model=Page[ScheduleItemOut], summary="List schedules", responses=problems(InvalidCursor, AdminOnly)
)
async def list_schedules(
    caller: Reader,
    db: Db,
    paging: Paging,
    type: Word = None,  # noqa: A002 - the parameter's name
    enabled: bool | None = None,
    name: Annotated[str | None, Query(max_length=255, description="A part of the name, in any case.")] = None,
    label: Annotated[list[Label] | None, Query(max_length=8, description="`key=value`; may be repeated.")] = None,
    user_id: Owner = None,
    internal: Annotated[
        bool, Query(description="Include the product's own schedules, whose types begin with `headrace.`.")
    ] = True,
) -> Page[ScheduleItemOut]:
    """Schedules, newest first."""
    owner = owner_of(caller, user_id)
    filters = {"type": type, "enabled": enabled, "name": name, "label": label, "internal": internal}
    listing = paging.of("schedules", owner=owner, everybody=owner is None, **filters)
    labels = dict(each.split("=", 1) for each in label or ())
    wanted = ScheduleFilter(owner, type, enabled, labels, name, internal)
    async with db.transaction() as tx:
        found = await service.list_schedules(tx, caller, wanted, older_than=listing.after, limit=listing.fetch)
    return listing.page(found, mark=lambda schedule: (schedule.created_at, schedule.uid), item=ScheduleItemOut.of)


@router.get(
    "/{schedule_id}", response_model=ScheduleOut, summary="Read a schedule", responses=problems(ScheduleNotFound)
)
async def get_schedule(
    schedule_id: ScheduleIdPath, caller: Reader, db: Db, deps: TasksDep, response: Response
) -> ScheduleOut:
    async with db.transaction() as tx:
        return await _shown(tx, deps, response, await service.get_schedule(tx, caller, schedule_id))


@router.patch(
    "/{schedule_id}", response_model=ScheduleOut, summary="Change a schedule", responses=problems(*_CHANGE, *_REFUSED)
)
async def update_schedule(
    schedule_id: ScheduleIdPath,
    body: ScheduleChangeIn,
    caller: Writer,
    db: Db,
    deps: TasksDep,
    expected: ExpectedVersion,
    response: Response,
) -> ScheduleOut:
    """Change some properties. Running runs are not affected."""
    async with db.transaction() as tx:
        changes = body.changes()
        schedule = await service.update_schedule(tx, deps, caller, schedule_id, changes, expected=expected)
        return await _shown(tx, deps, response, schedule)


@router.delete("/{schedule_id}", status_code=204, summary="Delete a schedule", responses=problems(*_CHANGE))
async def delete_schedule(schedule_id: ScheduleIdPath, caller: Writer, db: Db, expected: ExpectedVersion) -> None:
    """Remove a schedule with its history. Running runs continue as tasks. To keep the history, disable it instead."""
    async with db.transaction() as tx:
        await service.delete_schedule(tx, caller, schedule_id, expected=expected)


@router.post(
    "/{schedule_id}/enable",
    response_model=ScheduleOut,
    summary="Enable a schedule",
    responses=problems(*_CHANGE, *_REFUSED),
)
async def enable_schedule(
    schedule_id: ScheduleIdPath, caller: Writer, db: Db, deps: TasksDep, expected: ExpectedVersion, response: Response
) -> ScheduleOut:
    """Let it run from now on. Times that were due while it was disabled are not caught up; for a single run whose time
    has passed, `misfire_policy` applies."""
    async with db.transaction() as tx:
        schedule = await service.enable_schedule(tx, deps, caller, schedule_id, expected=expected)
        return await _shown(tx, deps, response, schedule)


@router.post(
    "/{schedule_id}/disable",
    response_model=DisabledOut,
    summary="Disable a schedule",
    responses=problems(*_CHANGE, TaskChanged, TooManyAtOnce),
)
async def disable_schedule(
    schedule_id: ScheduleIdPath,
    caller: Writer,
    turn: OwnTurn,
    db: Db,
    deps: TasksDep,
    expected: ExpectedVersion,
    response: Response,
    cancel_pending: Annotated[bool, Query(description="Also cancel its runs that have not begun.")] = False,
) -> DisabledOut:
    """Stop firing it. Running runs continue, and so do waiting ones, unless `cancel_pending` ends them."""
    async with turn, db.transaction() as tx:
        disabled = await service.disable_schedule(
            tx, deps, caller, schedule_id, expected=expected, cancel_pending=cancel_pending
        )
    response.headers["ETag"] = etag(disabled.schedule.version)
    return DisabledOut.of_disabled(disabled)


@router.post(
    "/{schedule_id}/run",
    status_code=201,
    response_model=ExecutionOut,
    summary="Run a schedule now",
    responses=problems(ScheduleNotFound, TypeDenied, ScheduleBusy, *ONCE),
)
async def run_schedule(schedule_id: ScheduleIdPath, caller: Writer, db: Db, deps: TasksDep, once: RunOnce) -> Response:
    """Run it once now, beside its own times. With `max_concurrent` runs under way it waits as `PENDING`, replaces the
    oldest run, or is refused (`schedule_busy`), depending on `overlap_policy`."""

    async def act(tx: Tx) -> Answer:
        execution = await service.run_schedule(tx, deps, caller, schedule_id)
        headers = {"Location": f"/v1/executions/{execution.execution_uid}"}
        return Answer(ExecutionOut.of(execution), status=201, headers=headers)

    return await once.run(db, act)


@router.get(
    "/{schedule_id}/next",
    response_model=TimesOut,
    summary="List a schedule's next runs",
    responses=problems(ScheduleNotFound),
)
async def list_next_runs(schedule_id: ScheduleIdPath, caller: Reader, db: Db, count: Count = 5) -> TimesOut:
    """The next due times; none while it is disabled."""
    async with db.transaction() as tx:
        return TimesOut(times=list(await service.upcoming(tx, caller, schedule_id, count=count)))


@router.get(
    "/{schedule_id}/statistics",
    response_model=ScheduleStatisticsOut,
    summary="Read a schedule's statistics",
    responses=problems(ScheduleNotFound),
)
async def get_schedule_statistics(schedule_id: ScheduleIdPath, caller: Reader, db: Db) -> ScheduleStatisticsOut:
    """Counts of its runs, and the duration of the last ones."""
    async with db.transaction() as tx:
        return ScheduleStatisticsOut.of(await service.get_statistics(tx, caller, schedule_id))


async def _shown(tx: Tx, deps: Tasks, response: Response, schedule: Schedule) -> ScheduleOut:
    response.headers["ETag"] = etag(schedule.version)
    return ScheduleOut.warned(schedule, await warnings_of(tx, deps, schedule))
