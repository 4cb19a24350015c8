"""Request and response bodies of orders."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from headrace.billing.payments.model import Order, OrderKind, OrderStatus, PayMethod
from headrace.billing.subscriptions.model import Subscription
from headrace.billing.subscriptions.schemas import SUBSCRIPTION_ID, SubscriptionOut
from headrace.edge.text import Text

if TYPE_CHECKING:
    from headrace.billing.payments.wechatpay import WeChatPay

_AT = "2026-03-01T08:00:00Z"
ORDER_ID = "ord_01h455vb4pex5vsknk084sn02q"

Method = Annotated[
    PayMethod,
    Field(description="`NATIVE`: scan a code. `JSAPI`: in a mini-program, for users logged in with WeChat."),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SubscribeIn(_Body):
    plan: Annotated[
        Text, Field(min_length=1, max_length=64, description="The plan's id, or its name.", examples=["Pro"])
    ]
    method: Method = PayMethod.NATIVE
    auto_renew: Annotated[
        bool,
        Field(
            description="Whether the subscription waits for its renewal when its period is over. Nothing is charged "
            "automatically: the renewal is an order to pay as well."
        ),
    ] = True


class RenewSubscriptionIn(_Body):
    method: Method = PayMethod.NATIVE


class RefundIn(_Body):
    reason: Annotated[
        Text, Field(min_length=1, max_length=80, pattern=r"\S", description="Shown to the payer by WeChat.")
    ]


class ResolveIn(_Body):
    reason: Annotated[
        Text,
        Field(
            min_length=1, max_length=500, pattern=r"\S", description="The findings and the action, for the audit trail."
        ),
    ]


class JsapiOut(BaseModel):
    """The arguments of `wx.requestPayment` in a mini-program (`WeixinJSBridge` in an official account)."""

    appId: str  # noqa: N815 - WeChat's own names
    timeStamp: str  # noqa: N815
    nonceStr: str  # noqa: N815
    package: str
    signType: str  # noqa: N815
    paySign: str  # noqa: N815


class OrderOut(BaseModel):
    """An order: the payment for one period of a plan."""

    id: str = Field(description="Also the order number at WeChat Pay.", examples=[ORDER_ID])
    user_id: str = Field(examples=["u_01h455vb4pex5vsknk084sn02q"])
    plan_id: str = Field(examples=["pln_01h455vb4pex5vsknk084sn02q"])
    subscription_id: str = Field(examples=[SUBSCRIPTION_ID])
    entitlement_id: str | None = Field(description="The entitlement that it bought.")
    kind: OrderKind
    method: PayMethod
    status: OrderStatus
    description: str = Field(examples=["Pro"])
    amount_cents: int = Field(examples=[2900])
    currency: str = Field(examples=["CNY"])
    units: int = Field(description="The units that it buys.", examples=[500])
    code_url: str | None = Field(
        description="The content of the QR code of a `NATIVE` order; `…/qr.png` is its image.",
        examples=["weixin://wxpay/bizpayurl?pr=p4lpSuKzz"],
    )
    jsapi: JsapiOut | None = Field(description="How to pay a `JSAPI` order that waits to be paid.")
    transaction_id: str | None = Field(description="WeChat Pay's own number of the payment.")
    refund_id: str | None
    problem: str | None = Field(description="Set when an operator must resolve the order.")
    expires_at: datetime = Field(description="The end of the time to pay.", examples=[_AT])
    paid_at: datetime | None
    refunded_at: datetime | None
    version: int
    created_at: datetime = Field(examples=[_AT])
    updated_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, order: Order, wechatpay: "WeChatPay | None" = None) -> Self:
        """With ``wechatpay``, the parameters of a JSAPI order are signed again."""
        payable = order.status is OrderStatus.PENDING and order.prepay_id is not None
        jsapi = wechatpay.jsapi_parameters(order.prepay_id) if payable and wechatpay and order.prepay_id else None
        return cls.model_validate({**{name: getattr(order, name) for name in _SAME}, "jsapi": jsapi})


_SAME = tuple(name for name in OrderOut.model_fields if name != "jsapi")


class OrderedPlanOut(BaseModel):
    """A subscription and its unpaid order."""

    subscription: SubscriptionOut
    order: OrderOut

    @classmethod
    def of(cls, subscription: Subscription, order: Order) -> Self:
        return cls(subscription=SubscriptionOut.of(subscription), order=OrderOut.of(order))


class NoticeOut(BaseModel):
    """The answer to a notice that was not accepted: WeChat Pay sends it again later."""

    code: str = Field(examples=["FAIL"])
    message: str = Field(examples=["There is no such order."])
