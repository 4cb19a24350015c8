"""The route that receives WeChat Pay's notices of payments and refunds.

WeChat Pay does not read problem details (RFC 9457): an empty 204 accepts a notice, any other status with
``{"code": "FAIL"}`` requests it again. It retries for about a day.
"""

from fastapi import Depends, Request, Response

from headrace import logs
from headrace.audit import SYSTEM, ActorType, Who
from headrace.billing.payments import settlement
from headrace.billing.payments.errors import NoticeForged, NoticeWrong
from headrace.billing.payments.model import Refund, Trade
from headrace.billing.payments.notices import read_notice
from headrace.billing.payments.schemas import NoticeOut
from headrace.billing.payments.service import Payments
from headrace.billing.routes.dependencies import PaymentsDep
from headrace.database import Database
from headrace.edge.bodies import body_at_most
from headrace.edge.facts import facts_of
from headrace.edge.problem_details import status_of
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.errors import HeadraceError

log = logs.get(__name__)

_MAX_NOTICE_BYTES = 64 * 1024
_FAILED = {"model": NoticeOut, "description": "Not accepted: send it again."}

router = Router(
    prefix="/v1/payments/wechat", tags=["Payments"], dependencies=[Depends(body_at_most(_MAX_NOTICE_BYTES))]
)


@router.post(
    "/notify",
    status_code=204,
    summary="WeChat Pay's notices",
    responses=dict.fromkeys((400, 401, 403, 404, 409, 503), _FAILED),
)
async def take_wechat_pay_notice(request: Request, db: Db, deps: PaymentsDep) -> Response:
    """For WeChat Pay only: a payment or a refund, signed by it and encrypted for this merchant. Requests of others are
    refused. There is no rate limit, because all notices come from a few addresses."""
    who = facts_of(request).anonymous().acting_as(SYSTEM, ActorType.SYSTEM)
    try:
        notice = await read_notice(deps.wechatpay, request.headers, await request.body())
        await _settle(db, deps, who, notice)
    except HeadraceError as exc:
        # Expected: a forged notice, an order that has not committed yet, a database that is away.
        log.warning("payment.notice_refused", error=exc.code)
        return _failed(exc)
    return Response(status_code=204)


async def _settle(db: Database, payments: Payments, who: Who, notice: Trade | Refund) -> None:
    try:
        if isinstance(notice, Trade):
            await settlement.settle_trade(db, payments, who, notice)
            return
        async with db.transaction() as tx:
            await settlement.settle_refund(tx, who, notice)
    except NoticeWrong as exc:
        await settlement.note_wrong(db, who, notice.order_id, exc)
        raise


def _failed(exc: HeadraceError) -> Response:
    status = 401 if isinstance(exc, NoticeForged) else status_of(exc)
    body = NoticeOut(code="FAIL", message=exc.message).model_dump_json()
    return Response(body, status_code=status, media_type="application/json")
