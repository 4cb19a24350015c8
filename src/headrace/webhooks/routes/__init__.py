"""Webhooks over HTTP."""

from fastapi import APIRouter, Depends, Request

from headrace.webhooks.routes import deliveries, endpoints
from headrace.webhooks.service import Webhooks


def create_router(hooks: Webhooks) -> APIRouter:
    """Every route of this package, served with these."""

    async def give(request: Request) -> None:
        request.state.webhooks = hooks

    router = APIRouter(prefix="/v1/webhooks", dependencies=[Depends(give)])
    router.include_router(endpoints.router)
    router.include_router(deliveries.router)
    return router
