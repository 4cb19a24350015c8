"""Where WeChat Pay tells of payments and refunds.

It knows no problems (RFC 9457): an empty 204 says that a notice was taken, any other status with ``{"code": "FAIL"}``
that it is to be sent again. It tries for about a day.
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

_LONGEST_NOTICE = 64 * 1024
_FAILED = {"model": NoticeOut, "description": "Not taken: it is to be sent again."}

router = Router(prefix="/v1/payments/wechat", tags=["Payments"], dependencies=[Depends(body_at_most(_LONGEST_NOTICE))])


@router.post(
    "/notify",
    status_code=204,
    summary="WeChat Pay's notices",
    responses=dict.fromkeys((400, 401, 403, 404, 409, 503), _FAILED),
)
async def take_wechat_pay_notice(request: Request, db: Db, deps: PaymentsDep) -> Response:
    """For WeChat Pay alone: a payment or a refund, signed by it and encrypted for this merchant. Nobody else can say
    anything here. It is not counted against a rate limit, for all notices come from a few addresses."""
    who = facts_of(request).anonymous().acting_as(SYSTEM, ActorType.SYSTEM)
    try:
        told = await read_notice(deps.wechatpay, request.headers, await request.body())
        await _settle(db, deps, who, told)
    except HeadraceError as exc:
        # Foreseen: a forged one, an order that is not there yet, a database that is not there just now.
        log.warning("payment.notice_refused", error=exc.code)
        return _failed(exc)
    return Response(status_code=204)


async def _settle(db: Database, payments: Payments, who: Who, told: Trade | Refund) -> None:
    try:
        if isinstance(told, Trade):
            await settlement.settle_trade(db, payments, who, told)
            return
        async with db.transaction() as tx:
            await settlement.settle_refund(tx, who, told)
    except NoticeWrong as exc:
        await settlement.note_wrong(db, who, told.order_id, exc)
        raise


def _failed(exc: HeadraceError) -> Response:
    status = 401 if isinstance(exc, NoticeForged) else status_of(exc)
    body = NoticeOut(code="FAIL", message=exc.message).model_dump_json()
    return Response(body, status_code=status, media_type="application/json")
