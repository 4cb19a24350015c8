"""Request and response bodies of entitlements and the ledger."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from headrace.billing.adjusting import MAX_ADJUSTMENT_UNITS, Adjusted
from headrace.billing.model import (
    Balance,
    Direction,
    Entitlement,
    EntitlementStatus,
    Entry,
    EntryStatus,
    Source,
    UsedDay,
)
from headrace.billing.verifying import FaultKind, Verification
from headrace.edge.text import Text

ENTITLEMENT_ID = "ent_01h455vb4pex5vsknk084sn02q"
_AT = "2026-06-01T12:00:00Z"


class EntitlementOut(BaseModel):
    """Units that may be used in a period."""

    id: str = Field(examples=[ENTITLEMENT_ID])
    user_id: str = Field(examples=["u_01h455vb4pex5vsknk084sn02q"])
    plan_id: str = Field(examples=["pln_01h455vb4pex5vsknk084sn02q"])
    subscription_id: str | None = Field(description="The subscription that granted it; null if it was not bought.")
    quota_total: int = Field(examples=[100])
    quota_left: int = Field(description="Units that are neither held nor used.", examples=[42])
    period_start: datetime = Field(examples=[_AT])
    period_end: datetime = Field(examples=["2026-07-01T12:00:00Z"])
    status: EntitlementStatus
    created_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, entitlement: Entitlement) -> Self:
        return cls.model_validate(entitlement, from_attributes=True)


class EntryOut(BaseModel):
    """One entry of the ledger: units granted, held for a task, used by it or released."""

    id: str = Field(examples=["led_01h455vb4pex5vsknk084sn02q"])
    user_id: str = Field(examples=["u_01h455vb4pex5vsknk084sn02q"])
    task_id: str | None = Field(description="The task that holds or used the units; null for a grant.")
    entitlement_id: str | None = Field(examples=[ENTITLEMENT_ID])
    hold_id: str | None = Field(description="The `HELD` entry that this one settles.")
    units: int = Field(examples=[3])
    direction: Direction = Field(description="`DEBIT` takes from the quota, `CREDIT` gives.")
    status: EntryStatus = Field(
        description="`HELD` when a task is created, then `COMMITTED` (used), `RELEASED`, or both in part."
    )
    source: Source = Field(description="What caused it.")
    remark: str | None = Field(description="The reason of an adjustment.")
    task_title: str | None = Field(
        default=None, description="In lists, the task's title: of a removal, the file's name."
    )
    created_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, entry: Entry, *, titles: Mapping[str, str] | None = None) -> Self:
        fields = {name: getattr(entry, name) for name in cls.model_fields if name not in ("units", "task_title")}
        title = (titles or {}).get(entry.task_id or "")
        return cls(**fields, units=entry.consume_unit, task_title=title)


class BalanceOut(BaseModel):
    """The units that can be used now."""

    total: int = Field(description="Units granted for the present periods.", examples=[100])
    left: int = Field(examples=[42])
    held: int = Field(description="Units held by tasks that have not ended.", examples=[3])
    renews_at: datetime | None = Field(description="When the first of these periods ends.", examples=[_AT])

    @classmethod
    def of(cls, balance: Balance) -> Self:
        return cls.model_validate(balance, from_attributes=True)


class UsedDayOut(BaseModel):
    """One day (UTC)."""

    day: date = Field(examples=["2026-06-01"])
    used: int = Field(description="Units that were charged.", examples=[12])
    released: int = Field(description="Units that were held and released.", examples=[3])
    tasks: int = Field(description="Tasks that were charged.", examples=[4])

    @classmethod
    def of(cls, used: UsedDay) -> Self:
        return cls.model_validate(used, from_attributes=True)


class UsedDaysOut(BaseModel):
    """Every day of the requested range, including those without usage."""

    days: list[UsedDayOut]


class AdjustIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    units: Annotated[
        int,
        Field(
            ge=-MAX_ADJUSTMENT_UNITS,
            le=MAX_ADJUSTMENT_UNITS,
            description="Units to add, or negative to remove; not 0.",
            examples=[10],
        ),
    ]
    reason: Annotated[
        Text,
        Field(
            min_length=1,
            max_length=500,
            description="The reason. It stays in the ledger permanently: name no people.",
            examples=["The outage of Monday"],
        ),
    ]


class AdjustedOut(BaseModel):
    """An entitlement after an adjustment, and the entry that explains it."""

    entitlement: EntitlementOut
    entry: EntryOut

    @classmethod
    def of(cls, adjusted: Adjusted) -> Self:
        return cls(entitlement=EntitlementOut.of(adjusted.entitlement), entry=EntryOut.of(adjusted.entry))


class FaultOut(BaseModel):
    """An inconsistency of the ledger."""

    kind: FaultKind
    about: str = Field(description="An entitlement, a hold, a task or an archived month.", examples=[ENTITLEMENT_ID])
    message: str


class VerificationOut(BaseModel):
    """The result of verifying the whole ledger."""

    started_at: datetime = Field(examples=[_AT])
    finished_at: datetime = Field(examples=[_AT])
    entries: int = Field(examples=[2_000_000])
    entitlements: int = Field(examples=[1000])
    archived_months: int = Field(description="Archived months that were read as well.", examples=[0])
    fault_count: int = Field(examples=[0])
    faults: list[FaultOut] = Field(description="The first hundred faults.")

    @classmethod
    def of(cls, found: Verification) -> Self:
        return cls.model_validate(found, from_attributes=True)
