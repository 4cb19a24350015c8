"""What WeChat Pay sends by itself: read here, and trusted only once its signature is.

The time in the signature must be near ours: a notice that somebody kept is refused when it is sent again later. Sent
again at once it changes nothing, for the order's state decides (``settlement``).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson

from headrace import clock
from headrace.billing.payments.errors import NoticeForged, NoticeUnreadable
from headrace.billing.payments.model import Refund, Trade

if TYPE_CHECKING:
    from headrace.billing.payments.wechatpay import WeChatPay

WINDOW = timedelta(minutes=5)


async def read_notice(
    wechatpay: "WeChatPay", headers: Mapping[str, str], body: bytes, *, now: float | None = None
) -> Trade | Refund:
    """A payment or a refund, as WeChat Pay tells of it. ``NoticeForged``, ``NoticeUnreadable``."""
    stamp = headers.get("wechatpay-timestamp", "")
    if not stamp.isdecimal() or len(stamp) > 12:
        raise NoticeForged
    if abs(int(stamp) - (clock.now().timestamp() if now is None else now)) > WINDOW.total_seconds():
        raise NoticeForged("This notice was signed too long ago, or in the future: are the clocks right?")
    if not await wechatpay.keys.verify(headers, body):
        raise NoticeForged
    return _read(wechatpay, body)


def _read(wechatpay: "WeChatPay", body: bytes) -> Trade | Refund:
    from headrace.billing.payments.wechatpay import refund_of, trade_of  # loaded: there is a WeChatPay

    try:
        notice: dict[str, Any] = orjson.loads(body)
        kind = str(notice["event_type"])
        opened = wechatpay.decrypt(notice["resource"])
        if opened is None:
            raise NoticeUnreadable("This notice was not encrypted for this merchant: is the APIv3 key right?")
        told = orjson.loads(opened)
        return refund_of(told) if kind.startswith("REFUND.") else trade_of(told)
    except (KeyError, ValueError, TypeError, AttributeError) as exc:
        raise NoticeUnreadable from exc
