"""Tasks over HTTP."""

from fastapi import Depends, Request

from headrace.edge.routing import Router
from headrace.tasks.live import Watch
from headrace.tasks.routes import changes, events, queues, tasks
from headrace.tasks.routes.dependencies import TasksOrMake


def create_router(deps: TasksOrMake, watch: Watch) -> Router:
    """Every route of this package, served with these tasks and this watch."""

    async def give(request: Request) -> None:
        request.state.tasks = deps
        request.state.watch = watch

    router = Router(prefix="/v1", dependencies=[Depends(give)])
    router.include(tasks.router, changes.router, events.router, queues.router)
    return router
