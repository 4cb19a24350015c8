"""How subscriptions go on and end. W-11."""

from datetime import datetime, timedelta
from typing import Any

from headrace.billing.payments import checking
from headrace.billing.subscriptions import renewal
from headrace.billing.subscriptions.model import RenewalConfig
from tests.billing.shop import Shop

CONFIG = RenewalConfig(grace_days=7, notice_days=3)
DAY = timedelta(days=1)


async def later(shop: Shop, now: datetime) -> renewal.Renewed:
    return await renewal.run_once(shop.db, CONFIG, now=now)


async def end_of(shop: Shop, answer: dict[str, Any]) -> datetime:
    at: datetime = (
        await shop.one("SELECT expire_at FROM headrace.subscriptions WHERE id = $1", answer["subscription"]["id"])
    )["expire_at"]
    return at


def path_of(answer: dict[str, Any], verb: str = "") -> str:
    return f"/v1/subscriptions/{answer['subscription']['id']}{verb}"


async def renewed(shop: Shop, answer: dict[str, Any]) -> dict[str, Any]:
    """Order the renewal, pay it, and let WeChat Pay tell of it."""
    reply = await shop.call("POST", path_of(answer, "/renew"), {})
    assert reply.status_code == 201, reply.text
    order: dict[str, Any] = reply.json()
    assert (await shop.tell_paid(shop.local.pay(order["order"]["id"]))).status_code == 204
    return order


async def test_renewed_in_time_it_goes_on_without_a_gap(shop: Shop) -> None:
    answer = await shop.buy()
    await renewed(shop, answer)
    first, second = await shop.grants()
    assert first["period_end"] == second["period_start"], "no gap, and granted ahead"
    assert await end_of(shop, answer) == second["period_end"]
    assert (await later(shop, first["period_end"] + DAY)).ended == 0
    assert await shop.status_of(answer) == ("ACTIVE", "PAID")
    assert await shop.events(answer["subscription"]["id"]) == ["activated", "activated"]


async def test_while_a_renewal_waits_to_be_paid_it_is_that_one(shop: Shop) -> None:
    answer = await shop.buy()
    first, second = [(await shop.call("POST", path_of(answer, "/renew"), {})).json() for _ in range(2)]
    assert first["order"]["id"] == second["order"]["id"]


async def test_its_user_is_told_once_that_it_ends_soon(shop: Shop) -> None:
    answer = await shop.buy()
    end = await end_of(shop, answer)
    assert (await later(shop, end - 4 * DAY)).notified == 0
    assert [(await later(shop, end - 2 * DAY)).notified for _ in range(2)] == [1, 0]
    assert await shop.events(answer["subscription"]["id"]) == ["activated", "expiring"]


async def test_unpaid_it_is_past_due_and_then_expired(shop: Shop) -> None:
    answer = await shop.buy()
    end = await end_of(shop, answer)
    assert (await later(shop, end + DAY)).ended == 1
    assert (await shop.status_of(answer))[0] == "PAST_DUE"
    assert (await later(shop, end + 6 * DAY)).ended == 0
    assert (await later(shop, end + 7 * DAY)).ended == 1
    assert (await shop.status_of(answer))[0] == "EXPIRED"
    assert await shop.events(answer["subscription"]["id"]) == ["activated", "past_due", "expired"]
    (granted,) = await shop.grants()
    assert (granted["status"], granted["quota_left"]) == ("EXPIRED", 500), "what is left of it stays in the ledger"


async def test_paid_when_past_due_its_month_begins_with_the_payment(shop: Shop) -> None:
    answer = await shop.buy()
    await shop.db.fetch_alone(  # a month ago, as far as this subscription knows
        "UPDATE headrace.subscriptions SET started_at = started_at - interval '1 month',"
        " effective_at = effective_at - interval '1 month', expire_at = now() - interval '2 days'"
    )
    await later(shop, datetime.now().astimezone())
    assert (await shop.status_of(answer))[0] == "PAST_DUE"
    await renewed(shop, answer)
    row = await shop.one("SELECT status, effective_at > now() - interval '1 hour' AS anew FROM headrace.subscriptions")
    assert (row["status"], row["anew"]) == ("ACTIVE", True), "nobody pays for days without units"


async def test_without_renewal_it_expires_at_its_end(shop: Shop) -> None:
    answer = await shop.buy(auto_renew=False)
    assert (await later(shop, await end_of(shop, answer))).ended == 1
    assert (await shop.status_of(answer))[0] == "EXPIRED"


async def test_canceled_it_lasts_to_the_end_of_its_period(shop: Shop) -> None:
    answer = await shop.buy()
    end = await end_of(shop, answer)
    seen = (await shop.call("POST", path_of(answer, "/cancel"))).json()
    assert (seen["status"], seen["auto_renew"]) == ("ACTIVE", False)
    assert (await shop.call("POST", path_of(answer, "/cancel"))).json()["version"] == seen["version"]
    resumed = (await shop.call("POST", path_of(answer, "/resume"))).json()
    assert (resumed["canceled_at"], resumed["auto_renew"]) == (None, True)
    await shop.call("POST", path_of(answer, "/cancel"))
    assert (await later(shop, end - DAY)).ended == 0
    assert (await later(shop, end)).ended == 1
    assert (await shop.status_of(answer))[0] == "CANCELED"
    assert (await shop.call("POST", path_of(answer, "/resume"))).json()["code"] == "subscription_ended"
    assert (await shop.call("POST", path_of(answer, "/renew"), {})).json()["code"] == "subscription_ended"


async def test_a_stale_version_cancels_nothing(shop: Shop) -> None:  # W-09
    answer = await shop.buy()
    reply = await shop.call("POST", path_of(answer, "/cancel"), **{"If-Match": '"1"'})
    assert (reply.status_code, reply.json()["code"]) == (412, "precondition_failed")


async def test_canceled_before_it_is_paid_it_ends_with_its_order(shop: Shop) -> None:
    answer = await shop.order()
    assert (await shop.call("POST", path_of(answer, "/cancel"))).json()["status"] == "CANCELED"
    assert await shop.status_of(answer) == ("CANCELED", "CLOSED")
    assert shop.local.book.find(answer["order"]["id"]).state == "CLOSED", "nobody can pay it any more"
    assert await shop.events(answer["subscription"]["id"]) == []


async def test_an_upgrade_begins_at_once_and_leaves_the_old_units(shop: Shop) -> None:
    old = await shop.buy("Pro")
    refused = await shop.call("POST", "/v1/subscriptions", {"plan": "Pro"})
    assert (refused.status_code, refused.json()["code"]) == (409, "already_subscribed")
    new = await shop.buy("Team")
    assert await shop.status_of(old) == ("CANCELED", "PAID")
    assert await shop.status_of(new) == ("ACTIVE", "PAID")
    before, after = await shop.grants()
    assert (before["quota_left"], before["status"]) == (500, "ACTIVE"), "paid for, and good until its own end"
    assert (after["quota_left"], after["status"]) == (3000, "ACTIVE")
    assert await shop.events(old["subscription"]["id"]) == ["activated", "canceled"]


async def test_two_orders_that_are_both_paid_are_both_granted(shop: Shop) -> None:
    """The money is there twice: the later one lives, and the units of both can be used."""
    first, second = await shop.order("Pro"), await shop.order("Team")
    paid = [shop.local.pay(answer["order"]["id"], notify=False) for answer in (second, first)]
    for order in paid:
        await shop.tell_paid(order)
    assert await shop.status_of(second) == ("CANCELED", "PAID")
    assert await shop.status_of(first) == ("ACTIVE", "PAID")
    assert sorted(granted["quota_left"] for granted in await shop.grants()) == [500, 3000]


async def test_changing_a_plan_changes_nothing_that_was_ordered_or_granted(shop: Shop) -> None:  # W-11
    granted_before = await shop.buy("Pro")
    ordered = await shop.order("Team")
    for plan in shop.plans.values():
        await shop.manage("PATCH", f"/v1/admin/plans/{plan}", {"price_cents": 1, "monthly_quota": 7})
    await shop.tell_paid(shop.local.pay(ordered["order"]["id"]))
    assert sorted(granted["quota_total"] for granted in await shop.grants()) == [500, 3000]
    assert await shop.status_of(granted_before) == ("CANCELED", "PAID")


async def test_a_notice_that_got_lost_is_asked_for(shop: Shop) -> None:  # W-11
    answer = await shop.order()
    shop.local.pay(answer["order"]["id"], notify=False)
    soon = datetime.now().astimezone() + timedelta(minutes=2)
    assert await checking.run_once(shop.db, shop.payments, now=soon) == {"paid": 1}
    assert await shop.status_of(answer) == ("ACTIVE", "PAID")
    assert await checking.run_once(shop.db, shop.payments, now=soon + DAY) == {}


async def test_given_up_and_paid_all_the_same_it_is_asked_for_once_more(shop: Shop) -> None:  # W-11
    answer = await shop.order()
    await shop.call("POST", path_of(answer, "/cancel"))
    assert await shop.status_of(answer) == ("CANCELED", "CLOSED")
    given_up = shop.local.book.find(answer["order"]["id"])
    given_up.state = "NOTPAY"  # as if WeChat Pay had not been reached
    shop.local.pay(given_up.number, notify=False)
    soon = datetime.now().astimezone() + timedelta(minutes=2)
    assert await checking.run_once(shop.db, shop.payments, now=soon) == {}
    assert await checking.run_once(shop.db, shop.payments, now=soon + timedelta(hours=1)) == {"paid": 1}
    assert await shop.status_of(answer) == ("ACTIVE", "PAID")


async def test_given_up_and_not_paid_it_is_asked_about_once(shop: Shop) -> None:
    answer = await shop.order()
    await shop.call("POST", path_of(answer, "/cancel"))
    later = datetime.now().astimezone() + timedelta(hours=1)
    assert [await checking.run_once(shop.db, shop.payments, now=later) for _ in range(2)] == [{"closed": 1}, {}]


async def test_an_order_that_nobody_pays_is_closed(shop: Shop) -> None:  # W-11
    answer = await shop.order()
    soon = datetime.now().astimezone() + timedelta(minutes=2)
    assert await checking.run_once(shop.db, shop.payments, now=soon) == {"pending": 1}
    assert await checking.run_once(shop.db, shop.payments, now=soon + timedelta(hours=1)) == {"closed": 1}
    assert await shop.status_of(answer) == ("EXPIRED", "CLOSED")
    assert shop.local.book.find(answer["order"]["id"]).state == "CLOSED"


async def test_paid_in_the_moment_in_which_it_was_closed_it_counts(shop: Shop) -> None:
    answer = await shop.order()
    number = answer["order"]["id"]
    paid = shop.local.pay(number, notify=False)
    await shop.db.fetch_alone("UPDATE headrace.payment_orders SET status = 'CLOSED'")
    await shop.db.fetch_alone("UPDATE headrace.subscriptions SET status = 'EXPIRED'")
    assert (await shop.tell_paid(paid)).status_code == 204
    assert await shop.status_of(answer) == ("ACTIVE", "PAID")


async def test_one_whose_request_never_arrived_is_closed_without_asking(shop: Shop) -> None:
    answer = await shop.order()
    del shop.local.book.orders[answer["order"]["id"]]
    much_later = datetime.now().astimezone() + timedelta(hours=1)
    assert await checking.run_once(shop.db, shop.payments, now=much_later) == {"closed": 1}
    assert await shop.status_of(answer) == ("EXPIRED", "CLOSED")


async def test_when_wechat_pay_is_away_the_same_request_asks_again(shop: Shop) -> None:  # W-15
    routes, key = list(shop.local.app.router.routes), {"Idempotency-Key": "one"}
    shop.local.app.router.routes.clear()
    reply = await shop.call("POST", "/v1/subscriptions", {"plan": "Pro"}, **key)
    assert (reply.status_code, reply.json()["code"]) == (503, "wechat_pay_unavailable")
    rows = await shop.db.fetch_alone("SELECT id, status FROM headrace.payment_orders")
    assert [row["status"] for row in rows] == ["PENDING"], "written down before anybody was asked"
    shop.local.app.router.routes.extend(routes)
    reply = await shop.call("POST", "/v1/subscriptions", {"plan": "Pro"}, **key)
    assert reply.status_code == 201
    assert (reply.json()["order"]["id"], bool(reply.json()["order"]["code_url"])) == (rows[0]["id"], True)


async def test_a_repeated_order_is_one_order_and_can_be_paid(shop: Shop) -> None:  # W-15
    key = {"Idempotency-Key": "one"}
    first, again = [await shop.call("POST", "/v1/subscriptions", {"plan": "Pro"}, **key) for _ in range(2)]
    assert first.json()["order"]["id"] == again.json()["order"]["id"]
    assert again.json()["order"]["code_url"] == first.json()["order"]["code_url"]
    assert again.headers["Idempotency-Replayed"] == "true"
