"""Tasks over HTTP."""

from fastapi import APIRouter, Depends, Request

from headrace.tasks.live import Watch
from headrace.tasks.routes import changes, events, queues, tasks
from headrace.tasks.service import Tasks


def create_router(deps: Tasks, watch: Watch) -> APIRouter:
    """Every route of this package, served with these tasks and this watch."""

    async def give(request: Request) -> None:
        request.state.tasks = deps
        request.state.watch = watch

    router = APIRouter(prefix="/v1", dependencies=[Depends(give)])
    for part in (tasks.router, changes.router, events.router, queues.router):
        router.include_router(part)
    return router
