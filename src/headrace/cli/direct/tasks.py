"""Tasks, as the API answers for them."""

from collections.abc import Mapping
from typing import Any

from headrace.cli.direct.answering import Handler, Request
from headrace.tasks import service
from headrace.tasks.model import Task, TaskStatus
from headrace.tasks.schemas import LogOut, SubmitIn, TaskItemOut, TaskOut
from headrace.tasks.store.tasks import Filter, LogLine

_PAGE = 200


async def list_tasks(request: Request) -> list[Any]:
    asked = request.params
    statuses = sorted({TaskStatus(word) for word in asked.get("status", ())}) or None
    internal = asked.get("internal", True)
    labels = dict(each.split("=", 1) for each in asked.get("label", ())) or None
    wanted = Filter(
        request.owner,
        statuses,
        asked.get("type"),
        asked.get("queue"),
        internal=internal,
        title=asked.get("title"),
        labels=labels,
        key=asked.get("key"),
        error=asked.get("error"),
    )
    found: list[Task] = []
    mark = None
    async with request.begin() as tx:
        while len(found) < request.limit:
            size = min(_PAGE, request.limit - len(found))
            page = await service.list_tasks(tx, request.caller, wanted, older_than=mark, limit=size)
            found += page.tasks
            if page.resume is None and len(page.tasks) < size:
                break
            mark = page.resume or (found[-1].created_at, found[-1].id)
    return [TaskItemOut.of(task).model_dump(mode="json") for task in found]


async def submit_task(request: Request) -> Any:
    body = SubmitIn.model_validate(request.body)
    async with request.begin() as tx:
        spec = body.spec(idempotency_key=request.key)
        task = await service.submit_task(tx, request.session.tasks, request.caller, spec, user_id=body.user_id)
    return _shown(task)


async def get_task(request: Request) -> Any:
    async with request.begin() as tx:
        return _shown(await service.get_task(tx, request.caller, request.path["task_id"]))


async def cancel_task(request: Request) -> Any:
    async with request.begin() as tx:
        task_id = request.path["task_id"]
        return _shown(await service.cancel_task(tx, request.session.tasks, request.caller, task_id))


async def retry_task(request: Request) -> Any:
    async with request.begin() as tx:
        task_id = request.path["task_id"]
        return _shown(await service.retry_task(tx, request.session.tasks, request.caller, task_id))


async def delete_task(request: Request) -> None:
    async with request.begin() as tx:
        await service.delete_task(tx, request.caller, request.path["task_id"])


async def list_logs(request: Request) -> list[Any]:
    lines: list[LogLine] = []
    async with request.begin() as tx:
        while len(lines) < request.limit:
            after, size = lines[-1].id if lines else 0, min(_PAGE, request.limit - len(lines))
            page = await service.list_logs(tx, request.caller, request.path["task_id"], after=after, limit=size)
            lines += page
            if len(page) < size:
                break
    return [LogOut.of(line).model_dump(mode="json") for line in lines]


async def explain_task(request: Request) -> Any:
    from headrace.tasks.why import explain
    from headrace.tasks.why_schemas import WhyOut

    async with request.begin() as tx:
        return WhyOut.of(await explain(tx, request.caller, request.path["task_id"])).model_dump(mode="json")


def _shown(task: Task) -> Any:
    return TaskOut.of(task).model_dump(mode="json")


HANDLERS: Mapping[str, Handler] = {
    "GET /v1/tasks": list_tasks,
    "POST /v1/tasks": submit_task,
    "GET /v1/tasks/{task_id}": get_task,
    "POST /v1/tasks/{task_id}/cancel": cancel_task,
    "POST /v1/tasks/{task_id}/retry": retry_task,
    "DELETE /v1/tasks/{task_id}": delete_task,
    "GET /v1/tasks/{task_id}/logs": list_logs,
    "GET /v1/tasks/{task_id}/why": explain_task,
}
