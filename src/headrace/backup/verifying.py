"""After a restore: the audit trail, with its archived months and heads, and the ledger."""

from headrace.archive.ledger import verify_ledger
from headrace.archive.trail import with_archives
from headrace.audit import Who
from headrace.audit import verifying as audit_verifying
from headrace.audit.heads import KeptHeads
from headrace.database import Database
from headrace.storage import StorageConfig


async def verify(
    db: Database,
    who: Who,
    archive: StorageConfig,
    *,
    keys: frozenset[bytes],
    heads: KeptHeads | None,
) -> list[str]:
    """What does not hold, a line each; empty if all does."""

    against = with_archives(db, archive, keys=keys, heads=heads)
    trail = await audit_verifying.verify(db, month=None, against=against, report=lambda _done, _total: None)
    findings = [] if trail.finding is None else [f"audit trail: {trail.finding.message}"]
    ledger = await verify_ledger(db, who, archive)
    return findings + [f"ledger: {fault.kind}: {fault.about}: {fault.message}" for fault in ledger.faults]
