"""Queues and workers, as the API answers for them."""

from collections.abc import Mapping
from typing import Any

from headrace.cli.direct.answering import Handler, Request
from headrace.tasks import queues
from headrace.tasks.queue_schemas import LimitIn, QueueOut, QueueRulesOut, WorkerOut
from headrace.tasks.store.queues import QueueRules


async def list_queues(request: Request) -> list[Any]:
    async with request.begin() as tx:
        return [QueueOut.counted(queue).model_dump(mode="json") for queue in await queues.list_queues(tx)]


async def pause_queue(request: Request) -> Any:
    create = bool(request.params.get("create"))
    async with request.begin() as tx:
        return _shown(await queues.pause_queue(tx, request.caller, request.path["name"], create=create))


async def resume_queue(request: Request) -> Any:
    async with request.begin() as tx:
        return _shown(await queues.resume_queue(tx, request.caller, request.path["name"]))


async def limit_queue(request: Request) -> Any:
    most = LimitIn.model_validate(request.body).max_running
    create = bool(request.params.get("create"))
    async with request.begin() as tx:
        name = request.path["name"]
        return _shown(await queues.limit_queue(tx, request.caller, name, max_running=most, create=create))


async def list_workers(request: Request) -> list[Any]:
    async with request.begin() as tx:
        return [WorkerOut.of(worker).model_dump(mode="json") for worker in await queues.list_workers(tx)]


def _shown(rules: QueueRules) -> Any:
    return QueueRulesOut.of(rules).model_dump(mode="json")


HANDLERS: Mapping[str, Handler] = {
    "GET /v1/queues": list_queues,
    "POST /v1/queues/{name}/pause": pause_queue,
    "POST /v1/queues/{name}/resume": resume_queue,
    "PUT /v1/queues/{name}/limit": limit_queue,
    "GET /v1/workers": list_workers,
}
