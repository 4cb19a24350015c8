"""Tables that are kept by months, the months, and where they go."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Protocol

from headrace.archive.errors import NotMonthly


class Archived(Protocol):
    """A table whose rows are written to files: ``key`` orders them, ``id_column`` is what people know them by."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> tuple[str, ...]: ...
    @property
    def id_column(self) -> str: ...


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table whose rows leave a batch at a time."""

    name: str
    key: tuple[str, ...]
    id_column: str


@dataclass(frozen=True, slots=True)
class MonthlyTable:
    """A table with a partition for each month, which leaves as a whole.

    ``key`` orders a month's rows, and an index serves it. headrace.why_month_stays says why a month stays.
    """

    name: str
    key: tuple[str, ...]
    id_column: str

    def partition(self, month: date) -> str:
        return f"{self.name}{month:_y%Ym%m}"


MONTHLY: Mapping[str, MonthlyTable] = {
    table.name: table
    for table in (
        # In the order in which it is sealed.
        MonthlyTable("audit_events", key=("seq", "id"), id_column="id"),
        MonthlyTable("usage_ledger", key=("id",), id_column="id"),
        MonthlyTable("webhook_deliveries", key=("id",), id_column="delivery_id"),
    )
}


def monthly(name: str) -> MonthlyTable:
    try:
        return MONTHLY[name]
    except KeyError:
        raise NotMonthly(f"{name} is not kept by months; these are: {', '.join(MONTHLY)}.") from None


def next_month(month: date) -> date:
    return (month.replace(day=1) + timedelta(days=32)).replace(day=1)


def starts(month: date) -> datetime:
    """The month's first instant. Months are UTC's."""
    return datetime(month.year, month.month, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Minimum:
    """How long months of a table stay at least, from their end; None keeps them for ever."""

    table_name: str
    setting: str  # of `headrace migrate`
    keep: timedelta | None

    def is_longer_than(self, keep: timedelta | None) -> bool:
        return keep is not None and (self.keep is None or self.keep > keep)

    @property
    def shown(self) -> str:
        return shown_keep(self.keep)


def shown_keep(keep: timedelta | None) -> str:
    return "forever" if keep is None else str(keep).removesuffix(", 0:00:00")


class ArchiveState(StrEnum):
    DETACHED = "DETACHED"
    ARCHIVED = "ARCHIVED"
    DROPPED = "DROPPED"


@dataclass(frozen=True, slots=True)
class Archive:
    """A month on its way out, or gone: the summary that stays online."""

    id: str
    table_name: str
    period: date
    state: ArchiveState
    location: str | None
    row_count: int | None
    min_id: str | None
    max_id: str | None
    min_at: datetime | None
    max_at: datetime | None
    size_bytes: int | None
    sha256: str | None
    detached_at: datetime
    archived_at: datetime | None
    verified_at: datetime | None
    dropped_at: datetime | None
    restored_as: str | None

    @property
    def name(self) -> str:
        """The name that its partition had."""
        return monthly(self.table_name).partition(self.period)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a written file holds."""

    row_count: int
    min_id: str | None
    max_id: str | None
    min_at: datetime | None
    max_at: datetime | None
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Partition:
    """A month of a table as it stands in the database; ``period`` is None for the one that takes what fits nowhere."""

    table_name: str
    name: str
    period: date | None
    attached: bool
    size_bytes: int
    live_rows: int  # as PostgreSQL estimates them
    dead_rows: int


@dataclass(frozen=True, slots=True)
class Retired:
    """A month that has gone. ``locked`` is the longest that its table, or one it refers to, was locked."""

    archive: Archive
    locked: timedelta


@dataclass(frozen=True, slots=True)
class MonthKept:
    """A month that should have gone, and why it has not."""

    table_name: str
    period: date
    reason: str


@dataclass(frozen=True, slots=True)
class Retention:
    """The result of one run of retention on one table."""

    table_name: str
    removed_rows: int
    retired: tuple[Retired, ...] = ()
    kept: tuple[MonthKept, ...] = ()
    obstacle: str | None = None  # why rows could not be archived, and so stay

    @property
    def error(self) -> str | None:
        return self.obstacle or "; ".join(f"{month.period:%Y-%m}: {month.reason}" for month in self.kept) or None
