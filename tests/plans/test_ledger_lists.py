"""The lists of the ledger read hardly more than they show, whoever asks. D-07, W-20"""

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.billing.model import EntryStatus
from headrace.billing.store.days import FROM_LEDGER
from headrace.billing.store.ledger import EntryFilter, list_statement
from headrace.database import Tx
from tests.plans.test_documents_queries import _nodes, discards

# Six months; one entry in five is u_7's, one in twenty gives something back.
ROWS = """
SET LOCAL session_replication_role = replica;
INSERT INTO headrace.usage_ledger
  (id, period, user_id, task_id, entitlement_id, hold_id, consume_unit, direction, status, source, idempotency_key,
   created_at)
SELECT entry.id, headrace.typeid_month(entry.id), CASE WHEN n % 10 IN (0, 3) THEN 'u_7' ELSE 'u_' || n % 500 END,
       'tsk_' || n / 2, 'ent_' || n % 600, CASE WHEN n % 2 = 1 THEN entry.id END, 1, 'DEBIT',
       CASE WHEN n % 2 = 0 THEN 'HELD' WHEN n % 20 = 3 THEN 'RELEASED' ELSE 'COMMITTED' END, 'TASK_CREATE',
       to_char(headrace.typeid_month(entry.id), 'YYYYMM') || ':' || n, entry.at
FROM generate_series(1, 20000) AS n
CROSS JOIN LATERAL (SELECT now() - n * interval '12 min' AS at) AS made
CROSS JOIN LATERAL (
  SELECT made.at, 'led_' || headrace.letters_of_millis((extract(epoch FROM made.at) * 1000)::bigint)
         || left(md5(n::text), 16) AS id
) AS entry;
SET LOCAL session_replication_role = origin;
ANALYZE headrace.usage_ledger;
"""
MOST_READ = 500  # of 20,000, in six months and for three statuses
LIMIT = 21


async def rows_read(tx: Tx, sql: str, *args: object) -> int:
    plan: dict[str, Any] = json.loads(await tx.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", *args))[0]["Plan"]
    relations = [node for node in _nodes(plan) if "Relation Name" in node]
    return sum(discards(node) + round(node["Actual Rows"] * node["Actual Loops"]) for node in relations)


async def test_lists_of_the_ledger_discard_few_rows(owner_tx: Tx) -> None:
    await owner_tx.execute(ROWS)
    middle = datetime.now(UTC) - timedelta(days=60)
    for user, task, entitlement, status, mark in itertools.product(
        ("u_7", None), ("tsk_77", None), ("ent_7", None), (None, *EntryStatus), (None, (middle, "x"))
    ):
        wanted = EntryFilter(user, task, entitlement, status)
        sql, args = list_statement(wanted, mark, LIMIT)
        assert await rows_read(owner_tx, sql, *args) <= MOST_READ, (wanted, mark)
    now = datetime.now(UTC)
    days = await rows_read(owner_tx, FROM_LEDGER, "u_7", now - timedelta(days=30), now)
    assert days <= 1000, "u_7 has 720 entries in 30 days"
