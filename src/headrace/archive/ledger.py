"""The ledger with its archived months: their sums are added to those of the table."""

from collections import Counter
from contextlib import aclosing
from datetime import date

from headrace.archive import archives
from headrace.archive.errors import ArchiveDamaged
from headrace.archive.model import next_month
from headrace.audit import Who
from headrace.billing.store.verification import Sums
from headrace.billing.verifying import Archived, Fault, FaultKind, Verification, verify
from headrace.database import Database
from headrace.storage import Storage, StorageConfig

TABLE = "usage_ledger"


async def verify_ledger(db: Database, who: Who, config: StorageConfig, *, read_archives: bool = True) -> Verification:
    """Verify the ledger; without its archives, those entitlements are left out that ended before they were written."""
    months = sorted(await archives.list_months(db, TABLE))
    if not months:
        return await verify(db, who)
    until = next_month(months[-1])
    if not read_archives:
        return await verify(db, who, Archived(len(months), until, read=False))
    storage = Storage(config)
    gathered = _Gathered()
    damaged: list[Fault] = []
    for month in months:
        try:
            await gathered.read(db, storage, month)
        except ArchiveDamaged as exc:
            damaged.append(Fault(FaultKind.DAMAGED_ARCHIVE, f"{month:%Y-%m}", exc.message))
    # With an unreadable month, rows that it explains cannot be distinguished from faults.
    faults = (*damaged, *gathered.faults)
    return await verify(db, who, Archived(len(months), until, read=not damaged, sums=gathered.sums(), faults=faults))


class _Gathered:
    """Sums over months, a row at a time: an archive may hold millions."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._granted: Counter[str] = Counter()
        self._held: Counter[str] = Counter()
        self._committed: Counter[str] = Counter()

    async def read(self, db: Database, storage: Storage, month: date) -> None:
        open_holds: Counter[str] = Counter()
        async with aclosing(archives.read_month(db, storage, TABLE, month)) as rows:
            async for row in rows:
                entitlement, units = row["entitlement_id"], row["consume_unit"]
                if row["status"] == "HELD":
                    self._held[entitlement] += units
                    open_holds[row["id"]] += units
                elif row["hold_id"] is not None:
                    self._held[entitlement] -= units
                    open_holds[row["hold_id"]] -= units
                    if row["status"] == "COMMITTED":
                        self._committed[entitlement] += units
                else:
                    self._granted[entitlement] += units if row["direction"] == "CREDIT" else -units
        # A month leaves when none of its units can be spent any more: its holds were settled long ago.
        self.faults += [
            Fault(FaultKind.ORPHAN, hold, f"{units:,} units are not settled, in the archive of {month:%Y-%m}.")
            for hold, units in open_holds.items()
            if units
        ]

    def sums(self) -> list[Sums]:
        names = {*self._granted, *self._held, *self._committed}
        return [Sums(each, self._granted[each], self._held[each], self._committed[each]) for each in sorted(names)]
