"""How long each table keeps what, and letting go of what is older.

Each function is one run over one table: safe to start in many processes at once, and to kill at any moment; the next
run goes on where the last one stopped. What it did stands in ``headrace.retention_runs``.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

from headrace import logs
from headrace.audit import Who
from headrace.database import Database, DatabaseConfig
from headrace.errors import HeadraceError
from headrace.operations import store
from headrace.operations.config import LockConfig, RetentionConfig
from headrace.operations.errors import RetiredElsewhere
from headrace.operations.model import (
    ArchiveState,
    MonthKept,
    MonthlyTable,
    Retention,
    Retired,
    monthly,
    next_month,
    starts,
)
from headrace.operations.retiring import Step, retire_month
from headrace.storage import Storage, StorageConfig

log = logs.get(__name__)

_BATCH = 1000
_MOST_OPEN = 1000


# -- whole months


async def retire_expired(
    db: Database,
    owner: DatabaseConfig,
    storage: StorageConfig,
    table_name: str,
    keep: timedelta | None,
    *,
    who: Who | None = None,
    now: datetime | None = None,
    lock: LockConfig | None = None,
    on_step: Step | None = None,
) -> Retention:
    """Retire every month of the table that ended longer than ``keep`` ago, and whatever an earlier run left half done.

    A month that cannot go is reported in ``kept`` and does not keep the others from going.
    """
    table = monthly(table_name)
    async with db.transaction() as tx:
        await store.start_run(tx, table.name, now=now)
    retired: list[Retired] = []
    kept: list[MonthKept] = []
    for month in await due_months(db, table, keep, now=now):
        if on_step is not None:
            on_step(f"retiring {table.partition(month)}")
        try:
            gone = await retire_month(owner, Storage(storage), table.name, month, who=who or Who.system(), lock=lock)
        except RetiredElsewhere as exc:
            kept.append(MonthKept(table.name, month, exc.message))
            break
        except HeadraceError as exc:
            log.warning("retention.kept", partition=table.partition(month), error=exc.code)
            kept.append(MonthKept(table.name, month, exc.message))
        else:
            retired.append(gone)
    run = Retention(table.name, sum(gone.archive.row_count or 0 for gone in retired), tuple(retired), tuple(kept))
    async with db.transaction() as tx:
        await store.finish_run(tx, run)
    return run


async def due_months(
    db: Database, table: MonthlyTable, keep: timedelta | None, *, now: datetime | None = None
) -> list[date]:
    """Months that should be gone, the oldest first."""
    async with db.transaction(readonly=True) as tx:
        open_ = await store.list_archives(
            tx, table=table.name, states=[ArchiveState.DETACHED, ArchiveState.ARCHIVED], limit=_MOST_OPEN
        )
        partitions = await store.list_partitions(tx)
    due = {archive.period for archive in open_}
    if keep is not None:
        line = (now or datetime.now(UTC)) - keep
        due |= {
            partition.period
            for partition in partitions
            if partition.table_name == table.name and partition.attached and partition.period is not None
            if starts(next_month(partition.period)) <= line
        }
    return sorted(due)


# -- single rows, a batch at a time

# $1 is the cut, $2 the size of a batch. Rows that another process has in its hands are left to it.
THIN: Mapping[str, str] = {
    # The last run of a schedule stays, however old: what became of it is what is asked about.
    "task_executions": """
DELETE FROM headrace.task_executions WHERE id IN (
  SELECT id FROM headrace.task_executions AS run
  WHERE created_at < $1 AND finished_at < $1 AND EXISTS (
    SELECT FROM headrace.task_executions AS later
    WHERE later.task_uid = run.task_uid
      AND (later.scheduled_at, later.execution_uid) > (run.scheduled_at, run.execution_uid)
    OFFSET 0  -- looked up row by row, by the index of lists
  )
  ORDER BY created_at LIMIT $2 FOR UPDATE OF run SKIP LOCKED
)
""",
    "task_locks": """
DELETE FROM headrace.task_locks WHERE id IN (
  SELECT id FROM headrace.task_locks
  WHERE expires_at < $1 AND state <> 'active' AND coalesce(released_at, expires_at) < $1
  ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
""",
    "outbox_events": """
DELETE FROM headrace.outbox_events WHERE id IN (
  SELECT id FROM headrace.outbox_events
  WHERE created_at < $1 AND status IN ('PUBLISHED', 'DEAD')
  ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
)
""",
}


async def thin(
    db: Database, table_name: str, keep: timedelta | None, *, now: datetime | None = None, batch: int = _BATCH
) -> Retention:
    """Delete the table's finished rows that are older than ``keep``, in batches that nobody has to wait for."""
    statement = THIN[table_name]
    removed = 0
    async with db.transaction() as tx:
        await store.start_run(tx, table_name, now=now)
        line = None if keep is None else (now or await tx.fetchval("SELECT now()")) - keep
    while line is not None:
        async with db.transaction() as tx:
            gone = await tx.count(statement, line, batch)
            await store.count_removed(tx, table_name, gone)
        removed += gone
        if gone < batch:
            break
    run = Retention(table_name, removed)
    async with db.transaction() as tx:
        await store.finish_run(tx, run)
    return run


async def retain(
    db: Database,
    owner: DatabaseConfig,
    storage: StorageConfig,
    config: RetentionConfig,
    table_name: str,
    *,
    who: Who | None = None,
    now: datetime | None = None,
    on_step: Step | None = None,
) -> Retention:
    """One run of retention over one table, whichever way it lets go of what is old."""
    keep = config.keep(table_name)
    if table_name in THIN:
        return await thin(db, table_name, keep, now=now)
    return await retire_expired(db, owner, storage, table_name, keep, who=who, now=now, on_step=on_step)
