"""Detecting changes, by existing indexes and counters: no write costs more for it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from headrace.admin.changes.model import Kind
from headrace.database import Database
from headrace.tasks.model import TaskStatus

# PostgreSQL's counters of each table. The server publishes them a second after the write, ten at most.
_TABLES: Mapping[str, Kind] = {
    "scheduled_tasks": Kind.SCHEDULES,
    "queues": Kind.QUEUES,
    "workers": Kind.WORKERS,
    "task_locks": Kind.LOCKS,
    "users": Kind.USERS,
    "plans": Kind.PLANS,
    "subscriptions": Kind.PLANS,
    "payment_orders": Kind.PLANS,
    "usage_ledger": Kind.LEDGER,
    "outbox_events": Kind.OUTBOX,
    "system_configs": Kind.CONFIGS,
    "tech_risk_ledger": Kind.RISKS,
    "archives": Kind.ARCHIVES,
    "row_archives": Kind.ARCHIVES,
    "bulk_actions": Kind.BULK,
}
# Partitions carry their table's name in front. Reading the audit trail is in the trail: reads are not reported, or
# watchers would be notified of their own reads.
COUNT_WRITES = """
SELECT known.name, coalesce(sum(stat.n_tup_ins + stat.n_tup_upd + stat.n_tup_del), 0)::bigint AS writes
FROM unnest($1::text[]) AS known (name)
LEFT JOIN pg_stat_user_tables AS stat
  ON stat.schemaname = 'headrace' AND (stat.relname = known.name OR stat.relname LIKE known.name || '\\_2%')
GROUP BY known.name
UNION ALL
SELECT 'audit_events', coalesce((
  SELECT max(seq) FROM headrace.audit_events
  WHERE created_at > now() - $2::interval AND action <> 'read'
    AND "timestamp" > 1000 * extract(epoch FROM now() - $2::interval)::bigint
), 0)
"""


async def count_writes(db: Database, *, within: timedelta) -> dict[str, int]:
    """A number for each table that is another after it was written to."""
    return {row["name"]: row["writes"] for row in await db.fetch_alone(COUNT_WRITES, sorted(_TABLES), within)}


def kinds_of(before: Mapping[str, int], now: Mapping[str, int]) -> frozenset[Kind]:
    known = {**_TABLES, "audit_events": Kind.AUDIT}
    return frozenset(known[name] for name, writes in now.items() if before.get(name) != writes)


class Moved(NamedTuple):
    """A task that was written to, and which of its writes it was."""

    task_id: str
    version: int


# The newest of each status, by its index.
LIST_MOVED = """
SELECT task.id, task.version
FROM unnest($1::varchar[]) AS wanted (status)
CROSS JOIN LATERAL (
  SELECT id, version FROM headrace.tasks
  WHERE status = wanted.status AND updated_at > now() - $2::interval
  ORDER BY updated_at DESC LIMIT $3
) AS task
"""


async def list_moved(db: Database, *, within: timedelta, limit: int) -> list[Moved]:
    """Tasks that were written lately or deleted, up to a limit for each status."""
    rows = await db.fetch_alone(LIST_MOVED, sorted(TaskStatus), within, limit)
    return [Moved(*row) for row in rows]
