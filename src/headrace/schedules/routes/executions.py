"""Routes of runs: read, cancel, explain."""

from typing import Annotated

from fastapi import Query

from headrace.access import AdminOnly
from headrace.edge.authorization import OwnTurn
from headrace.edge.errors import InvalidCursor, TooManyAtOnce
from headrace.edge.instants import Instant
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.edge.vocabulary import AsShown
from headrace.schedules import executions
from headrace.schedules.errors import ExecutionNotFound, ExecutionOver
from headrace.schedules.model import ExecutionState, Trigger
from headrace.schedules.routes.dependencies import ExecutionIdPath, Owner, Reader, TasksDep, Word, Writer, owner_of
from headrace.schedules.schemas import ExecutionItemOut, ExecutionOut, RunWhyOut
from headrace.schedules.store.executions import ExecutionFilter
from headrace.tasks.errors import TaskChanged

router = Router(prefix="/executions", tags=["Schedules"])


@router.get(
    "", response_model=Page[ExecutionItemOut], summary="List runs", responses=problems(InvalidCursor, AdminOnly)
)
async def list_executions(
    caller: Reader,
    db: Db,
    paging: Paging,
    schedule_id: Annotated[str | None, Query(max_length=255, description="Only runs of this schedule.")] = None,
    status: Annotated[
        list[AsShown[ExecutionState]] | None,
        Query(max_length=7, description="Only runs in this state; may be repeated."),
    ] = None,
    trigger: Trigger | None = None,
    type: Word = None,  # noqa: A002 - the parameter's name
    due_after: Annotated[Instant | None, Query(description="Due at or after this time.")] = None,
    due_before: Annotated[Instant | None, Query(description="Due before this time.")] = None,
    user_id: Owner = None,
) -> Page[ExecutionItemOut]:
    """Runs of schedules, latest due time first. A page may be short although more follow: check `next_cursor`."""
    owner = owner_of(caller, user_id)
    states = sorted(set(status)) if status else None
    listing = paging.of(
        "executions",
        owner=owner,
        everybody=owner is None,
        schedule=schedule_id,
        states=states,
        trigger=trigger,
        type=type,
        due_after=due_after,
        due_before=due_before,
    )
    wanted = ExecutionFilter(owner, schedule_id, states, trigger, type, due_after, due_before)
    async with db.transaction() as tx:
        found = await executions.list_executions(tx, caller, wanted, older_than=listing.after, limit=listing.fetch)
    return listing.page(
        found.items,
        mark=lambda run: (run.scheduled_at, run.execution_uid),
        item=ExecutionItemOut.of,
        resume=found.resume,
    )


@router.get("/{execution_id}", response_model=ExecutionOut, summary="Read a run", responses=problems(ExecutionNotFound))
async def get_execution(execution_id: ExecutionIdPath, caller: Reader, db: Db) -> ExecutionOut:
    """One run, with its result or its error and stack."""
    async with db.transaction() as tx:
        return ExecutionOut.of(await executions.get_execution(tx, caller, execution_id))


@router.post(
    "/{execution_id}/cancel",
    response_model=ExecutionOut,
    summary="Cancel a run",
    responses=problems(ExecutionNotFound, ExecutionOver, TaskChanged, TooManyAtOnce),
)
async def cancel_execution(
    execution_id: ExecutionIdPath, caller: Writer, turn: OwnTurn, db: Db, deps: TasksDep
) -> ExecutionOut:
    """Cancel a run. A waiting one ends at once. A running one receives a stop request, and ends when its handler has
    stopped or was killed. Idempotent."""
    async with turn, db.transaction() as tx:
        return ExecutionOut.of(await executions.cancel_execution(tx, deps, caller, execution_id))


@router.get(
    "/{execution_id}/why",
    response_model=RunWhyOut,
    summary="Ask why a run is not running",
    responses=problems(ExecutionNotFound),
)
async def explain_execution(execution_id: ExecutionIdPath, caller: Reader, db: Db) -> RunWhyOut:
    """What prevents the start of a run: other runs of its schedule, no worker for its type, a limit."""
    async with db.transaction() as tx:
        return RunWhyOut.of(await executions.explain_execution(tx, caller, execution_id))
