"""The retention of each table, and the deletion of older rows.

Each function is one run over one table: safe to start in many processes at once, and to kill at any moment; the next
run continues where the last one stopped. Its result is in ``headrace.retention_runs``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from headrace import clock, logs
from headrace.archive import store
from headrace.archive.config import LockConfig, RetentionConfig
from headrace.archive.errors import RetiredElsewhere
from headrace.archive.model import (
    ArchiveState,
    MonthKept,
    MonthlyTable,
    Retention,
    Retired,
    monthly,
    next_month,
    starts,
)
from headrace.archive.retiring import Step, retire_month
from headrace.archive.row_archives import archive_rows
from headrace.audit import Who
from headrace.database import Database, Tx
from headrace.errors import HeadraceError
from headrace.purging import BATCH, Keeps, RowRetention
from headrace.storage import Storage, StorageConfig

log = logs.get(__name__)

_MAX_OPEN = 1000


# -- whole months


async def retire_expired(
    db: Database,
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
            gone = await retire_month(
                db.config, Storage(storage), table.name, month, who=who or Who.system(), lock=lock
            )
        except RetiredElsewhere as exc:
            kept.append(MonthKept(table.name, month, exc.message))
            break
        except HeadraceError as exc:
            log.warning("retention.kept", partition=table.partition(month), error=exc.code)
            kept.append(MonthKept(table.name, month, exc.operator_message))
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
            tx, table=table.name, states=[ArchiveState.DETACHED, ArchiveState.ARCHIVED], limit=_MAX_OPEN
        )
        partitions = await store.list_partitions(tx)
    due = {archive.period for archive in open_}
    if keep is not None:
        line = (now or clock.now()) - keep
        due |= {
            partition.period
            for partition in partitions
            if partition.table_name == table.name and partition.attached and partition.period is not None
            if starts(next_month(partition.period)) <= line
        }
    return sorted(due)


# -- single rows, a batch at a time


async def purge_rows(
    db: Database,
    rule: RowRetention,
    keep: timedelta | None,
    *,
    archive: StorageConfig | None = None,
    now: datetime | None = None,
    batch: int = BATCH,
    on_step: Step | None = None,
) -> Retention:
    """Delete the table's finished rows that are older than ``keep``, in batches that block no other transaction for
    long; with an ``archive``, they are written to it first."""
    table_name = rule.table
    removed = 0
    async with db.transaction() as tx:
        await store.start_run(tx, table_name, now=now)
        line = None if keep is None else (now or await tx.fetchval("SELECT now()")) - keep
    if archive is not None and line is not None:
        run = await _archive_and_purge(db, rule, line, archive, on_step)
        async with db.transaction() as tx:
            await store.finish_run(tx, run)
        return run
    while line is not None:
        async with db.transaction() as tx:
            gone = await tx.count(rule.delete, line, batch)
            await store.count_removed(tx, table_name, gone)
        removed += gone
        _report(on_step, table_name, removed)
        if gone == 0:  # a batch may leave some out, and yet there may be more behind them
            break
    run = Retention(table_name, removed)
    async with db.transaction() as tx:
        await store.finish_run(tx, run)
    return run


@dataclass(slots=True)
class _Journal:
    """What a walk has removed, kept in the row of its table."""

    table: str
    now: datetime
    marks: dict[str, dict[str, str]]
    on_step: Step | None = None
    removed: int = 0

    async def note(self, tx: Tx, removed: int) -> None:
        self.removed += removed
        await store.count_removed(tx, self.table, removed, marks=self.marks)
        _report(self.on_step, self.table, self.removed)


async def walk_rows(
    db: Database, rule: RowRetention, keeps: Keeps, *, now: datetime | None = None, on_step: Step | None = None
) -> Retention:
    """Let a package delete from its own table; batches completed before a kill stay deleted."""
    assert rule.walk is not None
    async with db.transaction() as tx:
        await store.start_run(tx, rule.table, now=now)
        at = now or await tx.fetchval("SELECT now()")
        journal = _Journal(rule.table, at, await store.find_marks(tx, rule.table), on_step)
    await rule.walk(db, keeps, journal)
    run = Retention(rule.table, journal.removed)
    async with db.transaction() as tx:
        await store.finish_run(tx, run)
    return run


def _report(on_step: Step | None, table: str, removed: int) -> None:
    if on_step is not None:
        on_step(f"removing rows of {table}: {removed:,} so far")


async def _archive_and_purge(
    db: Database, rule: RowRetention, line: datetime, archive: StorageConfig, on_step: Step | None
) -> Retention:
    removed, more = 0, True
    try:
        storage = Storage(archive)
        while more:
            gone, more = await archive_rows(db, storage, rule, line)
            removed += gone
            _report(on_step, rule.table, removed)
    except HeadraceError as exc:
        log.warning("retention.kept", table=rule.table, error=exc.code)
        return Retention(rule.table, removed, obstacle=exc.operator_message)
    return Retention(rule.table, removed)


async def retain(
    db: Database,
    storage: StorageConfig,
    config: RetentionConfig,
    rules: Mapping[str, RowRetention],
    table_name: str,
    *,
    who: Who | None = None,
    now: datetime | None = None,
    on_step: Step | None = None,
) -> Retention:
    """One run of retention over one table: rows go by ``rules``, months of the others whole."""
    keep = config.keep(table_name)
    if table_name in rules and rules[table_name].walk is not None:
        return await walk_rows(db, rules[table_name], config.tasks_by_status, now=now, on_step=on_step)
    if table_name in rules:
        archive = storage if table_name in config.archived_rows else None
        return await purge_rows(db, rules[table_name], keep, archive=archive, now=now, on_step=on_step)
    return await retire_expired(db, storage, table_name, keep, who=who, now=now, on_step=on_step)
