"""A-07: every filter of the trail is answered from an index, in order, whatever is asked for and however deep."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from headrace.audit import Action, ResourceType, events
from headrace.audit.events import EventFilter
from headrace.audit.sealed_events import LEAVES, bounds
from headrace.audit.sealing import UNSEALED
from headrace.audit.seals import UNSEALED_FOR
from headrace.database import Tx
from tests.conftest import TestServer, rolled_back
from tests.plans.test_documents_queries import USER, _nodes, fill

FILTERS: list[tuple[EventFilter, str]] = [
    (EventFilter(), "idx_audit_events_timestamp"),
    (EventFilter(action=Action.DELETED), "idx_audit_logs_action_created_at"),
    (EventFilter(changes=True), "idx_audit_logs_action_created_at"),
    (EventFilter(resource_type=ResourceType.TASK), "idx_audit_events_resource_type"),
    (EventFilter(resource_type=ResourceType.LEDGER), "idx_audit_events_resource_type"),
    (EventFilter(resource_type=ResourceType.TASK, action=Action.DELETED), "idx_audit_events_resource_type"),
    (EventFilter(resource_type=ResourceType.TASK, action=Action.BYPASSED), "idx_audit_events_composite"),
    (EventFilter(resource_id="thing-7"), "idx_audit_events_resource"),
    (EventFilter(user_id=USER), "idx_audit_events_user"),
    (EventFilter(client_ip="10.0.0.7"), "idx_audit_events_client_ip"),
    (EventFilter(request_id="req-77"), "idx_audit_events_request_id"),
    (EventFilter(text="user-77"), "idx_audit_events_username"),
    (EventFilter(text="trace-77"), "idx_audit_logs_trace_id"),
]
MOST_ROWS = 700  # that any node reads, of twenty thousand


@pytest.fixture(scope="module")
def trail(server: TestServer, template: str) -> Iterator[str]:
    yield from fill(server, template, rows=20_011, users=199)


class Explaining(Tx):
    """Explains what it is asked, as it would be run."""

    plans: list[str]

    async def fetch(self, sql: str, *args: object) -> list[object]:  # type: ignore[override]
        found = await self.connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", *args)
        plan = json.loads(found)[0]["Plan"]
        self.plans = [
            f"{node['Node Type']} {re.sub(r'_(y[0-9]{4}m[0-9]{2}|default)$', '', node.get('Index Name', ''))} "
            f"{node['Actual Rows'] * node['Actual Loops'] + node.get('Rows Removed by Filter', 0)}"
            for node in _nodes(plan)
            if "Scan" in node["Node Type"] and "Subquery" not in node["Node Type"]
        ]
        return []


async def scans(tx: Tx, sql: str, *args: object) -> list[tuple[str, str, int]]:
    explaining = Explaining(tx.connection)
    await explaining.fetch(sql, *args)
    return [_split(line) for line in explaining.plans]


def _split(line: str) -> tuple[str, str, int]:
    *kind, index, rows = line.split(" ")
    return " ".join(kind), index, round(float(rows))


@pytest.mark.long
@pytest.mark.both
@pytest.mark.parametrize(("wanted", "index"), FILTERS)
@pytest.mark.parametrize("deep", [False, True])
async def test_every_filter_reads_a_page_and_little_more(
    server: TestServer, trail: str, wanted: EventFilter, index: str, deep: bool
) -> None:
    async with rolled_back(server.url(trail, role="headrace_app")) as tx:
        mark = None
        if deep:
            middle = await tx.fetchval("SELECT max(created_at) - interval '12 days' FROM headrace.audit_events")
            mark = (middle, "aud_")
        explaining = Explaining(tx.connection)
        await events.list_events(explaining, wanted, older_than=mark, limit=21)
        found = [_split(line) for line in explaining.plans]
    used = {name for _, name, rows in found if name}
    assert index in used
    assert all(rows <= MOST_ROWS for _, _, rows in found), found
    assert not [kind for kind, _, rows in found if kind == "Seq Scan" and rows], found


async def test_sealing_and_verifying_read_their_events_by_number(server: TestServer, trail: str) -> None:
    async with rolled_back(server.url(trail, role="headrace_app")) as tx:
        newest = await tx.fetchval("SELECT max(created_at) FROM headrace.audit_events")
        month = bounds((newest - timedelta(days=1)).date())
        for sql, args in (
            (UNSEALED, (19_900, 20_000, 50)),
            (LEAVES, ([1], [19_900], [19_990], *month)),
            (UNSEALED_FOR, ()),
        ):
            found = await scans(tx, sql, *args)
            assert "uk_audit_events_seq" in {name for _, name, _ in found}, found
            assert sum(rows for kind, _, rows in found if kind != "Function Scan") < 300, found


def test_the_words_of_a_search_are_columns_that_have_an_index() -> None:
    assert len(events._IDENTIFIERS) == 7
