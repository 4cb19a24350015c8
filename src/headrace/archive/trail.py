"""The audit trail with its archived months."""

from collections.abc import AsyncGenerator, Collection, Mapping
from datetime import date
from typing import Any

from headrace.archive import archives
from headrace.audit.heads import KeptHeads
from headrace.audit.verifying import VerifyMode
from headrace.database import Database
from headrace.storage import Storage, StorageConfig

_TABLE = "audit_events"


def with_archives(
    db: Database,
    archive: StorageConfig,
    *,
    keys: Collection[bytes],
    heads: KeptHeads | None,
    exported: Mapping[int, bytes] | None = None,
) -> VerifyMode:
    """Verify against this evidence, and read the months that have left the database where they went."""

    def rows(month: date) -> AsyncGenerator[Mapping[str, Any], None]:
        return archives.read_month(db, Storage(archive), _TABLE, month)

    return VerifyMode(
        keys=keys,
        exported=exported or {},
        retired=lambda: archives.list_months(db, _TABLE),
        archive=rows,
        heads=heads,
    )
