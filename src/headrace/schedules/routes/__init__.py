"""Routes of schedules and runs."""

from fastapi import Depends, Request

from headrace.edge.routing import Router
from headrace.schedules.routes import executions, schedules
from headrace.tasks.routes.dependencies import TasksOrMake


def create_router(deps: TasksOrMake) -> Router:
    """All routes of this package."""

    async def give(request: Request) -> None:
        request.state.tasks = deps

    router = Router(prefix="/v1", dependencies=[Depends(give)])
    router.include(schedules.router, executions.router)
    return router
