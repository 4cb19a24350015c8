"""The ledger: units granted, held, used and released."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum


class EntitlementStatus(StrEnum):
    """Only ACTIVE ones, within their period, are spent. Their holds are settled in any state."""

    ACTIVE = "ACTIVE"
    EXPIRED = "EXPIRED"
    SUSPENDED = "SUSPENDED"


class Direction(StrEnum):
    DEBIT = "DEBIT"
    CREDIT = "CREDIT"


class EntryStatus(StrEnum):
    """HELD opens a hold, COMMITTED and RELEASED settle it. COMMITTED without a hold changes the granted units."""

    HELD = "HELD"
    COMMITTED = "COMMITTED"
    RELEASED = "RELEASED"


class Source(StrEnum):
    TASK_CREATE = "TASK_CREATE"
    TASK_COMPLETE = "TASK_COMPLETE"
    TASK_CANCEL = "TASK_CANCEL"
    TASK_FAIL = "TASK_FAIL"
    MANUAL_ADJUST = "MANUAL_ADJUST"
    SUBSCRIPTION_GRANT = "SUBSCRIPTION_GRANT"


@dataclass(frozen=True, slots=True)
class Entitlement:
    """Units that a user may use in a period."""

    id: str
    user_id: str
    plan_id: str
    subscription_id: str | None
    quota_total: int
    quota_left: int
    period_start: datetime
    period_end: datetime
    status: EntitlementStatus
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the ledger, never changed."""

    id: str
    user_id: str
    task_id: str | None
    entitlement_id: str | None
    hold_id: str | None
    consume_unit: int
    direction: Direction
    status: EntryStatus
    source: Source
    remark: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Balance:
    """The units that a user can spend now."""

    total: int
    left: int
    held: int  # by tasks that have not ended, of any period
    renews_at: datetime | None  # the earliest end of a present period


@dataclass(frozen=True, slots=True)
class UsedDay:
    """Units charged and released on one day (UTC)."""

    day: date
    used: int
    released: int
    tasks: int  # number of charged tasks
