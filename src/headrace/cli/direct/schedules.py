"""Schedules, as the API answers for them."""

from collections.abc import Mapping
from typing import Any

from headrace.cli.direct.answering import Handler, Request
from headrace.database import Tx
from headrace.schedules import service
from headrace.schedules.model import Schedule
from headrace.schedules.schemas import (
    DisabledOut,
    ExecutionOut,
    ScheduleChangeIn,
    ScheduleIn,
    ScheduleItemOut,
    ScheduleOut,
    ScheduleStatisticsOut,
    TimesOut,
)
from headrace.schedules.store.schedules import ScheduleFilter
from headrace.schedules.warnings import warnings_of

_PAGE = 200


async def create_schedule(request: Request) -> Any:
    spec = ScheduleIn.model_validate(request.body).spec()
    async with request.begin() as tx:
        made = await service.create_schedule(tx, request.session.tasks, request.caller, spec)
        return await _warned(tx, request, made)


async def list_schedules(request: Request) -> list[Any]:
    asked = request.params
    labels = dict(each.split("=", 1) for each in asked.get("label", ()))
    wanted = ScheduleFilter(
        request.owner,
        asked.get("type"),
        asked.get("enabled"),
        labels,
        asked.get("name"),
        asked.get("internal", True),
    )
    found: list[Schedule] = []
    mark = None
    async with request.begin() as tx:
        while len(found) < request.limit:
            size = min(_PAGE, request.limit - len(found))
            page = await service.list_schedules(tx, request.caller, wanted, older_than=mark, limit=size)
            found += page
            if len(page) < size:
                break
            mark = (found[-1].created_at, found[-1].uid)
    return [ScheduleItemOut.of(schedule).model_dump(mode="json") for schedule in found]


async def get_schedule(request: Request) -> Any:
    async with request.begin() as tx:
        return await _warned(tx, request, await service.get_schedule(tx, request.caller, _id(request)))


async def update_schedule(request: Request) -> Any:
    changes = ScheduleChangeIn.model_validate(request.body).changes()
    async with request.begin() as tx:
        changed = await service.update_schedule(
            tx, request.session.tasks, request.caller, _id(request), changes, expected=request.version
        )
        return await _warned(tx, request, changed)


async def delete_schedule(request: Request) -> None:
    async with request.begin() as tx:
        await service.delete_schedule(tx, request.caller, _id(request))


async def enable_schedule(request: Request) -> Any:
    async with request.begin() as tx:
        enabled = await service.enable_schedule(tx, request.session.tasks, request.caller, _id(request))
        return await _warned(tx, request, enabled)


async def disable_schedule(request: Request) -> Any:
    async with request.begin() as tx:
        disabled = await service.disable_schedule(
            tx,
            request.session.tasks,
            request.caller,
            _id(request),
            cancel_pending=bool(request.params.get("cancel_pending")),
        )
        return DisabledOut.of_disabled(disabled).model_dump(mode="json")


async def run_schedule(request: Request) -> Any:
    async with request.begin() as tx:
        run = await service.run_schedule(tx, request.session.tasks, request.caller, _id(request))
        return ExecutionOut.of(run).model_dump(mode="json")


async def list_next_runs(request: Request) -> Any:
    async with request.begin() as tx:
        times = await service.upcoming(tx, request.caller, _id(request), count=request.params["count"])
        return TimesOut(times=list(times)).model_dump(mode="json")


async def get_statistics(request: Request) -> Any:
    async with request.begin() as tx:
        found = await service.get_statistics(tx, request.caller, _id(request))
        return ScheduleStatisticsOut.of(found).model_dump(mode="json")


def _id(request: Request) -> str:
    return request.path["schedule_id"]


async def _warned(tx: Tx, request: Request, schedule: Schedule) -> Any:
    warnings = await warnings_of(tx, request.session.tasks, schedule)
    return ScheduleOut.warned(schedule, warnings).model_dump(mode="json")


HANDLERS: Mapping[str, Handler] = {
    "POST /v1/schedules": create_schedule,
    "GET /v1/schedules": list_schedules,
    "GET /v1/schedules/{schedule_id}": get_schedule,
    "PATCH /v1/schedules/{schedule_id}": update_schedule,
    "DELETE /v1/schedules/{schedule_id}": delete_schedule,
    "POST /v1/schedules/{schedule_id}/enable": enable_schedule,
    "POST /v1/schedules/{schedule_id}/disable": disable_schedule,
    "POST /v1/schedules/{schedule_id}/run": run_schedule,
    "GET /v1/schedules/{schedule_id}/next": list_next_runs,
    "GET /v1/schedules/{schedule_id}/statistics": get_statistics,
}
