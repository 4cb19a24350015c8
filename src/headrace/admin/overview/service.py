"""Reading the overview. Queues and workers are read each time; the doctor's checks cost more, and are shared."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from headrace.admin.doctor import DoctorConfig, Finding, examine
from headrace.admin.overview.model import Overview, ShownSetting, WorkerCounts
from headrace.audit.verifying import VerifyMode
from headrace.database import Database, Tx
from headrace.tasks.queues import list_queues

_CACHE_SECONDS = 20.0

COUNT_WORKERS = """
SELECT count(*) FILTER (WHERE alive) AS alive, count(*) FILTER (WHERE NOT alive) AS silent,
       count(*) FILTER (WHERE alive AND stopping_at IS NOT NULL) AS stopping,
       coalesce(sum(CASE WHEN stopping_at IS NULL THEN greatest(concurrency, running) ELSE running END)
                FILTER (WHERE alive), 0) AS slots,
       coalesce(sum(running) FILTER (WHERE alive), 0) AS running
FROM (
  SELECT *, heartbeat_at + lease >= now() AS alive FROM headrace.workers WHERE ended_at IS NULL
) AS worker
"""


async def count_workers(tx: Tx) -> WorkerCounts:
    row = await tx.fetchrow(COUNT_WORKERS)
    assert row is not None
    return WorkerCounts(**row)


class CachedFindings:
    """The doctor's recent findings: the number of viewers does not change how often the database is examined."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._known: tuple[float, datetime, Sequence[Finding]] | None = None

    async def read(self, db: Database, config: DoctorConfig) -> tuple[datetime, Sequence[Finding]]:
        async with self._lock:
            if self._known is None or time.monotonic() - self._known[0] > _CACHE_SECONDS:
                findings = await examine(db, config)
                at: datetime = (await db.fetch_alone("SELECT now()"))[0][0]
                self._known = (time.monotonic(), at, findings)
            return self._known[1:]


@dataclass(frozen=True, slots=True)
class Operators:
    """What operators' routes work with; the wiring makes it once."""

    doctor: DoctorConfig = field(default_factory=DoctorConfig)
    settings: Sequence[ShownSetting] = ()
    trail: VerifyMode = field(default_factory=VerifyMode)
    findings: CachedFindings = field(default_factory=CachedFindings)
    verifying: asyncio.Lock = field(default_factory=asyncio.Lock)  # one verification of the whole trail at a time


async def read_overview(db: Database, operators: Operators) -> Overview:
    """Everything at a glance; a few milliseconds, whatever is in the tables."""
    findings_at, findings = await operators.findings.read(db, operators.doctor)
    async with db.transaction(readonly=True) as tx:
        now: datetime = await tx.fetchval("SELECT now()")
        return Overview(now, await list_queues(tx), await count_workers(tx), findings, findings_at)
