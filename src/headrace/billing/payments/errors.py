"""Errors of payments."""

from headrace.errors import Conflict, Denied, Invalid, NotFound, Unavailable


class PaymentsOff(Denied):
    """WeChat Pay is not set up here (HEADRACE_WECHATPAY_MCH_ID …); a server with --pay-locally has its own page."""

    code = "payments_off"


class WeChatPayUnavailable(Unavailable):
    """WeChat Pay does not answer: try again in a moment, with the same Idempotency-Key."""

    code = "wechat_pay_unavailable"


class WeChatPayMisconfigured(Invalid):
    """The settings of WeChat Pay are wrong."""

    code = "wechat_pay_misconfigured"


class WeChatPayRefused(Conflict):
    """WeChat Pay refuses this."""

    code = "wechat_pay_refused"


class OrderNotFound(NotFound):
    """There is no such order."""

    code = "order_not_found"


class OrderNotPayable(Conflict):
    """This order can no longer be paid."""

    code = "order_not_payable"


class OrderNotPaid(Conflict):
    """There is nothing to refund: this order is not paid."""

    code = "order_not_paid"


class PlanNotForSale(Conflict):
    """This plan cannot be bought."""

    code = "plan_not_for_sale"


class TooManyOrders(Conflict):
    """Too many of your orders wait to be paid: pay one of them, or cancel its subscription."""

    code = "too_many_orders"


class PayerUnknown(Invalid):
    """To pay within WeChat (`JSAPI`), log in with WeChat first; or use `NATIVE` and scan the code."""

    code = "payer_unknown"


class NoticeForged(Denied):
    """This notice has no recent signature of WeChat Pay."""

    code = "notice_forged"


class NoticeUnreadable(Invalid):
    """This notice cannot be read."""

    code = "notice_unreadable"


class NoticeWrong(Invalid):
    """This notice contradicts its order."""

    code = "notice_wrong"
