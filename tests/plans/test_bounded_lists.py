"""Lists with a filter that no index answers read a bounded number of rows, and their pages together miss nothing.

At forty thousand rows, most of one user's. D-07, W-20
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from headrace import walks
from headrace.assets.inspection.model import MediaType
from headrace.assets.store import assets
from headrace.billing import usage
from headrace.billing.model import EntryStatus, Source, UsedDay
from headrace.billing.store import days, ledger
from headrace.billing.store.ledger import EntryFilter
from headrace.database import Database, DatabaseConfig, Tx
from headrace.outbox import administration
from headrace.outbox.administration import EventStatus
from headrace.sql import Mark
from headrace.tasks.model import TaskStatus
from headrace.tasks.store import tasks
from headrace.walks import Found
from headrace.webhooks.model import DeliveryStatus
from headrace.webhooks.store import deliveries
from headrace.webhooks.store.deliveries import DeliveryFilter
from tests.conftest import TestServer, rolled_back
from tests.plans.filled import filled
from tests.plans.test_documents_queries import _nodes, discards

# Row n of each table is n minutes old. Nine in ten are u_busy's. What is rare is as old as can be.
ROWS = """
INSERT INTO headrace.users (id, username, password_hash) VALUES ('u_busy', 'busy', 'x'), ('u_2', 'two', 'x');
CREATE TEMP TABLE moments AS
SELECT n, at, CASE WHEN n % 10 < 9 THEN 'u_busy' ELSE 'u_2' END AS user_id, n > :rows - 30 AS old,
       headrace.letters_of_millis((extract(epoch FROM at) * 1000)::bigint) || left(md5(n::text), 16) AS tail
FROM generate_series(1, :rows) AS n, LATERAL (SELECT now() - n * interval '1 min' AS at) AS moment;

INSERT INTO headrace.usage_ledger
  (id, period, user_id, task_id, entitlement_id, hold_id, consume_unit, direction, status, source, idempotency_key,
   created_at)
SELECT 'led_' || tail, headrace.typeid_month('led_' || tail), user_id, 'tsk_' || n / 2, 'ent_' || n % 5,
       CASE WHEN n % 2 = 1 THEN 'led_' || tail END, 1, 'DEBIT',
       CASE WHEN n % 2 = 1 THEN 'COMMITTED' ELSE 'HELD' END,
       CASE WHEN old THEN 'MANUAL_ADJUST' WHEN n % 2 = 1 THEN 'TASK_COMPLETE' ELSE 'TASK_CREATE' END,
       to_char(headrace.typeid_month('led_' || tail), 'YYYYMM') || ':' || n, at
FROM moments;

INSERT INTO headrace.outbox_events (event_id, event_type, event_version, aggregate_type, aggregate_id, user_id,
                                    payload_json, status, published_at, created_at)
SELECT 'evt_' || tail, CASE WHEN old THEN 'rare' ELSE 'task.succeeded' END, 1, 'task', 'tsk_' || n,
       CASE WHEN old THEN 'u_2' ELSE 'u_busy' END, '{}', 'PUBLISHED', at, at
FROM moments ORDER BY n DESC;

INSERT INTO headrace.webhook_endpoints (id, user_id, name, url, status, secret_ciphertext)
SELECT 'whe_' || n, 'u_busy', 'hook', 'https://example.com/' || n, 'ACTIVE', 's' FROM generate_series(1, 3) AS n;
INSERT INTO headrace.webhook_deliveries (period, delivery_id, endpoint_id, event_id, event_type, attempt, status,
                                         next_retry_at, created_at)
SELECT headrace.typeid_month('evt_' || tail), 'whd_' || tail, 'whe_' || n % 3 + 1, 'evt_' || tail,
       CASE WHEN old THEN 'rare' ELSE 'task.succeeded' END, 1,
       CASE WHEN old AND n % 2 = 0 THEN 'DEAD' WHEN old THEN 'RETRYING' ELSE 'SUCCESS' END, NULL, at
FROM moments ORDER BY n DESC;

INSERT INTO headrace.assets (id, user_id, media_type, origin_name, mime_type, size_bytes, storage_key, created_at)
SELECT 'ast_' || tail, user_id, CASE WHEN old THEN 'PPT' ELSE 'IMAGE' END,
       CASE WHEN old THEN 'rare.png' ELSE 'photo.png' END, 'image/png', 1000, 'key-' || n, at
FROM moments;

INSERT INTO headrace.tasks (id, user_id, task_type, title, status, finished_at, created_at, updated_at)
SELECT 'tsk_' || tail, user_id, 'job', 't', CASE WHEN old THEN 'QUEUED' ELSE 'SUCCEEDED' END,
       CASE WHEN NOT old THEN at END, at, at
FROM moments;
INSERT INTO headrace.task_routes (task_type, queue) VALUES ('job', 'default');
"""
COUNT = 40_000
# Two walks may be under way at once; beside them a few rows of small tables and of each month.
MOST_ROWS = 2 * walks.ROWS + 1000
LONG_AGO = datetime.now(UTC) - timedelta(minutes=COUNT - 10)

List = Callable[..., Awaitable[Found[Any]]]
BUSY, TWO = "u_busy", "u_2"
LISTS: dict[str, List] = {
    **{
        f"usage of {user} {wanted}": partial(ledger.list_entries, wanted=EntryFilter(user, **wanted))
        for user in (BUSY, None)
        for wanted in (
            {"source": Source.MANUAL_ADJUST},
            {"source": Source.TASK_FAIL},
            {"source": Source.TASK_CREATE, "status": EntryStatus.HELD},
            {"entitlement_id": "ent_1"},
            {"entitlement_id": "ent_1", "source": Source.MANUAL_ADJUST},
            {"task_id": "tsk_77"},
            {"status": EntryStatus.RELEASED},
        )
    },
    **{
        f"deliveries of {user} {wanted}": partial(deliveries.list_deliveries, wanted=DeliveryFilter(user, **wanted))
        for user in (BUSY, None)
        for wanted in (
            {},
            {"event_type": "rare"},
            {"event_type": "nosuch"},
            {"status": DeliveryStatus.DEAD},
            {"status": DeliveryStatus.RETRYING, "event_type": "rare"},
            {"until": LONG_AGO},
            {"since": datetime.now(UTC) - timedelta(hours=2)},
            {"endpoint_id": "whe_1", "until": LONG_AGO, "event_type": "rare"},
        )
    },
    **{
        f"events {wanted}": partial(administration.list_events, wanted=administration.Filter(**wanted))
        for wanted in (
            {},
            {"event_type": "rare"},
            {"user_id": TWO},
            {"aggregate_id": f"tsk_{COUNT}"},
            {"status": EventStatus.PUBLISHED, "event_type": "rare"},
            {"status": EventStatus.DEAD},
        )
    },
    **{
        f"files of {user} {wanted}": partial(assets.list_assets, wanted=assets.Filter(user, **wanted))
        for user in (BUSY, None)
        for wanted in ({"name": "rare"}, {"name": "nosuch"}, {"media_type": MediaType.PPT})
    },
    **{
        f"tasks {statuses}": partial(tasks.list_tasks, wanted=tasks.Filter(None, statuses))
        for statuses in ([TaskStatus.QUEUED], [TaskStatus.QUEUED, TaskStatus.RUNNING], [TaskStatus.FAILED])
    },
}
# Of these the first page has what there is, and no page is empty.
FOUND_AT_ONCE = [
    name
    for name in LISTS
    if name.startswith("tasks ") or "MANUAL_ADJUST" in name or "until" in name or "'status': <DeliveryStatus.RE" in name
]


@pytest.fixture(scope="module")
def thousands(server: TestServer, template: str) -> Iterator[str]:
    yield from filled(server, template, COUNT, ROWS, name="bounded")


class Explaining(Tx):
    """Runs what it is asked, and notes how many rows of tables each statement read."""

    read: list[int]

    async def fetch(self, sql: str, *args: object) -> Any:
        found = await self.connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", *args)
        relations = [node for node in _nodes(json.loads(found)[0]["Plan"]) if "Relation Name" in node]
        self.read.append(sum(discards(node) + round(node["Actual Rows"] * node["Actual Loops"]) for node in relations))
        return await super().fetch(sql, *args)


@pytest.mark.long
@pytest.mark.both
@pytest.mark.parametrize("name", LISTS)
async def test_a_page_reads_a_bounded_number_of_rows(server: TestServer, thousands: str, name: str) -> None:
    async with rolled_back(server.url(thousands, role="headrace_app")) as tx:
        for mode in ("force_custom_plan", "force_generic_plan"):
            await tx.execute(f"SET LOCAL plan_cache_mode = {mode}")
            explaining = Explaining(tx.connection)
            explaining.read = []
            found = await LISTS[name](explaining, older_than=None, limit=21)
            assert max(explaining.read) <= MOST_ROWS, mode
            assert sum(explaining.read) <= (walks.STATEMENTS + 1) * MOST_ROWS
            assert found.items or found.resume is None or name not in FOUND_AT_ONCE


@pytest.mark.parametrize("name", LISTS)
async def test_pages_of_short_walks_miss_nothing(
    server: TestServer, thousands: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rolled_back(server.url(thousands, role="headrace_app")) as tx:
        monkeypatch.setattr(walks, "ROWS", 10**6)
        wanted = (await LISTS[name](tx, older_than=None, limit=60)).items
        monkeypatch.setattr(walks, "ROWS", 777)
        found: list[Any] = []
        mark: Mark | None = None
        while len(found) < len(wanted) or mark is not None:
            page = await LISTS[name](tx, older_than=mark, limit=7)
            found += page.items
            last = page.items[-1] if len(page.items) == 7 else None
            mark = page.resume or (None if last is None else (last.created_at, str(last.id)))
            if len(found) >= len(wanted):
                break
            assert mark is not None, f"ended after {len(found)} of {len(wanted)}"
        assert found[: len(wanted)] == list(wanted)


async def test_a_time_filter_of_deliveries_is_exact(server: TestServer, thousands: str) -> None:
    async with rolled_back(server.url(thousands, role="headrace_app")) as tx:
        for hours in (0, 1, 24, 400):
            at = await tx.fetchval(
                "SELECT max(created_at) - $1 * interval '1 h' FROM headrace.webhook_deliveries", hours
            )
            for column, bound in (("since", ">="), ("until", "<")):
                found = await deliveries.list_deliveries(tx, DeliveryFilter(None, **{column: at}), limit=50)
                rows = await tx.fetch(
                    f"SELECT id FROM headrace.webhook_deliveries WHERE created_at {bound} $1 ORDER BY id DESC LIMIT 50",
                    at,
                )
                assert [each.id for each in found.items] == [row["id"] for row in rows]


async def test_deliveries_of_any_time_can_be_asked_for(tx: Tx) -> None:
    for at in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        for wanted in (DeliveryFilter(None, since=at), DeliveryFilter(None, until=at)):
            assert await deliveries.list_deliveries(tx, wanted, limit=5) == Found([])


async def test_usage_of_a_year_by_day_reads_a_row_for_each_day(server: TestServer, thousands: str) -> None:
    last = datetime.now(UTC).date() + timedelta(days=1)
    first = last - timedelta(days=366)

    async def look(tx: Tx) -> tuple[list[UsedDay], int]:
        explaining = Explaining(tx.connection)
        explaining.read = []
        return await days.used_by_day(explaining, BUSY, first, last), sum(explaining.read)

    async with await Database.connect(DatabaseConfig(server.url(thousands, role="headrace_app"))) as db:
        async with db.transaction() as tx:
            before, rows = await look(tx)
            assert rows > COUNT / 4
        assert await usage.add_up_days(db, now=datetime.now(UTC) - timedelta(days=5)) > 20
        assert await usage.add_up_days(db) == 5
        assert await usage.add_up_days(db) == 0
        async with db.transaction() as tx:
            after, rows = await look(tx)
    assert after == before
    # A minute is an entry; today and yesterday come from the ledger, and so does the day before after midnight.
    assert rows <= 3 * 24 * 60 + 366
