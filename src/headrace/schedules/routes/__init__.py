"""Schedules and their runs over HTTP."""

from fastapi import APIRouter, Depends, Request

from headrace.schedules.routes import executions, schedules
from headrace.tasks.service import Tasks


def create_router(deps: Tasks) -> APIRouter:
    """Every route of this package, served with these tasks."""

    async def give(request: Request) -> None:
        request.state.tasks = deps

    router = APIRouter(prefix="/v1", dependencies=[Depends(give)])
    router.include_router(schedules.router)
    router.include_router(executions.router)
    return router
