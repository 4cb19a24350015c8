"""The task types of removal: the four media, and a look before anything is paid."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Protocol

from headrace.removal.order import RemovalOrder, Stage
from headrace.tasks.context import TaskContext
from headrace.tasks.execution import Backoff
from headrace.tasks.model import MEDIA_TYPES
from headrace.tasks.registry import Registry
from headrace.tasks.rights import USERS

QUEUE = "media"
DETECT = "removal.detect"

_WHAT = {
    "IMAGE": "Takes the mark off a picture.",
    "PDF": "Takes the mark off a PDF.",
    "PPT": "Takes the mark off slides.",
    "VIDEO": "Takes the mark off a video.",
}
_PATIENCE = Backoff(first=timedelta(seconds=1), cap=timedelta(minutes=1))


class Removes(Protocol):
    """Who does it: ``running.Remover``."""

    async def remove(self, context: TaskContext, order: RemovalOrder) -> dict[str, Any]: ...

    async def detect(self, context: TaskContext, order: RemovalOrder) -> dict[str, Any]: ...


def removal_types(remover: Removes | None = None) -> Registry:
    """The types; without anybody who does it they can be declared, so that orders wait for a worker that has them."""
    registry = Registry()
    for media in sorted(MEDIA_TYPES):
        registry.task(
            media,
            queue=QUEUE,
            submit=USERS,
            steps=tuple(Stage),
            units="payload.units",
            limited_by_plan=True,
            followers=("results",),
            events="always",
            backoff=_PATIENCE,
            grace=timedelta(seconds=1),
            description=_WHAT[media],
        )(_handler(remover, "remove"))
    registry.task(
        DETECT,
        queue=QUEUE,
        submit=USERS,
        # It is free, and must not delay orders. So no priority, though a person waits before a screen: of
        # each user and type one is taken in turn, and where one file is worked on at a time, looks would be all.
        limit_key="user",
        max_running_per_key=1,
        max_attempts=2,
        backoff=_PATIENCE,
        grace=timedelta(seconds=1),
        description="Looks for marks in a file, and changes nothing.",
    )(_handler(remover, "detect"))
    return registry


def _handler(remover: Removes | None, verb: str) -> Callable[[TaskContext, RemovalOrder], Awaitable[dict[str, Any]]]:
    async def handle(context: TaskContext, order: RemovalOrder) -> dict[str, Any]:
        assert remover is not None, "declared here, and run elsewhere"
        result: dict[str, Any] = await getattr(remover, verb)(context, order)
        return result

    return handle
