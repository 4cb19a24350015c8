"""Dependencies of these routes."""

from typing import Annotated

from fastapi import Depends, Path, Query, Request

from headrace.access import Caller, Scope
from headrace.billing.payments.schemas import ORDER_ID
from headrace.billing.payments.service import EVERY_USER, Payments
from headrace.billing.subscriptions.schemas import SUBSCRIPTION_ID
from headrace.edge.authorization import scoped

Reader = Annotated[Caller, Depends(scoped(Scope.BILLING_READ))]
Writer = Annotated[Caller, Depends(scoped(Scope.BILLING_WRITE))]
SubscriptionId = Annotated[str, Path(max_length=64, examples=[SUBSCRIPTION_ID])]
OrderId = Annotated[str, Path(max_length=64, examples=[ORDER_ID])]
Owner = Annotated[
    str | None, Query(max_length=64, description="For administrators: the owner's id, or `*` for all users.")
]


async def _payments(request: Request) -> Payments:
    payments = request.state.payments
    assert isinstance(payments, Payments)
    return payments


PaymentsDep = Annotated[Payments, Depends(_payments)]


def owner_of(caller: Caller, user_id: str | None) -> str | None:
    if user_id is None:
        return caller.user_id
    return None if user_id == EVERY_USER else user_id
