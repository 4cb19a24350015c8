"""SQL that reads the whole ledger and returns inconsistencies: one statement for each rule, in one snapshot."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from headrace.database import Row, Tx

# Settings for sums over the whole table: sorted in memory, by months, without a timeout.
PREPARE = """
SELECT set_config('work_mem', '256MB', true), set_config('statement_timeout', '600s', true),
       set_config('enable_partitionwise_aggregate', 'on', true)
"""
COUNT = """
SELECT (SELECT count(*) FROM headrace.usage_ledger) AS entries,
       (SELECT count(*) FROM headrace.entitlements) AS entitlements
"""


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of the entries of one entitlement."""

    entitlement_id: str
    granted: int = 0  # minus units removed by hand
    held: int = 0  # minus settled units: still open
    committed: int = 0


# total = left + held + committed, from the ledger alone. $1 to $4 are the sums of archived months; if these were not
# read ($5), ended entitlements that they may explain are left out.
ENTITLEMENTS = """
WITH sums AS (
  SELECT entitlement_id,
         coalesce(sum(CASE direction WHEN 'CREDIT' THEN consume_unit ELSE -consume_unit END)
                  FILTER (WHERE status = 'COMMITTED' AND hold_id IS NULL), 0) AS granted,
         coalesce(sum(CASE status WHEN 'HELD' THEN consume_unit ELSE -consume_unit END)
                  FILTER (WHERE status = 'HELD' OR hold_id IS NOT NULL), 0) AS held,
         coalesce(sum(consume_unit) FILTER (WHERE status = 'COMMITTED' AND hold_id IS NOT NULL), 0) AS committed
  FROM headrace.usage_ledger
  GROUP BY entitlement_id
), archived AS (
  SELECT *
  FROM unnest($1::varchar[], $2::bigint[], $3::bigint[], $4::bigint[])
       AS given (entitlement_id, granted, held, committed)
), explained AS (
  SELECT entitlement_id, sum(granted) AS granted, sum(held) AS held, sum(committed) AS committed
  FROM (SELECT * FROM sums UNION ALL SELECT * FROM archived) AS both_places
  GROUP BY entitlement_id
)
SELECT entitlement.id, explained.entitlement_id AS of_entry, entitlement.quota_total, entitlement.quota_left,
       coalesce(explained.granted, 0)::bigint AS granted, coalesce(explained.held, 0)::bigint AS held,
       coalesce(explained.committed, 0)::bigint AS committed
FROM headrace.entitlements AS entitlement
FULL JOIN explained ON explained.entitlement_id = entitlement.id
WHERE ($5::date IS NULL OR entitlement.period_end > now() OR entitlement.created_at >= $5)
  AND (entitlement.quota_total <> coalesce(explained.granted, 0)
       OR entitlement.quota_left <> coalesce(explained.granted - explained.held - explained.committed, 0)
       OR entitlement.id IS NULL)
ORDER BY 1
"""


async def unexplained_entitlements(tx: Tx, archived: Sequence[Sums], *, since: date | None) -> list[Row]:
    columns: list[list[Any]] = [
        [each.entitlement_id for each in archived],
        [each.granted for each in archived],
        [each.held for each in archived],
        [each.committed for each in archived],
    ]
    return await tx.fetch(ENTITLEMENTS, *columns, since)


# A hold and its settlement share their month. An open hold belongs to a task that waits or runs.
HOLDS = """
WITH unsettled AS MATERIALIZED (
  SELECT coalesce(hold_id, id) AS hold_id, max(task_id) AS task_id,
         coalesce(sum(consume_unit) FILTER (WHERE status = 'HELD'), 0)::bigint AS held,
         coalesce(sum(consume_unit) FILTER (WHERE status <> 'HELD'), 0)::bigint AS settled
  FROM headrace.usage_ledger
  WHERE status = 'HELD' OR hold_id IS NOT NULL
  GROUP BY coalesce(hold_id, id), period
  HAVING coalesce(sum(consume_unit) FILTER (WHERE status = 'HELD'), 0)
         <> coalesce(sum(consume_unit) FILTER (WHERE status <> 'HELD'), 0)
), open_tasks AS (
  SELECT task_id, sum(held) AS held FROM unsettled WHERE settled = 0 GROUP BY task_id
)
SELECT 'settled_in_part' AS fault, hold_id, task_id, held, settled, NULL::text AS status
FROM unsettled
WHERE settled <> 0
UNION ALL
SELECT 'orphan', unsettled.hold_id, unsettled.task_id, unsettled.held, 0, coalesce(task.status, 'gone')
FROM unsettled
LEFT JOIN headrace.tasks AS task ON task.id = unsettled.task_id
LEFT JOIN headrace.task_queue AS queued ON queued.seq = task.queue_seq
WHERE unsettled.settled = 0 AND queued.units IS NULL
UNION ALL
SELECT 'wrong_hold', NULL, queued.task_id, coalesce(open_tasks.held, 0), queued.units, 'costs'
FROM headrace.task_queue AS queued
LEFT JOIN open_tasks ON open_tasks.task_id = queued.task_id
WHERE queued.units IS NOT NULL AND open_tasks.held IS DISTINCT FROM queued.units
ORDER BY 1, 2
"""


async def faulty_holds(tx: Tx) -> list[Row]:
    return await tx.fetch(HOLDS)


NOTE = """
INSERT INTO headrace.ledger_verification AS last
  (started_at, finished_at, entries, entitlements, archived_months, fault_count, faults)
VALUES ($1, clock_timestamp(), $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE
SET started_at = $1, finished_at = excluded.finished_at, entries = $2, entitlements = $3, archived_months = $4,
    fault_count = $5, faults = $6
WHERE last.started_at <= $1
"""
LAST = """
SELECT started_at, finished_at, entries, entitlements, archived_months, fault_count, faults
FROM headrace.ledger_verification
"""


async def note(
    tx: Tx, *, started_at: datetime, entries: int, entitlements: int, archived_months: int, count: int, faults: object
) -> None:
    await tx.execute(NOTE, started_at, entries, entitlements, archived_months, count, faults)


async def find_last(tx: Tx) -> Row | None:
    return await tx.fetchrow(LAST)
