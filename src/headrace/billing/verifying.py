"""Verifies the ledger: for every entitlement total = left + held + committed, for every hold its settlement, and for
every open hold a task that has not ended.

The database writes both sides in one transaction, so no rule can fail. It is verified every day nevertheless.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from enum import StrEnum

from headrace import audit
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.billing.store import verification as store
from headrace.billing.store.verification import Sums
from headrace.database import Database, Row, Tx

_SHOWN = 100


class FaultKind(StrEnum):
    QUOTA_UNEXPLAINED = "quota_unexplained"
    SETTLED_IN_PART = "settled_in_part"
    ORPHAN = "orphan"
    WRONG_HOLD = "wrong_hold"
    DAMAGED_ARCHIVE = "damaged_archive"


@dataclass(frozen=True, slots=True)
class Fault:
    """One inconsistency; ``about`` is an entitlement, a hold, a task or an archived month."""

    kind: FaultKind
    about: str
    message: str


@dataclass(frozen=True, slots=True)
class Archived:
    """Sums of the archived months; ``until`` is the first day after the last of them."""

    months: int = 0
    until: date | None = None
    read: bool = True
    sums: Sequence[Sums] = ()
    faults: Sequence[Fault] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of one verification."""

    started_at: datetime
    finished_at: datetime
    entries: int
    entitlements: int
    archived_months: int  # that were read as well
    fault_count: int
    faults: tuple[Fault, ...]  # the first hundred

    @property
    def is_clean(self) -> bool:
        return self.fault_count == 0


_NO_ARCHIVES = Archived()


async def verify(db: Database, who: Who, archived: Archived = _NO_ARCHIVES) -> Verification:
    """Verify the whole ledger in one snapshot, and store the result for ``doctor`` and ``/metrics``; audited."""
    async with db.transaction(isolation="repeatable_read", readonly=True) as tx:
        started_at: datetime = await tx.fetchval("SELECT clock_timestamp()")
        await tx.execute(store.PREPARE)
        counts = await tx.fetchrow(store.COUNT)
        assert counts is not None
        faults = [*archived.faults, *await _find_faults(tx, archived)]
    async with db.transaction() as tx:
        await store.note(
            tx,
            started_at=started_at,
            entries=counts["entries"],
            entitlements=counts["entitlements"],
            archived_months=archived.months if archived.read else 0,
            count=len(faults),
            faults=[asdict(fault) for fault in faults[:_SHOWN]],
        )
        data = {"entries": str(counts["entries"]), "faults": str(len(faults))}
        await audit.record(tx, who, Action.READ, Resource(ResourceType.LEDGER, "*"), data=data)
        found = await find_last(tx)
    assert found is not None
    return found


async def find_last(tx: Tx) -> Verification | None:
    """The result of the last verification; None before the first."""
    row = await store.find_last(tx)
    if row is None:
        return None
    faults = tuple(Fault(FaultKind(each["kind"]), each["about"], each["message"]) for each in row["faults"])
    return Verification(**{**dict(row), "faults": faults})


async def _find_faults(tx: Tx, archived: Archived) -> list[Fault]:
    since = None if archived.read else archived.until
    unexplained = await store.unexplained_entitlements(tx, archived.sums, since=since)
    return [*map(_unexplained, unexplained), *map(_faulty, await store.faulty_holds(tx))]


def _unexplained(row: Row) -> Fault:
    if row["id"] is None:
        about = row["of_entry"] or "no entitlement"
        return Fault(
            FaultKind.QUOTA_UNEXPLAINED, about, "The ledger has entries for an entitlement that does not exist."
        )
    left = row["granted"] - row["held"] - row["committed"]
    return Fault(
        FaultKind.QUOTA_UNEXPLAINED,
        row["id"],
        f"By the ledger {row['granted']:,} units were granted, {row['held']:,} are held and {row['committed']:,} used: "
        f"{left:,} are left; the entitlement says {row['quota_left']:,} of {row['quota_total']:,}.",
    )


def _faulty(row: Row) -> Fault:
    kind = FaultKind(row["fault"])
    match kind:
        case FaultKind.SETTLED_IN_PART:
            message = f"{row['held']:,} units were held and {row['settled']:,} settled."
        case FaultKind.ORPHAN:
            message = f"{row['held']:,} units are held for {row['task_id']}, which has ended ({row['status']})."
        case _:
            message = f"The task costs {row['settled']:,} units, and {row['held']:,} are held for it."
    return Fault(kind, row["hold_id"] or row["task_id"], message)
