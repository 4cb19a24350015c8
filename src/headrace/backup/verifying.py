"""After a restore: the audit trail, with its archived months and heads, and the ledger."""

from collections.abc import AsyncGenerator, Mapping
from datetime import date
from typing import Any

from headrace.archive import archives
from headrace.archive.ledger import verify_ledger
from headrace.audit import Who
from headrace.audit import verifying as audit_verifying
from headrace.audit.heads import KeptHeads
from headrace.audit.verifying import VerifyMode
from headrace.database import Database
from headrace.storage import Storage, StorageConfig


async def verify(
    db: Database,
    who: Who,
    archive: StorageConfig,
    *,
    keys: frozenset[bytes],
    heads: KeptHeads | None,
) -> list[str]:
    """What does not hold, a line each; empty if all does."""

    def rows(month: date) -> AsyncGenerator[Mapping[str, Any], None]:
        return archives.read_month(db, Storage(archive), "audit_events", month)

    against = VerifyMode(
        keys=keys,
        exported={},
        retired=lambda: archives.list_months(db, "audit_events"),
        archive=rows,
        heads=heads,
    )
    trail = await audit_verifying.verify(db, month=None, against=against, report=lambda _done, _total: None)
    findings = [] if trail.finding is None else [f"audit trail: {trail.finding.message}"]
    ledger = await verify_ledger(db, who, archive)
    return findings + [f"ledger: {fault.kind}: {fault.about}: {fault.message}" for fault in ledger.faults]
