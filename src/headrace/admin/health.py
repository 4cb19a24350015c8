"""Figures that tell whether the database will still be well in a year."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.archive import store
from headrace.archive.model import Partition
from headrace.audit import seals
from headrace.billing.payments.store import count_problems
from headrace.billing.verifying import Verification, find_last
from headrace.database import Database, Tx
from headrace.outbox.administration import Overview, read_overview
from headrace.webhooks.store import overview as webhooks


@dataclass(frozen=True, slots=True)
class TableHealth:
    """A table with all its partitions, as PostgreSQL estimates it."""

    table_name: str
    live_rows: int
    dead_rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RetentionRun:
    table_name: str
    started_at: datetime
    finished_at: datetime | None
    removed_rows: int
    removed_total: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Health:
    """All of it at one moment."""

    now: datetime
    tables: tuple[TableHealth, ...]
    partitions: tuple[Partition, ...]
    default_rows: dict[str, int]  # counted to a bound: any is too many
    months_ahead: dict[str, int]
    outbox: Overview
    webhooks: webhooks.Overview
    unsealed_for: timedelta | None
    archives: dict[str, int]  # by state
    runs: tuple[RetentionRun, ...]
    ledger: Verification | None  # the last verification of it
    order_problems: dict[str, int]  # orders that need an operator's attention, by problem


# Partitions count for their parent; the parent itself holds nothing.
LIST_TABLES = """
SELECT coalesce(parent.relname, relation.relname) AS table_name,
       sum(coalesce(pg_stat_get_live_tuples(relation.oid), 0))::bigint AS live_rows,
       sum(coalesce(pg_stat_get_dead_tuples(relation.oid), 0))::bigint AS dead_rows,
       sum(pg_total_relation_size(relation.oid))::bigint AS size_bytes
FROM pg_class AS relation
LEFT JOIN pg_inherits ON inhrelid = relation.oid
LEFT JOIN pg_class AS parent ON parent.oid = inhparent
WHERE relation.relnamespace = 'headrace'::regnamespace AND relation.relkind = 'r'
GROUP BY 1 ORDER BY 1
"""


async def list_tables(tx: Tx) -> list[TableHealth]:
    return [TableHealth(**row) for row in await tx.fetch(LIST_TABLES)]


_MANY = 1000
COUNT_ARCHIVES = "SELECT state, count(*) FROM headrace.archives GROUP BY state ORDER BY state"
LIST_RUNS = """
SELECT table_name, started_at, finished_at, removed_rows, removed_total, error
FROM headrace.retention_runs ORDER BY table_name
"""


async def read_health(db: Database) -> Health:
    """Read everything at once; a few milliseconds, independent of the size of the tables."""
    async with db.transaction(readonly=True) as tx:
        now: datetime = await tx.fetchval("SELECT now()")
        partitions = await store.list_partitions(tx)
        ahead: dict[str, int] = {}
        for partition in partitions:
            later = partition.attached and partition.period is not None and partition.period > now.date()
            ahead[partition.table_name] = ahead.get(partition.table_name, 0) + later
        return Health(
            now=now,
            tables=tuple(await list_tables(tx)),
            partitions=tuple(partitions),
            default_rows={table: await _count_default(tx, table) for table in ahead},
            months_ahead=ahead,
            outbox=await read_overview(tx),
            webhooks=await webhooks.read_overview(tx),
            unsealed_for=await seals.unsealed_for(tx),
            archives={row["state"]: row["count"] for row in await tx.fetch(COUNT_ARCHIVES)},
            runs=tuple(RetentionRun(**row) for row in await tx.fetch(LIST_RUNS)),
            ledger=await find_last(tx),
            order_problems=await count_problems(tx),
        )


async def _count_default(tx: Tx, table: str) -> int:
    sql = f"SELECT count(*) FROM (SELECT FROM headrace.{table}_default LIMIT {_MANY}) AS stray"
    count: int = await tx.fetchval(sql)
    return count
