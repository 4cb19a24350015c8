"""From the wish for a plan to units that can be used. W-11."""

from tests.billing.shop import Shop


async def test_who_pays_has_the_plan(shop: Shop) -> None:  # W-11
    answer = await shop.order()
    assert (answer["subscription"]["status"], answer["order"]["status"]) == ("PENDING", "PENDING")
    assert answer["order"]["code_url"].startswith(shop.local.url)
    assert await shop.grants() == []

    assert (await shop.tell_paid(shop.local.pay(answer["order"]["id"]))).status_code == 204
    assert await shop.status_of(answer) == ("ACTIVE", "PAID")
    (granted,) = await shop.grants()
    assert (granted["quota_total"], granted["quota_left"], granted["consume_unit"]) == (500, 500, 500)
    assert granted["idempotency_key"].endswith(f":grant:{granted['id']}")
    seen = (await shop.call("GET", f"/v1/subscriptions/{answer['subscription']['id']}")).json()
    assert seen["status"] == "ACTIVE"
    assert seen["expire_at"] > seen["effective_at"]
    order = (await shop.call("GET", f"/v1/payments/{answer['order']['id']}")).json()
    assert (order["status"], order["entitlement_id"]) == ("PAID", granted["id"])
    assert await shop.events(answer["subscription"]["id"]) == ["activated"]
