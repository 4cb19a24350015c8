"""Actions on many tasks, as the API answers for them."""

from collections.abc import Mapping
from typing import Any

from headrace.cli.direct.answering import Handler, Request
from headrace.operations.bulk import service
from headrace.operations.bulk.model import TaskAction
from headrace.operations.bulk.schemas import BulkOut, CountOut, TaskBulkIn, TaskFilterIn


async def count_tasks(request: Request) -> Any:
    asked = dict(request.params)
    action, owner = TaskAction(asked.pop("action")), asked.pop("user_id", None)
    wanted = TaskFilterIn.model_validate({**asked, "owner": owner})
    async with request.begin() as tx:
        return CountOut.of(await service.count_matching_tasks(tx, request.caller, action, wanted)).model_dump()


async def act_on_tasks(request: Request) -> Any:
    body = TaskBulkIn.model_validate(request.body)
    async with request.begin() as tx:
        made = await service.ask_for_tasks(
            tx, request.session.tasks, request.caller, body.action, body.filter, expected=body.expected
        )
    return BulkOut.of(made).model_dump(mode="json")


async def get_bulk_action(request: Request) -> Any:
    async with request.begin() as tx:
        found = await service.get_bulk(tx, request.caller, request.path["task_id"])
    return BulkOut.of(found).model_dump(mode="json")


HANDLERS: Mapping[str, Handler] = {
    "GET /v1/tasks/count": count_tasks,
    "POST /v1/tasks/bulk": act_on_tasks,
    "GET /v1/tasks/bulk/{task_id}": get_bulk_action,
}
