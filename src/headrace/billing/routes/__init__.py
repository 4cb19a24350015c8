"""Routes of plans, subscriptions and payments."""

from fastapi import Depends, Request

from headrace.billing.payments.service import Payments
from headrace.billing.plans import routes as plans
from headrace.billing.routes import notices, orders, subscriptions
from headrace.edge.routing import Router


def create_router(payments: Payments) -> Router:
    """All routes of buying."""

    async def give(request: Request) -> None:
        request.state.payments = payments

    router = Router(dependencies=[Depends(give)])
    # The notices' path first, before /{order_id}.
    router.include(plans.router, subscriptions.router, notices.router, orders.router, orders.admin_router)
    return router
