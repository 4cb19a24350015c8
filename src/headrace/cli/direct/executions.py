"""Runs of schedules, as the API answers for them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headrace.cli.direct.answering import Handler, Request
from headrace.edge.vocabulary import stored
from headrace.schedules import executions
from headrace.schedules.model import Execution, ExecutionState, Trigger
from headrace.schedules.schemas import ExecutionItemOut, ExecutionOut, RunWhyOut
from headrace.schedules.store.executions import ExecutionFilter

_PAGE = 200


async def list_executions(request: Request) -> list[Any]:
    asked = request.params
    wanted = ExecutionFilter(
        request.owner,
        asked.get("schedule_id"),
        sorted({stored(ExecutionState, word) for word in asked.get("status", ())}) or None,
        Trigger(asked["trigger"]) if "trigger" in asked else None,
        asked.get("type"),
        _time(asked.get("due_after")),
        _time(asked.get("due_before")),
    )
    found: list[Execution] = []
    mark = None
    async with request.begin() as tx:
        while len(found) < request.limit:
            size = min(_PAGE, request.limit - len(found))
            page = await executions.list_executions(tx, request.caller, wanted, older_than=mark, limit=size)
            found += page.executions
            if page.resume is None and len(page.executions) < size:
                break
            mark = page.resume or (found[-1].scheduled_at, found[-1].execution_uid)
    return [ExecutionItemOut.of(run).model_dump(mode="json") for run in found]


async def get_execution(request: Request) -> Any:
    async with request.begin() as tx:
        return _shown(await executions.get_execution(tx, request.caller, _id(request)))


async def cancel_execution(request: Request) -> Any:
    async with request.begin() as tx:
        return _shown(await executions.cancel_execution(tx, request.session.tasks, request.caller, _id(request)))


async def explain_execution(request: Request) -> Any:
    async with request.begin() as tx:
        explained = await executions.explain_execution(tx, request.caller, _id(request))
        return RunWhyOut.of(explained).model_dump(mode="json")


def _id(request: Request) -> str:
    return request.path["execution_id"]


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _shown(run: Execution) -> Any:
    return ExecutionOut.of(run).model_dump(mode="json")


HANDLERS: Mapping[str, Handler] = {
    "GET /v1/executions": list_executions,
    "GET /v1/executions/{execution_id}": get_execution,
    "POST /v1/executions/{execution_id}/cancel": cancel_execution,
    "GET /v1/executions/{execution_id}/why": explain_execution,
}
