"""One month is paid for once: waiting orders are reused, capped, and closed by a payment. W-11."""

from headrace.billing.payments import checking
from headrace.billing.payments.config import OrderConfig
from tests.billing.shop import Shop
from tests.billing.test_orders import refund

MOST = OrderConfig().max_waiting


async def test_ordering_a_plan_again_is_the_order_that_waits(shop: Shop) -> None:
    """One month could be paid three times: each request made another order."""
    first, second = await shop.order(), await shop.order()
    assert second["order"]["id"] == first["order"]["id"]
    assert second["subscription"]["id"] == first["subscription"]["id"]


async def test_an_order_on_other_terms_replaces_the_one_that_waits(shop: Shop) -> None:
    first = await shop.order()
    await shop.manage("PATCH", f"/v1/admin/plans/{shop.plans['Pro']}", {"price_cents": 3900})
    second = await shop.order()
    assert second["order"]["amount_cents"] == 3900
    assert await shop.status_of(first) == ("EXPIRED", "CLOSED")
    assert shop.local.book.find(first["order"]["id"]).state == "CLOSED", "nobody can pay it at WeChat Pay"


async def test_a_payment_closes_the_other_orders_here_and_at_wechat_pay(shop: Shop) -> None:
    """Other waiting orders stayed payable after one of them was paid."""
    kept, other = await shop.order("Pro"), await shop.order("Team")
    await shop.tell_paid(shop.local.pay(kept["order"]["id"]))
    assert await shop.status_of(kept) == ("ACTIVE", "PAID")
    assert await shop.status_of(other) == ("EXPIRED", "CLOSED")
    assert shop.local.book.find(other["order"]["id"]).state == "CLOSED"


async def test_a_second_payment_for_the_same_plan_adds_a_month(shop: Shop) -> None:
    """Paid although it was closed: the money buys the month after, and takes nothing away."""
    first = await shop.order()
    await shop.db.fetch_alone("UPDATE headrace.payment_orders SET expires_at = now()")
    second = await shop.order()
    await shop.tell_paid(shop.local.pay(second["order"]["id"]))
    late = shop.local.book.find(first["order"]["id"])
    late.state, late.transaction_id = "SUCCESS", "4200000000"  # WeChat Pay took it a moment before
    assert (await shop.tell_paid(late)).status_code == 204
    one, two = await shop.grants()
    assert two["period_start"] == one["period_end"]
    assert {one["subscription_id"], two["subscription_id"]} == {second["subscription"]["id"]}
    assert await shop.status_of(second) == ("ACTIVE", "PAID")
    # The refund of the second payment takes back the second month alone.
    await refund(shop, first["order"]["id"])
    assert (await shop.tell_refunded(late)).status_code == 204
    one, two = await shop.grants()
    assert (one["status"], two["status"]) == ("ACTIVE", "SUSPENDED")
    assert await shop.status_of(second) == ("ACTIVE", "PAID")


async def test_an_order_that_was_paid_before_it_was_closed_is_settled_at_once(shop: Shop) -> None:
    """Its notice was lost: it stayed CLOSED here and paid at WeChat Pay until its time was over."""
    first, second = await shop.order("Pro"), await shop.order("Team")
    shop.local.pay(first["order"]["id"], notify=False)
    await shop.tell_paid(shop.local.pay(second["order"]["id"]))
    assert (await shop.status_of(first))[1] == "PAID"
    assert (await shop.status_of(second))[1] == "PAID"
    assert sorted(granted["quota_left"] for granted in await shop.grants()) == [500, 3000]


async def test_ordering_again_what_was_just_paid_finds_the_payment(shop: Shop) -> None:
    first = await shop.order()
    shop.local.pay(first["order"]["id"], notify=False)
    await shop.db.fetch_alone("UPDATE headrace.payment_orders SET expires_at = now()")
    again = await shop.call("POST", "/v1/subscriptions", {"plan": "Pro"})
    assert (again.status_code, again.json()["code"]) == (409, "order_not_payable")
    assert await shop.status_of(first) == ("ACTIVE", "PAID")
    assert len(await shop.grants()) == 1


async def test_a_closed_order_is_asked_about_again_after_a_check_that_was_killed(shop: Shop) -> None:
    """It was asked about once: a process killed at that moment left money without a subscription."""
    first = await shop.order()
    await shop.call("POST", f"/v1/subscriptions/{first['subscription']['id']}/cancel")
    late = shop.local.book.find(first["order"]["id"])
    late.state, late.transaction_id = "SUCCESS", "4200000001"
    order_id = first["order"]["id"]
    # Its end came ten minutes ago, and the process that asked about it a minute later was killed.
    await shop.db.fetch_alone(
        "UPDATE headrace.payment_orders SET expires_at = now() - interval '10 minutes',"
        " checked_at = now() - interval '9 minutes' WHERE id = $1",
        order_id,
    )
    assert await checking.run_once(shop.db, shop.payments) == {"paid": 1}
    assert await checking.run_once(shop.db, shop.payments) == {}


async def test_waiting_orders_of_a_user_are_capped(shop: Shop) -> None:
    for number in range(MOST):
        plan = {"name": f"Plan {number}", "price_cents": 100, "monthly_quota": 1}
        await shop.manage("POST", "/v1/admin/plans", plan)
        await shop.order(str(plan["name"]))
    refused = await shop.call("POST", "/v1/subscriptions", {"plan": "Pro"})
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_orders")


async def test_the_plan_that_a_refunded_one_replaced_is_back(shop: Shop) -> None:
    """The first plan stayed CANCELED though it was paid until its end."""
    first = await shop.buy("Pro")
    second = await shop.buy("Team")
    assert await shop.status_of(first) == ("CANCELED", "PAID")
    await refund(shop, second["order"]["id"])
    await shop.tell_refunded(shop.local.book.find(second["order"]["id"]))
    assert await shop.status_of(second) == ("REFUNDED", "REFUNDED")
    assert await shop.status_of(first) == ("ACTIVE", "PAID")
    assert await shop.events(first["subscription"]["id"]) == ["activated", "canceled", "activated"]
    resumed = await shop.call("POST", f"/v1/subscriptions/{first['subscription']['id']}/resume")
    assert (resumed.status_code, resumed.json()["auto_renew"]) == (200, True)


async def test_a_renewal_needs_no_body(shop: Shop) -> None:
    """`renew` without a body was refused with 422."""
    bought = await shop.buy()
    renewed = await shop.call("POST", f"/v1/subscriptions/{bought['subscription']['id']}/renew")
    assert (renewed.status_code, renewed.json()["order"]["kind"]) == (201, "RENEWAL")
