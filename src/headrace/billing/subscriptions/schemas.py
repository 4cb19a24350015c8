"""Response bodies of subscriptions."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from headrace.billing.subscriptions.model import Subscription, SubscriptionStatus

_AT = "2026-03-01T08:00:00Z"
SUBSCRIPTION_ID = "sub_01h455vb4pex5vsknk084sn02q"


class SubscriptionOut(BaseModel):
    """A subscription."""

    id: str = Field(examples=[SUBSCRIPTION_ID])
    user_id: str = Field(examples=["u_01h455vb4pex5vsknk084sn02q"])
    plan_id: str = Field(examples=["pln_01h455vb4pex5vsknk084sn02q"])
    status: SubscriptionStatus = Field(
        description="`PENDING` until it is paid for; `PAST_DUE` when its period is over and its renewal is unpaid."
    )
    started_at: datetime | None = Field(description="When it was first paid.", examples=[_AT])
    effective_at: datetime | None = Field(description="The start of its uninterrupted time.", examples=[_AT])
    expire_at: datetime | None = Field(description="The end of the paid time.", examples=[_AT])
    canceled_at: datetime | None = Field(
        description="When it was canceled; an `ACTIVE` one still lasts to `expire_at`."
    )
    auto_renew: bool = Field(
        description="Whether it waits for its renewal when its period is over. Nothing is charged automatically."
    )
    version: int = Field(description="The `ETag`: send it as `If-Match` to change only this version.")
    created_at: datetime = Field(examples=[_AT])
    updated_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, subscription: Subscription) -> Self:
        return cls.model_validate({name: getattr(subscription, name) for name in cls.model_fields})
