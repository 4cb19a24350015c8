"""Plans, subscriptions and payments over HTTP."""

from fastapi import APIRouter, Depends, Request

from headrace.billing.payments.service import Payments
from headrace.billing.plans import routes as plans
from headrace.billing.routes import notices, orders, subscriptions


def create_router(payments: Payments) -> APIRouter:
    """The routes of buying, served with these payments."""

    async def give(request: Request) -> None:
        request.state.payments = payments

    router = APIRouter(dependencies=[Depends(give)])
    # The notices' path first: an order of that name there is none.
    for part in (plans.router, subscriptions.router, notices.router, orders.router, orders.admin_router):
        router.include_router(part)
    return router
