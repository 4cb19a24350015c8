"""Subscriptions and their state transitions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SubscriptionStatus(StrEnum):
    PENDING = "PENDING"  # ordered, not paid
    ACTIVE = "ACTIVE"
    PAST_DUE = "PAST_DUE"  # its period is over, and its renewal is not paid
    CANCELED = "CANCELED"
    EXPIRED = "EXPIRED"
    REFUNDED = "REFUNDED"


_S = SubscriptionStatus
LIVE = (_S.ACTIVE, _S.PAST_DUE)

# The same as headrace.subscription_may_move; docs/why/states.md draws it.
MOVES: Mapping[SubscriptionStatus, frozenset[SubscriptionStatus]] = {
    _S.PENDING: frozenset({_S.ACTIVE, _S.CANCELED, _S.EXPIRED, _S.REFUNDED}),
    _S.ACTIVE: frozenset({_S.PAST_DUE, _S.CANCELED, _S.EXPIRED, _S.REFUNDED}),
    _S.PAST_DUE: frozenset({_S.ACTIVE, _S.CANCELED, _S.EXPIRED, _S.REFUNDED}),
    _S.CANCELED: frozenset({_S.ACTIVE, _S.REFUNDED}),  # ACTIVE: a late payment arrived
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
        """Whether it is canceled at the end of its period."""
        return self.canceled_at is not None


@dataclass(frozen=True, slots=True)
class RenewalConfig:
    """Rules of renewal and expiry."""

    grace_days: int = 7  # days in PAST_DUE before EXPIRED
    notice_days: int = 3  # days before the end: subscription.expiring is published, and free units are granted ahead
