"""A subscription, and the moves that it may make."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SubscriptionStatus(StrEnum):
    PENDING = "PENDING"  # ordered, not paid
    ACTIVE = "ACTIVE"
    PAST_DUE = "PAST_DUE"  # its period is over, and its renewal is waited for
    CANCELED = "CANCELED"
    EXPIRED = "EXPIRED"
    REFUNDED = "REFUNDED"


_S = SubscriptionStatus
LIVE = (_S.ACTIVE, _S.PAST_DUE)

# As headrace.subscription_may_move has it, and docs/why/states.md draws it.
MOVES: Mapping[SubscriptionStatus, frozenset[SubscriptionStatus]] = {
    _S.PENDING: frozenset({_S.ACTIVE, _S.CANCELED, _S.EXPIRED, _S.REFUNDED}),
    _S.ACTIVE: frozenset({_S.PAST_DUE, _S.CANCELED, _S.EXPIRED, _S.REFUNDED}),
    _S.PAST_DUE: frozenset({_S.ACTIVE, _S.CANCELED, _S.EXPIRED, _S.REFUNDED}),
    _S.CANCELED: frozenset({_S.ACTIVE, _S.REFUNDED}),  # ACTIVE: the money came after all
    _S.EXPIRED: frozenset({_S.ACTIVE, _S.REFUNDED}),
    _S.REFUNDED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Subscription:
    """A row of subscriptions."""

    id: str
    user_id: str
    plan_id: str
    status: SubscriptionStatus
    channel: str
    external_order_id: str | None
    started_at: datetime | None
    effective_at: datetime | None
    expire_at: datetime | None
    canceled_at: datetime | None
    auto_renew: bool
    version: int
    created_at: datetime
    updated_at: datetime

    @property
    def is_live(self) -> bool:
        return self.status in LIVE

    @property
    def ends_when_over(self) -> bool:
        """Whether its user has said that it shall not go on."""
        return self.canceled_at is not None


@dataclass(frozen=True, slots=True)
class RenewalConfig:
    """How subscriptions end and go on."""

    grace_days: int = 7  # PAST_DUE for so long, then EXPIRED
    notice_days: int = 3  # so long before the end subscription.expiring is told, and free units are granted ahead
