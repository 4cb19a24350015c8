"""Headrace's own maintenance, as ordinary schedules that ship enabled: their runs are listed like any other's.

This is the one place where they are declared. Their handlers are in every worker, and in ``headrace up``. Each can be
disabled, moved or run by hand; changes stay. A deleted one returns at the next start of a scheduler: disable it
instead.

Detecting dead workers is not among them: it must not need a worker itself.
"""

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import BaseModel

from headrace import ids, logs
from headrace.admin.bulk import execution as bulk
from headrace.archive import retention
from headrace.archive.config import RetentionConfig
from headrace.archive.errors import LedgerFaulty, RetentionIncomplete, TrailFaulty
from headrace.archive.ledger import verify_ledger
from headrace.archive.trail import with_archives
from headrace.assets.expiry import let_go
from headrace.assets.service import Files
from headrace.assets.sweep import sweep
from headrace.audit import Who
from headrace.audit.continuing import verify_regularly
from headrace.audit.heads import KeptHeads
from headrace.billing import maintenance as billing
from headrace.billing.maintenance import BillingJobs
from headrace.database import Database
from headrace.purging import Purge, RowRetention, purge
from headrace.schedules.errors import ScheduleNameTaken
from headrace.schedules.model import ScheduleSpec
from headrace.schedules.service import ensure_schedule
from headrace.storage import StorageConfig
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks

log = logs.get(__name__)

# Apart from the users' tasks: a paused or full queue does not hold it up.
QUEUE = "headrace"
RETAIN = "headrace.retain"
PURGE = "headrace.purge"
VERIFY_LEDGER = "headrace.verify-ledger"
VERIFY_TRAIL = "headrace.verify-trail"
LET_FILES_GO = "headrace.retain-files"
SWEEP_FILES = "headrace.sweep-files"

_NAMES = uuid.UUID("6f0c1d5e-6b1e-4f3c-9d6e-2f4b8a7c9e10")
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('headrace.maintenance', 0))"
_HOUR = 3600


def _retention(table: str, *, at: str, what: str) -> ScheduleSpec:
    return ScheduleSpec(
        name=f"headrace: retention of {table}",
        type=RETAIN,
        cron=at,
        description=what,
        # A month of millions is written to the archive and read back; a run that dies is taken up by the next.
        max_duration_seconds=6 * _HOUR,
        data={"table": table},
    )


# By UTC (S-15).
_MONTHLY = {
    "audit_events": "Archives months of the audit trail that are old enough.",
    "webhook_deliveries": "Archives months of deliveries that are old enough.",
    "usage_ledger": "Archives months of the ledger that are old enough.",
}
_PURGE = ScheduleSpec(
    name="headrace: purge",
    type=PURGE,
    interval=600,
    description="Removes expired answers to idempotency keys, rate limits, failures to log in and sessions, "
    "deleted tasks, and the runs of deleted schedules; notes which locks have expired.",
    max_duration_seconds=_HOUR,
    max_retries=0,  # the next one comes soon
)

_VERIFY_LEDGER = ScheduleSpec(
    name="headrace: verification of the ledger",
    type=VERIFY_LEDGER,
    cron="0 4 * * *",
    description="Reads the whole ledger, its archived months too, and raises an alarm if anything does not add up.",
    max_duration_seconds=6 * _HOUR,
)


_VERIFY_TRAIL = ScheduleSpec(
    name="headrace: verification of the audit trail",
    type=VERIFY_TRAIL,
    cron="0 5 * * *",
    description="Verifies the audit trail from where the last verification ended, and once a week all of it, its "
    "archived months too; raises an alarm if anything was changed.",
    max_duration_seconds=6 * _HOUR,
)
_LET_FILES_GO = ScheduleSpec(
    name="headrace: retention of files",
    type=LET_FILES_GO,
    interval=600,
    description="Deletes expired files and results, removes the bytes of deleted ones, and aborts uploads that were "
    "not completed in time.",
    max_duration_seconds=_HOUR,
    max_retries=0,  # the next one comes soon
)
_SWEEP_FILES = ScheduleSpec(
    name="headrace: sweep of files",
    type=SWEEP_FILES,
    cron="30 3 * * *",
    description="Removes stored bytes without an owner, and finds files whose bytes are missing.",
    max_duration_seconds=6 * _HOUR,
)


def schedules_of(rows: Mapping[str, RowRetention]) -> Sequence[ScheduleSpec]:
    """What ships, given the tables whose rows are deleted."""
    return (
        *(_retention(table, at="0 2 * * *", what=what) for table, what in _MONTHLY.items()),
        *(_retention(rule.table, at=rule.cron, what=rule.description) for rule in rows.values()),
        _PURGE,
        _VERIFY_LEDGER,
        _VERIFY_TRAIL,
        *billing.SCHEDULES,
        _LET_FILES_GO,
        _SWEEP_FILES,
    )


@dataclass(frozen=True, slots=True)
class TrailEvidence:
    """What the trail is verified against. ``head_key`` protects the verified head; None verifies all each time."""

    keys: Collection[bytes] = ()
    heads: KeptHeads | None = None
    head_key: Callable[[], bytes | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What the handlers work with."""

    db: Database
    storage: StorageConfig
    retention: RetentionConfig
    rows: Mapping[str, RowRetention]
    purges: Sequence[Purge]
    files: Callable[[], Files]
    tasks: Callable[[], Tasks]
    billing: BillingJobs = field(default_factory=BillingJobs)
    trail: TrailEvidence = field(default_factory=TrailEvidence)


class Order(BaseModel):
    """The table to maintain."""

    table: str


def with_maintenance(program: Registry, maintenance: Maintenance) -> Registry:
    """The task types of a program, and the product's own."""
    registry = Registry()
    for task_type in program:
        registry.add(task_type)

    @registry.task(RETAIN, queue=QUEUE)
    async def retain(_context: TaskContext, order: Order) -> dict[str, Any]:
        """Delete the expired rows of one table, a batch or a month at a time."""
        done = await retention.retain(
            maintenance.db,
            maintenance.storage,
            maintenance.retention,
            maintenance.rows,
            order.table,
        )
        if done.error:
            raise RetentionIncomplete(f"What should have gone is still there: {done.error}")
        return {"table": done.table_name, "removed_rows": done.removed_rows}

    @registry.task(PURGE, queue=QUEUE)
    async def remove(_context: TaskContext, _payload: Any) -> dict[str, int]:
        """Remove expired rows and files, in small batches."""
        return await purge(maintenance.db, maintenance.purges)

    @registry.task(LET_FILES_GO, queue=QUEUE)
    async def let_files_go(_context: TaskContext, _payload: Any) -> dict[str, int]:
        """Delete expired files."""
        done = await let_go(maintenance.files(), maintenance.db)
        if done.failed:
            raise RetentionIncomplete(f"The bytes of {done.failed} files could not be removed; the log says why.")
        return asdict(done)

    @registry.task(SWEEP_FILES, queue=QUEUE)
    async def sweep_files(_context: TaskContext, _payload: Any) -> dict[str, int]:
        """Remove orphans in both directions."""
        return asdict(await sweep(maintenance.files(), maintenance.db))

    _add_verifications(registry, maintenance)
    bulk.add_handlers(registry, maintenance.db, maintenance.tasks, queue=QUEUE)
    billing.add_handlers(registry, maintenance.db, maintenance.billing, maintenance.tasks, queue=QUEUE)

    return registry


def _add_verifications(registry: Registry, maintenance: Maintenance) -> None:
    @registry.task(VERIFY_LEDGER, queue=QUEUE)
    async def verify(_context: TaskContext, _payload: Any) -> dict[str, int]:
        """Prove that the ledger adds up; it fails where it does not, so that the run is seen to have failed."""
        verification = await verify_ledger(maintenance.db, Who.system(), maintenance.storage)
        if not verification.is_clean:
            raise LedgerFaulty(
                f"{verification.fault_count:,} things do not add up: `headrace ledger verify` names them."
            )
        return {
            "entries": verification.entries,
            "entitlements": verification.entitlements,
            "archived_months": verification.archived_months,
        }

    @registry.task(VERIFY_TRAIL, queue=QUEUE)
    async def verify_audit_trail(_context: TaskContext, _payload: Any) -> dict[str, int]:
        """Verify the audit trail; it fails where something was changed, so that the run is seen to have failed."""
        db, evidence = maintenance.db, maintenance.trail
        against = with_archives(db, maintenance.storage, keys=evidence.keys, heads=evidence.heads)
        verified = await verify_regularly(db, evidence.head_key(), against=against)
        if verified.finding is not None:
            raise TrailFaulty(f"{verified.finding.message} `headrace audit verify --whole` looks at all of it.")
        return {"events": verified.events, "seals": verified.seals, "continued_from": verified.continued_from}


async def ensure_schedules(db: Database, registry: Registry, rows: Mapping[str, RowRetention]) -> None:
    """Create the missing schedules; existing ones stay as they are. Any number of processes may do it at once.

    Their types are declared, too: a run that is due before the first worker has started waits for it.
    """
    async with db.transaction() as tx:
        await declare_types(tx, registry)
    for spec in schedules_of(rows):
        try:
            async with db.transaction() as tx:
                await tx.execute(_ONE_AT_A_TIME)
                await ensure_schedule(tx, Who.system(), uid_of(spec), spec, user_id=ids.SYSTEM_USER)
        except ScheduleNameTaken as exc:
            log.warning("maintenance.not_scheduled", schedule=spec.name, error=exc.code)


def uid_of(spec: ScheduleSpec) -> str:
    """The same in every deployment, so that starting twice makes one."""
    return ids.from_uuid("sch", uuid.uuid5(_NAMES, spec.name))
