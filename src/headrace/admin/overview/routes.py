"""The overview, the statistics and the settings over HTTP, for administrators."""

from typing import Annotated

from fastapi import Depends, Query, Request

from headrace import audit
from headrace.admin.overview.failures import list_failure_groups
from headrace.admin.overview.schemas import FailureGroupOut, OverviewOut, SettingOut, StatisticsRangeOut
from headrace.admin.overview.service import Operators, read_overview
from headrace.admin.statistics.model import Range
from headrace.admin.statistics.service import read_statistics
from headrace.audit import Action, Resource, ResourceType
from headrace.edge.authorization import Admin
from headrace.edge.paging import Page
from headrace.edge.routing import Router
from headrace.edge.services import Db

router = Router(tags=["Operations"])


def create_router(operators: Operators, *others: Router) -> Router:
    """The routes of the overview, and others for operators."""

    async def give(request: Request) -> None:
        request.state.operators = operators

    parent = Router(prefix="/v1/admin", dependencies=[Depends(give)])
    parent.include(router, *others)
    return parent


async def _operators(request: Request) -> Operators:
    operators = request.state.operators
    assert isinstance(operators, Operators)
    return operators


OperatorsDep = Annotated[Operators, Depends(_operators)]


@router.get("/overview", response_model=OverviewOut, summary="Queues, workers and findings")
async def get_overview(caller: Admin, db: Db, operators: OperatorsDep) -> OverviewOut:  # noqa: ARG001 - asked to be let in
    """Everything at a glance: queues, workers, the task that has waited longest, and what `headrace doctor` finds."""
    return OverviewOut.of(await read_overview(db, operators))


@router.get("/statistics", response_model=StatisticsRangeOut, summary="Read statistics")
async def get_statistics(
    caller: Admin,  # noqa: ARG001 - asked for to be let in
    db: Db,
    range: Annotated[Range, Query(description="How far back.")] = Range.HOUR,  # noqa: A002 - the parameter's name
    task_type: Annotated[
        str | None,
        Query(
            description="Narrows the percentiles to one task type; counts stay those of all.",
            min_length=1,
            max_length=255,
        ),
    ] = None,
) -> StatisticsRangeOut:
    """Throughput, failures, queue depth and latency of the last hour (by minute), day (by ten) or week (by hour).

    Kept in the database by the processes themselves, once a minute: no Prometheus is needed.
    """
    async with db.transaction(readonly=True) as tx:
        return StatisticsRangeOut.of(await read_statistics(tx, range, task_type=task_type))


@router.get("/settings", response_model=Page[SettingOut], summary="List settings")
async def list_settings(caller: Admin, operators: OperatorsDep) -> Page[SettingOut]:  # noqa: ARG001 - asked to be let in
    """What this deployment has chosen, in the API process that answers. Secrets are hidden."""
    return Page(items=[SettingOut.of(setting) for setting in operators.settings])


@router.get("/failures", response_model=Page[FailureGroupOut], summary="Group recent failures")
async def list_failures(caller: Admin, db: Db) -> Page[FailureGroupOut]:
    """The 2,000 newest failed tasks of all users, grouped by type and by the last line of their error. Audited."""
    async with db.transaction() as tx:
        await audit.record(tx, caller.who, Action.READ, Resource(ResourceType.TASK, "*"), data={"status": "FAILED"})
        groups = await list_failure_groups(tx)
    return Page(items=[FailureGroupOut.model_validate(each, from_attributes=True) for each in groups])
