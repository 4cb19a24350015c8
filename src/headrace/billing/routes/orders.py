"""Routes of orders: paying, state, refunds."""

from typing import Annotated

from fastapi import Query, Response

from headrace.billing.payments import checking, ordering, refunding, service
from headrace.billing.payments.errors import (
    NoticeWrong,
    OrderNotFound,
    OrderNotPaid,
    OrderNotPayable,
    PaymentsOff,
    WeChatPayRefused,
    WeChatPayUnavailable,
)
from headrace.billing.payments.model import Order, OrderStatus, PayMethod
from headrace.billing.payments.schemas import OrderOut, RefundIn, ResolveIn
from headrace.billing.payments.service import Payments
from headrace.billing.routes.dependencies import OrderId, Owner, PaymentsDep, Reader, Writer, owner_of
from headrace.edge.authorization import Admin
from headrace.edge.errors import InvalidCursor
from headrace.edge.etags import etag
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.qr import qr_png

router = Router(prefix="/v1/payments", tags=["Payments"])
admin_router = Router(prefix="/v1/admin/payments", tags=["Payments"])

_ASK = (OrderNotFound, PaymentsOff, WeChatPayUnavailable, WeChatPayRefused)


@router.get("", response_model=Page[OrderOut], summary="List orders", responses=problems(InvalidCursor))
async def list_orders(
    caller: Reader,
    db: Db,
    paging: Paging,
    status: Annotated[OrderStatus | None, Query(description="Only those in this state.")] = None,
    problem: Annotated[bool, Query(description="Only orders with a problem for an operator.")] = False,
    user_id: Owner = None,
) -> Page[OrderOut]:
    """Your orders, newest first."""
    owner = owner_of(caller, user_id)
    listing = paging.of("payments", owner=owner or "*", status=status, problem=problem)
    async with db.transaction() as tx:
        rows = await service.list_orders(
            tx,
            caller,
            user_id=owner,
            status=status,
            has_problem=problem,
            older_than=listing.after,
            limit=listing.fetch,
        )
    return listing.page(rows, mark=lambda order: (order.created_at, order.id), item=OrderOut.of)


@router.get("/{order_id}", response_model=OrderOut, summary="Read an order", responses=problems(OrderNotFound))
async def get_order(order_id: OrderId, caller: Reader, db: Db, deps: PaymentsDep, response: Response) -> OrderOut:
    """One order. `PAID` means that the payment has arrived; `POST …/check` queries WeChat Pay at once."""
    async with db.transaction() as tx:
        return _shown(response, deps, await service.get_order(tx, caller, order_id))


@router.get(
    "/{order_id}/qr.png",
    summary="An order's QR code",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}}, **problems(OrderNotPayable, *_ASK)},
)
async def get_order_qr_code(order_id: OrderId, caller: Reader, db: Db, deps: PaymentsDep) -> Response:
    """The image to scan with WeChat, for an unpaid `NATIVE` order."""
    async with db.transaction() as tx:
        order = await service.get_order(tx, caller, order_id)
    if order.status is not OrderStatus.PENDING or order.method is not PayMethod.NATIVE:
        raise OrderNotPayable("This order has no QR code: it has ended, or is paid within WeChat.")
    order = await ordering.prepare(db, deps, order.id)
    return Response(qr_png(order.code_url or ""), media_type="image/png", headers={"Cache-Control": "no-store"})


@router.post(
    "/{order_id}/check",
    response_model=OrderOut,
    summary="Check an order at WeChat Pay",
    responses=problems(NoticeWrong, *_ASK),
)
async def check_order(order_id: OrderId, caller: Writer, db: Db, deps: PaymentsDep, response: Response) -> OrderOut:
    """Query WeChat Pay now, instead of waiting for its notice or for the schedule that queries every minute."""
    async with db.transaction() as tx:
        order = await service.get_order(tx, caller, order_id)
    _ = deps.wechatpay
    return _shown(response, deps, await checking.check(db, deps, order))


@admin_router.post(
    "/{order_id}/refund",
    response_model=OrderOut,
    summary="Refund an order",
    responses=problems(OrderNotPaid, *_ASK),
)
async def refund_order(
    order_id: OrderId, body: RefundIn, caller: Admin, db: Db, deps: PaymentsDep, response: Response
) -> OrderOut:
    """Refund the whole payment. Its remaining units are revoked, and the subscription's last period ends. Idempotent.
    The state is `REFUNDING` until WeChat Pay confirms the refund."""
    async with db.transaction() as tx:
        order = await refunding.begin_refund(tx, caller, deps, order_id, reason=body.reason)
    return _shown(response, deps, await refunding.send_refund(db, deps, caller, order))


@admin_router.post(
    "/{order_id}/resolve",
    response_model=OrderOut,
    summary="Resolve an order's problem",
    responses=problems(OrderNotFound),
)
async def resolve_order_problem(
    order_id: OrderId, body: ResolveIn, caller: Admin, db: Db, deps: PaymentsDep, response: Response
) -> OrderOut:
    """Mark the order's `problem` as resolved, which ends its alarm. Nothing else changes. If the problem persists, it
    is recorded again with WeChat Pay's next message."""
    async with db.transaction() as tx:
        return _shown(response, deps, await service.resolve_problem(tx, caller, order_id, reason=body.reason))


def _shown(response: Response, payments: Payments, order: Order) -> OrderOut:
    response.headers["ETag"] = etag(order.version)
    return OrderOut.of(order, payments.maybe_wechatpay)
