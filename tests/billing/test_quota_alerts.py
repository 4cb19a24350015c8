"""Notices at 80 and at 100 percent of the quota, once for each period."""

from datetime import timedelta

import asyncpg
import pytest

from headrace.database import Database
from headrace.notifications.consumer import NotificationConsumer
from headrace.outbox.catalogue import faults
from headrace.outbox.relay import Relay
from tests.billing import stand
from tests.tasks.conftest import Bench

TOLD = """
SELECT payload_json ->> 'user_id' AS user_id, (payload_json ->> 'percent')::integer AS percent,
       (payload_json ->> 'left')::integer AS left, payload_json
FROM headrace.outbox_events WHERE event_type = 'quota.reached' ORDER BY id
"""


async def told(db: Database) -> list[tuple[int, int]]:
    rows = await db.fetch_alone(TOLD)
    assert [fault for row in rows for fault in faults("quota.reached", 1, row["payload_json"])] == []
    return [(row["percent"], row["left"]) for row in rows]


async def hold(db: Database, user_id: str, units: int, number: int) -> None:
    async with db.transaction() as tx:
        await tx.execute("SELECT headrace.hold_units($1, $2, $3)", [f"tsk_{number}"], [user_id], [units])


async def test_each_share_is_told_of_once(bench: Bench) -> None:
    ada = await bench.user("ada")
    async with bench.db.transaction() as tx:
        await stand.grant(tx, ada, 100)
    for number, units in enumerate((70, 9), 1):
        await hold(bench.db, ada, units, number)
    assert await told(bench.db) == []
    await hold(bench.db, ada, 1, 3)
    assert await told(bench.db) == [(80, 20)]
    await bench.db.fetch_alone("UPDATE headrace.entitlements SET quota_left = quota_left + 5 RETURNING 1")
    await hold(bench.db, ada, 10, 4)
    assert await told(bench.db) == [(80, 20)], "units that came back and were held again are no news"
    await hold(bench.db, ada, 15, 5)
    assert await told(bench.db) == [(80, 20), (100, 0)]


async def test_a_hold_that_takes_everything_is_told_of_once(bench: Bench) -> None:
    ada = await bench.user("ada")
    async with bench.db.transaction() as tx:
        await stand.grant(tx, ada, 10)
    await hold(bench.db, ada, 10, 1)
    assert await told(bench.db) == [(100, 0)]


async def test_all_entitlements_of_the_period_count(bench: Bench) -> None:
    ada, eve = await bench.user("ada"), await bench.user("eve")
    async with bench.db.transaction() as tx:
        await stand.grant(tx, ada, 20, ends_in=timedelta(days=5))
        await stand.grant(tx, ada, 80)
        await stand.grant(tx, ada, 1000, starts_in=timedelta(days=29), ends_in=timedelta(days=60))
        await stand.grant(tx, eve, 10)
    await hold(bench.db, ada, 20, 1)
    assert await told(bench.db) == [], "the first entitlement is used up, but not the quota"
    async with bench.db.transaction() as tx:
        await tx.execute(
            "SELECT headrace.hold_units($1, $2, $3)", ["tsk_2", "tsk_3", "tsk_4"], [ada, eve, ada], [50, 9, 12]
        )
    rows = await bench.db.fetch_alone(TOLD)
    assert sorted((row["user_id"], row["percent"], row["left"]) for row in rows) == sorted(
        [(ada, 80, 18), (eve, 80, 1)]
    )


async def test_units_that_come_back_to_a_used_up_entitlement_are_no_news(bench: Bench) -> None:
    ada = await bench.user("ada")
    async with bench.db.transaction() as tx:
        first = await stand.grant(tx, ada, 20, ends_in=timedelta(days=5))
        await stand.grant(tx, ada, 80)
    await hold(bench.db, ada, 20, 1)
    await hold(bench.db, ada, 60, 2)
    assert await told(bench.db) == [(80, 20)]
    await bench.db.fetch_alone("UPDATE headrace.entitlements SET quota_left = 5 WHERE id = $1 RETURNING 1", first)
    await hold(bench.db, ada, 10, 3)
    assert await told(bench.db) == [(80, 20)], "the same percentage of the same quota"
    async with bench.db.transaction() as tx:
        await stand.grant(tx, ada, 100)
    await hold(bench.db, ada, 80, 4)
    assert await told(bench.db) == [(80, 20), (80, 35)], "another quota, of which it is said once more"


async def test_a_new_period_is_told_of_anew_and_a_notification_is_written(bench: Bench) -> None:
    ada = await bench.user("ada")
    async with bench.db.transaction() as tx:
        first = await stand.grant(tx, ada, 10)
    await hold(bench.db, ada, 9, 1)
    async with bench.db.transaction() as tx:
        await tx.execute("UPDATE headrace.entitlements SET status = 'EXPIRED' WHERE id = $1", first)
        await stand.grant(tx, ada, 10)
    await hold(bench.db, ada, 8, 2)
    assert await told(bench.db) == [(80, 1), (80, 2)]
    relay = Relay(bench.db, [NotificationConsumer()])
    while (await relay.run_once()).published:
        pass
    notes = await bench.db.fetch_alone("SELECT type, title, body FROM headrace.notifications ORDER BY id")
    assert [row["type"] for row in notes] == ["QUOTA_REACHED", "QUOTA_REACHED"]
    assert notes[0]["title"] == "80 % of your units are used"
    assert notes[0]["body"].startswith("1 of 10 units are left until 20")


async def test_a_refused_hold_tells_of_nothing(bench: Bench) -> None:
    ada = await bench.user("ada")
    async with bench.db.transaction() as tx:
        await stand.grant(tx, ada, 10)
    with pytest.raises(asyncpg.PostgresError, match="does not suffice"):
        await hold(bench.db, ada, 11, 1)
    assert await told(bench.db) == []
