"""Schedules and their runs over HTTP."""

from fastapi import Depends, Request

from headrace.edge.routing import Router
from headrace.schedules.routes import executions, schedules
from headrace.tasks.routes.dependencies import TasksOrMake


def create_router(deps: TasksOrMake) -> Router:
    """Every route of this package, served with these tasks."""

    async def give(request: Request) -> None:
        request.state.tasks = deps

    router = Router(prefix="/v1", dependencies=[Depends(give)])
    router.include(schedules.router, executions.router)
    return router
