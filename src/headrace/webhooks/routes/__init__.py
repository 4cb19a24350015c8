"""Webhooks over HTTP."""

from fastapi import Depends, Request

from headrace.edge.routing import Router
from headrace.webhooks.routes import deliveries, endpoints
from headrace.webhooks.routes.dependencies import HooksOrMake


def create_router(hooks: HooksOrMake) -> Router:
    """All routes of this package."""

    async def give(request: Request) -> None:
        request.state.webhooks = hooks

    router = Router(prefix="/v1/webhooks", dependencies=[Depends(give)])
    router.include(endpoints.router, deliveries.router)
    return router
