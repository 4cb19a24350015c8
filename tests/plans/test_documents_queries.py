"""The documents' own queries find what they ask for by an index, and touch few pages. W-20, D-07, A-07, S-16.

At twenty thousand rows in every run, and at a million in the slow one.
"""

import asyncio
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

from headrace.database import Tx
from headrace.outbox import claims
from tests.conftest import TestServer, rolled_back
from tests.plans.generated import generate


@dataclass(frozen=True)
class Query:
    """A document's query with values that are in the rows, and the index it is meant for."""

    sql: str
    index: str

    def __str__(self) -> str:
        return self.index


USER = "u_0000000001000000000000000c"
_DUE_EVENTS = claims.DUE_FAILED.replace("$1", "NULL").replace("$2", "100")
QUERIES = [
    # -- 002 §7
    Query(
        f"SELECT * FROM headrace.tasks WHERE user_id = '{USER}' AND status IN ('QUEUED', 'FAILED') "
        "ORDER BY created_at DESC",
        "idx_tasks_user_status_created_at",
    ),
    Query(  # the same a page at a time; by the time alone the walk would lead over everybody's tasks
        f"SELECT * FROM headrace.tasks WHERE user_id = '{USER}' AND status IN ('SUCCEEDED', 'FAILED') "
        "ORDER BY created_at DESC LIMIT 20",
        "idx_tasks_user_created_at",
    ),
    Query(
        f"SELECT * FROM headrace.tasks WHERE user_id = '{USER}' AND status IN ('QUEUED', 'CANCELED') "
        "ORDER BY created_at DESC LIMIT 20",
        "idx_tasks_user_status_created_at",
    ),
    Query(  # D-07
        f"SELECT * FROM headrace.tasks WHERE user_id = '{USER}' AND status = 'SUCCEEDED' "
        "ORDER BY created_at DESC LIMIT 20",
        "idx_tasks_user_status_created_at",
    ),
    Query(
        "SELECT * FROM headrace.outbox_events WHERE status = 'PENDING' AND next_retry_at <= now() "
        "ORDER BY next_retry_at LIMIT 100",
        "idx_outbox_events_status_next_retry_at",
    ),
    Query(
        "SELECT * FROM headrace.webhook_deliveries WHERE endpoint_id = 'whe_0000000001000000000000000c' "
        "AND status IN ('FAILED', 'RETRYING')",
        "idx_webhook_deliveries_endpoint_status_next_retry",
    ),
    Query(
        f"SELECT * FROM headrace.notifications WHERE user_id = '{USER}' AND is_read = false "
        "ORDER BY created_at DESC LIMIT 20",
        "idx_notifications_user_read_created_at",
    ),
    # -- 002 §11
    Query(
        "SELECT id, status, progress, created_at FROM headrace.tasks "
        f"WHERE user_id = '{USER}' AND deleted_at IS NULL ORDER BY created_at DESC LIMIT 20",
        "idx_tasks_user_created_at",
    ),
    Query(
        "SELECT id, direction, status, consume_unit, source, created_at FROM headrace.usage_ledger "
        "WHERE task_id = (SELECT max(id) FROM headrace.tasks) ORDER BY created_at ASC",
        "idx_usage_ledger_task_id",
    ),
    Query(
        "SELECT delivery_id, endpoint_id, event_id, attempt, next_retry_at FROM headrace.webhook_deliveries "
        "WHERE status IN ('FAILED', 'RETRYING') AND next_retry_at <= now() ORDER BY next_retry_at ASC LIMIT 100",
        "idx_webhook_deliveries_due",
    ),
    # -- 002 §13.3
    Query(
        "SELECT * FROM headrace.system_configs WHERE config_key = 'key-7' AND is_active",
        "idx_system_configs_active_key",
    ),
    Query(
        "SELECT * FROM headrace.tech_risk_ledger WHERE status = 'OPEN' AND severity = 'CRITICAL'",
        "idx_tech_risk_ledger_status_severity",
    ),
    # -- 002's audit_logs, through the view
    Query(
        f"SELECT * FROM headrace.audit_logs WHERE actor_type = 'USER' AND actor_id = '{USER}' "
        "ORDER BY created_at DESC LIMIT 20",
        "idx_audit_logs_actor_created_at",
    ),
    Query(
        "SELECT * FROM headrace.audit_logs WHERE action = 'deleted' ORDER BY created_at DESC LIMIT 20",
        "idx_audit_logs_action_created_at",
    ),
    Query("SELECT * FROM headrace.audit_logs WHERE id = 77", "uk_audit_events_seq"),
    Query("SELECT * FROM headrace.audit_logs WHERE trace_id = 'trace-77'", "idx_audit_logs_trace_id"),
    # -- 001: the trail by action, type, resource, user, address, request and time
    Query(
        "SELECT * FROM headrace.audit_events WHERE resource_type = 'task' AND action = 'deleted' "
        'ORDER BY "timestamp" DESC LIMIT 20',
        "idx_audit_events_resource_type",  # which is smaller; of a pair that is rare, the next one's
    ),
    Query(
        "SELECT count(*) FROM headrace.audit_events WHERE resource_type = 'task' AND action = 'deleted'",
        "idx_audit_events_composite",
    ),
    Query(
        "SELECT * FROM headrace.audit_events WHERE resource ->> 'identifier' = 'thing-7' "
        'ORDER BY "timestamp" DESC LIMIT 20',
        "idx_audit_events_resource",
    ),
    Query(
        f"SELECT * FROM headrace.audit_events WHERE \"user\" ->> 'uid' = '{USER}' ORDER BY \"timestamp\" DESC LIMIT 20",
        "idx_audit_events_user",
    ),
    Query(
        "SELECT * FROM headrace.audit_events WHERE client_ip = '10.0.0.7' ORDER BY \"timestamp\" DESC LIMIT 20",
        "idx_audit_events_client_ip",
    ),
    Query(
        "SELECT * FROM headrace.audit_events WHERE \"user\" ->> 'username' = 'user-77' "
        'ORDER BY "timestamp" DESC LIMIT 20',
        "idx_audit_events_username",
    ),
    Query("SELECT * FROM headrace.audit_events WHERE request_id = 'req-77'", "idx_audit_events_request_id"),
    Query('SELECT * FROM headrace.audit_events ORDER BY "timestamp" DESC LIMIT 20', "idx_audit_events_timestamp"),
    # -- 001: what is due, and the history (S-16)
    Query(
        "SELECT * FROM headrace.scheduled_tasks WHERE enabled AND next_run <= now() + interval '5 minutes' "
        "ORDER BY next_run LIMIT 10",
        "idx_scheduled_tasks_next_run",
    ),
    Query(
        'SELECT * FROM headrace.scheduled_tasks WHERE labels @> \'{"zone": "zone-7"}\'',
        "idx_scheduled_tasks_labels",
    ),
    Query(
        "SELECT * FROM headrace.task_executions WHERE task_name = 'schedule-7' AND state = 'success' "
        "ORDER BY started_at DESC LIMIT 20",
        "idx_task_executions_composite",
    ),
    Query(
        "SELECT * FROM headrace.task_executions WHERE started_at > now() - interval '1 hour' ORDER BY started_at DESC",
        "idx_task_executions_started_at",
    ),
    # -- 000
    Query(
        "SELECT * FROM headrace.task_logs WHERE task_id = (SELECT max(id) FROM headrace.tasks) ORDER BY id",
        "idx_task_logs_task",
    ),
    # -- the relay's: what is due, and whether an earlier event of its aggregate waits (W-12)
    Query(_DUE_EVENTS, "idx_outbox_events_status_next_retry_at"),
    Query(_DUE_EVENTS, "idx_outbox_events_open"),
]

MOST_PAGES = 1_000  # of some hundred thousand, at a million rows
MOST_SORTED = 1_000  # more has to come in order from the index
MOST_DISCARDED = 500  # rows that were fetched and are not shown


def fill(server: TestServer, template: str, *, rows: int, users: int) -> Iterator[str]:
    name = f"headrace_test_{os.getpid()}_plans_{rows}"

    async def make() -> None:
        await server.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        connection = await asyncpg.connect(server.url(name))
        try:
            async with connection.transaction():
                await generate(Tx(connection), rows=rows, users=users)
        finally:
            await connection.close()
        await server.run("VACUUM ANALYZE", database=name)

    asyncio.run(make())
    yield name
    asyncio.run(server.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))


@pytest.fixture(scope="module")
def thousands(server: TestServer, template: str) -> Iterator[str]:
    yield from fill(server, template, rows=20_000, users=199)


@pytest.fixture(scope="module")
def a_million(server: TestServer, template: str) -> Iterator[str]:
    yield from fill(server, template, rows=1_000_000, users=1_999)


@pytest.mark.both
async def test_the_documents_queries_use_their_indexes(server: TestServer, thousands: str) -> None:
    await _check_all(server.url(thousands, role="headrace_app"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_the_documents_queries_use_their_indexes_at_a_million_rows(server: TestServer, a_million: str) -> None:
    await _check_all(server.url(a_million, role="headrace_app"))


# The table's, or where it has none each month's own.
INDEXES = """
SELECT indexrelid::regclass::text AS name
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE relnamespace = 'headrace'::regnamespace AND NOT relispartition
  AND regexp_replace(relname, '_(y\\d{4}m\\d\\d|default)$', '') = $1
"""


async def test_a_lost_index_is_noticed(server: TestServer, thousands: str) -> None:
    async with rolled_back(server.url(thousands)) as tx:
        for query in QUERIES:
            lost = ", ".join(row["name"] for row in await tx.fetch(INDEXES, query.index))
            await tx.execute(f"SAVEPOINT before; DROP INDEX {lost}")
            assert await _complaints(tx, query), query
            await tx.execute("ROLLBACK TO before")


async def _check_all(url: str) -> None:
    async with rolled_back(url) as tx:
        complaints = [complaint for query in QUERIES for complaint in await _complaints(tx, query)]
    assert not complaints, "\n".join(complaints)


async def _complaints(tx: Tx, query: Query) -> list[str]:
    plan = json.loads(await tx.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query.sql}"))[0]["Plan"]
    nodes = list(_nodes(plan))
    used = {re.sub(r"_(y\d{4}m\d\d|default)$", "", node["Index Name"]) for node in nodes if "Index Name" in node}
    pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    found = [
        f"reads {node['Relation Name']} through"
        for node in nodes
        if node["Node Type"] == "Seq Scan" and node["Actual Rows"] + node.get("Rows Removed by Filter", 0) > 0
    ]
    if query.index not in used:
        found.append(f"uses {used or 'no index'}")
    found += [
        f"sorts {node['Plans'][0]['Actual Rows']} rows"
        for node in nodes
        if node["Node Type"] in ("Sort", "Incremental Sort") and node["Plans"][0]["Actual Rows"] > MOST_SORTED
    ]
    found += [
        f"discards {discarded} rows of {node['Relation Name']}"
        for node in nodes
        if (discarded := discards(node)) > MOST_DISCARDED
    ]
    if pages > MOST_PAGES:
        found.append(f"touches {pages} pages")
    if plan["Actual Rows"] == 0:
        found.append("finds nothing, which proves nothing")
    return [f"{query.index}: {complaint}" for complaint in found]


def discards(node: dict[str, Any]) -> int:
    """How many rows it fetched for nothing."""
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return round(removed * node["Actual Loops"]) if "Relation Name" in node else 0


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)
