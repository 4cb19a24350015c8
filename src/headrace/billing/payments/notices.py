"""Notices of WeChat Pay: verified, decrypted and parsed.

The signature's time must be near ours: a recorded notice is refused when it is replayed later. An immediate replay
changes nothing, because the order's state decides (``settlement``).
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
    """Verify and parse a notice. ``NoticeForged``, ``NoticeUnreadable``."""
    stamp = headers.get("wechatpay-timestamp", "")
    if not stamp.isdecimal() or len(stamp) > 12:
        raise NoticeForged
    if abs(int(stamp) - (clock.now().timestamp() if now is None else now)) > WINDOW.total_seconds():
        raise NoticeForged("This notice was signed too long ago, or in the future: are the clocks right?")
    if not await wechatpay.keys.verify(headers, body):
        raise NoticeForged
    return _read(wechatpay, body)


def _read(wechatpay: "WeChatPay", body: bytes) -> Trade | Refund:
    from headrace.billing.payments.wechatpay import refund_of, trade_of  # already imported where a WeChatPay exists

    try:
        notice: dict[str, Any] = orjson.loads(body)
        kind = str(notice["event_type"])
        opened = wechatpay.decrypt(notice["resource"])
        if opened is None:
            raise NoticeUnreadable("This notice was not encrypted for this merchant: is the APIv3 key right?")
        message = orjson.loads(opened)
        return refund_of(message) if kind.startswith("REFUND.") else trade_of(message)
    except (KeyError, ValueError, TypeError, AttributeError) as exc:
        raise NoticeUnreadable from exc
