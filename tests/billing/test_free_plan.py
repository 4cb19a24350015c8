"""Everybody has the free plan: at once when they join, then month by month. W-11."""

from datetime import UTC, datetime

from headrace import ids
from headrace.billing.erasure import EndSubscriptions
from headrace.billing.plans.model import FREE_PLAN
from headrace.billing.subscriptions import renewal
from headrace.billing.subscriptions.model import RenewalConfig
from headrace.database import Database, Row
from tests.billing.shop import Shop
from tests.web.world import PASSWORD, World, whole_api

CONFIG = RenewalConfig()


async def free_of(db: Database, user_id: str) -> list[Row]:
    return await db.fetch_alone(
        "SELECT e.*, l.consume_unit FROM headrace.entitlements AS e"
        " JOIN headrace.usage_ledger AS l ON l.entitlement_id = e.id"
        " WHERE e.user_id = $1 AND e.plan_id = $2 ORDER BY period_start",
        user_id,
        FREE_PLAN,
    )


async def test_whoever_joins_has_it_at_once(database_url: str) -> None:
    async with whole_api(database_url) as (world, _):
        registered = await world.send("POST", "/v1/auth/register", {"username": "ada", "password": PASSWORD})
        wechat = await world.send("POST", "/v1/auth/wechat", {"code": "from-the-mini-program"})
        made = await world.user()
        for user_id in (registered.json()["id"], wechat.json()["user"]["id"], made["id"]):
            (granted,) = await free_of(world.db, user_id)
            assert (granted["quota_left"], granted["consume_unit"], granted["period_start"].day) == (20, 20, 1)
        await _the_next_months_come_ahead(world, registered.json()["id"])


async def _the_next_months_come_ahead(world: World, user_id: str) -> None:
    (first,) = await free_of(world.db, user_id)
    users = len(await world.db.fetch_alone("SELECT FROM headrace.users WHERE id <> $1", ids.SYSTEM_USER))
    last_day = first["period_end"].replace(day=1)
    done = await renewal.run_once(world.db, CONFIG, now=last_day - (datetime.resolution * 1))
    assert done.granted == users, "ahead of the month, for everybody"
    assert (await renewal.run_once(world.db, CONFIG, now=last_day)).granted == 0
    now, ahead = await free_of(world.db, user_id)
    assert now["period_end"] == ahead["period_start"], "no gap"


async def test_users_from_before_are_picked_up_and_deleted_ones_are_not(db: Database) -> None:
    async with db.transaction() as tx:
        for name, status in (("ada", "ACTIVE"), ("bob", "SUSPENDED"), ("gone", "DELETED")):
            await tx.execute(
                "INSERT INTO headrace.users (id, username, password_hash, status, deleted_at)"
                " VALUES ($1, $2, '!', $3::varchar, CASE WHEN $3::varchar = 'DELETED' THEN now() END)",
                f"u_{name}",
                None if status == "DELETED" else name,
                status,
            )
    middle = datetime(2026, 6, 15, tzinfo=UTC)
    assert (await renewal.run_once(db, CONFIG, now=middle)).granted == 2
    assert await free_of(db, "u_gone") == []
    await db.fetch_alone("UPDATE headrace.plans SET is_active = false")
    assert (await renewal.run_once(db, CONFIG, now=datetime(2026, 7, 15, tzinfo=UTC))).granted == 0


async def test_a_deleted_account_leaves_ids_sums_and_times(shop: Shop) -> None:  # W-16
    answer = await shop.buy()
    renewal_order = (await shop.call("POST", f"/v1/subscriptions/{answer['subscription']['id']}/renew", {})).json()
    await shop.db.fetch_alone('UPDATE headrace.subscriptions SET meta_json = \'{"note": "for Ada"}\'')
    assert [done async for done in EndSubscriptions().erase(shop.db, shop.user_id)] == [4]
    assert [done async for done in EndSubscriptions().erase(shop.db, shop.user_id)] == [0]
    assert await shop.status_of(answer) == ("CANCELED", "PAID")
    assert await shop.status_of(renewal_order) == ("CANCELED", "CLOSED")
    rows = await shop.db.fetch_alone("SELECT code_url, prepay_id, refund_reason FROM headrace.payment_orders")
    assert {tuple(row) for row in rows} == {(None, None, None)}
    assert (await shop.one("SELECT meta_json FROM headrace.subscriptions"))["meta_json"] is None
    (granted,) = await shop.grants()
    assert granted["consume_unit"] == 500


async def test_money_for_a_deleted_account_buys_nothing_and_is_noticed(shop: Shop) -> None:
    answer = await shop.order()
    await shop.db.fetch_alone(
        "UPDATE headrace.users SET status = 'DELETED', deleted_at = now(), username = NULL, password_hash = NULL"
        " WHERE id = $1",
        shop.user_id,
    )
    assert (await shop.tell_paid(shop.local.pay(answer["order"]["id"]))).status_code == 204
    row = await shop.one("SELECT status, problem, entitlement_id FROM headrace.payment_orders")
    assert tuple(row) == ("PAID", "account_deleted", None)
