"""Routes of subscriptions: order, renew, cancel, read."""

from typing import Annotated

import orjson
from fastapi import Depends, Query, Response

from headrace.access import PreconditionFailed
from headrace.billing.payments import ordering, settlement
from headrace.billing.payments.errors import (
    OrderNotPayable,
    PayerUnknown,
    PaymentsOff,
    PlanNotForSale,
    TooManyOrders,
    WeChatPayRefused,
    WeChatPayUnavailable,
)
from headrace.billing.payments.model import Order, PayMethod
from headrace.billing.payments.schemas import OrderedPlanOut, OrderOut, RenewSubscriptionIn, SubscribeIn
from headrace.billing.payments.service import Payments
from headrace.billing.plans.errors import PlanNotFound
from headrace.billing.routes.dependencies import Owner, PaymentsDep, Reader, SubscriptionId, Writer, owner_of
from headrace.billing.subscriptions import service
from headrace.billing.subscriptions.errors import (
    AlreadySubscribed,
    SubscriptionEnded,
    SubscriptionNotFound,
    SubscriptionUnpaid,
)
from headrace.billing.subscriptions.model import Subscription, SubscriptionStatus
from headrace.billing.subscriptions.schemas import SubscriptionOut
from headrace.billing.subscriptions.store import Filter
from headrace.database import Database, Tx
from headrace.edge.errors import InvalidCursor, InvalidIfMatch
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db

router = Router(prefix="/v1/subscriptions", tags=["Subscriptions"])

SubscribeOnce = Annotated[Once, Depends(idempotent("subscriptions.create"))]
RenewOnce = Annotated[Once, Depends(idempotent("subscriptions.renew"))]
_ORDER = (PaymentsOff, PlanNotForSale, PayerUnknown, OrderNotPayable, WeChatPayRefused, WeChatPayUnavailable)
_CHANGE = (SubscriptionNotFound, SubscriptionEnded, PreconditionFailed, InvalidIfMatch)


@router.post(
    "",
    status_code=201,
    response_model=OrderedPlanOut,
    summary="Subscribe",
    responses=problems(PlanNotFound, AlreadySubscribed, TooManyOrders, *_ORDER, *ONCE),
)
async def subscribe(body: SubscribeIn, caller: Writer, db: Db, deps: PaymentsDep, once: SubscribeOnce) -> Response:
    """Order a plan. The answer says how to pay; the subscription is `ACTIVE` as soon as the payment arrives.

    Ordering another plan is an upgrade: the full price is paid, the new period begins with the payment, the old
    subscription ends, and its remaining units can be used until its period ends. Send an `Idempotency-Key`: if WeChat
    Pay does not answer (503), the same request repeats it for the same order. While an order for the same plan is
    unpaid, the answer is that order; once one of your orders is paid, the others are closed.
    """

    closed: list[Order] = []

    async def act(tx: Tx) -> Answer:
        ordered = await ordering.order_plan(
            tx, caller, deps, plan=body.plan, method=body.method, auto_renew=body.auto_renew
        )
        closed[:] = ordered.closed
        headers = {"Location": f"/v1/subscriptions/{ordered.subscription.id}"}
        return Answer(OrderedPlanOut.of(ordered.subscription, ordered.order), status=201, headers=headers)

    answered = await once.run(db, act)
    await settlement.close_at_wechatpay(db, deps, closed)
    return await _payable(db, deps, answered)


@router.post(
    "/{subscription_id}/renew",
    status_code=201,
    response_model=OrderedPlanOut,
    summary="Renew a subscription",
    responses=problems(SubscriptionNotFound, SubscriptionEnded, SubscriptionUnpaid, *_ORDER, *ONCE),
)
async def renew_subscription(
    subscription_id: SubscriptionId,
    caller: Writer,
    db: Db,
    deps: PaymentsDep,
    once: RenewOnce,
    body: RenewSubscriptionIn | None = None,
) -> Response:
    """Order the next month at the plan's present price. It follows the present one without a gap; after its end
    (`PAST_DUE`) it begins with the payment. While an order for it is unpaid, the answer is that order."""

    closed: list[Order] = []
    method = PayMethod.NATIVE if body is None else body.method

    async def act(tx: Tx) -> Answer:
        ordered = await ordering.order_renewal(tx, caller, deps, subscription_id, method=method)
        closed[:] = ordered.closed
        headers = {"Location": f"/v1/payments/{ordered.order.id}"}
        return Answer(OrderedPlanOut.of(ordered.subscription, ordered.order), status=201, headers=headers)

    answered = await once.run(db, act)
    await settlement.close_at_wechatpay(db, deps, closed)
    return await _payable(db, deps, answered)


async def _payable(db: Database, payments: Payments, answered: Response) -> Response:
    """Add WeChat Pay's way to pay to the answer, requested after the commit, also for a repeated request."""
    if answered.status_code != 201:
        return answered
    ordered = OrderedPlanOut.model_validate(orjson.loads(bytes(answered.body)))
    order = await ordering.prepare(db, payments, ordered.order.id)
    shown = ordered.model_copy(update={"order": OrderOut.of(order, payments.maybe_wechatpay)})
    headers = {name: value for name, value in answered.headers.items() if name.lower() != "content-length"}
    return Response(shown.model_dump_json(), status_code=201, headers=headers)


@router.get("", response_model=Page[SubscriptionOut], summary="List subscriptions", responses=problems(InvalidCursor))
async def list_subscriptions(
    caller: Reader,
    db: Db,
    paging: Paging,
    status: Annotated[SubscriptionStatus | None, Query(description="Only those in this state.")] = None,
    user_id: Owner = None,
) -> Page[SubscriptionOut]:
    """Your subscriptions, including ended ones, newest first."""
    owner = owner_of(caller, user_id)
    listing = paging.of("subscriptions", owner=owner or "*", status=status)
    async with db.transaction() as tx:
        rows = await service.list_subscriptions(
            tx, caller, Filter(owner, status), older_than=listing.after, limit=listing.fetch
        )
    return listing.page(rows, mark=lambda row: (row.created_at, row.id), item=SubscriptionOut.of)


@router.get(
    "/{subscription_id}",
    response_model=SubscriptionOut,
    summary="Read a subscription",
    responses=problems(SubscriptionNotFound),
)
async def get_subscription(
    subscription_id: SubscriptionId, caller: Reader, db: Db, response: Response
) -> SubscriptionOut:
    """One subscription."""
    async with db.transaction() as tx:
        return _shown(response, await service.get_subscription(tx, caller, subscription_id))


@router.post(
    "/{subscription_id}/cancel",
    response_model=SubscriptionOut,
    summary="Cancel a subscription",
    responses=problems(*_CHANGE),
)
async def cancel_subscription(
    subscription_id: SubscriptionId,
    caller: Writer,
    db: Db,
    deps: PaymentsDep,
    expected: ExpectedVersion,
    response: Response,
) -> SubscriptionOut:
    """End it with its period; its units can be used until then, and `resume` undoes it. An unpaid one ends at once,
    with its order."""
    async with db.transaction() as tx:
        subscription, closed = await ordering.cancel(tx, caller, subscription_id, expected=expected)
    await settlement.close_at_wechatpay(db, deps, closed)
    return _shown(response, subscription)


@router.post(
    "/{subscription_id}/resume",
    response_model=SubscriptionOut,
    summary="Resume a canceled subscription",
    responses=problems(SubscriptionUnpaid, *_CHANGE),
)
async def resume_subscription(
    subscription_id: SubscriptionId, caller: Writer, db: Db, expected: ExpectedVersion, response: Response
) -> SubscriptionOut:
    """Undo a cancellation while the period runs: the subscription waits for its renewal again."""
    async with db.transaction() as tx:
        return _shown(response, await service.resume(tx, caller, subscription_id, expected=expected))


def _shown(response: Response, subscription: Subscription) -> SubscriptionOut:
    response.headers["ETag"] = etag(subscription.version)
    return SubscriptionOut.of(subscription)
