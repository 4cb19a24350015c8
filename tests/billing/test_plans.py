"""Plans: the price list, and what administrators do with it. W-11."""

from headrace.billing.plans.model import FREE_PLAN
from tests.billing.shop import Shop


async def test_the_price_list_is_for_everybody_and_in_its_order(shop: Shop) -> None:
    await shop.manage("PATCH", f"/v1/admin/plans/{shop.plans['Pro']}", {"sort_order": 5})
    await shop.manage("POST", "/v1/admin/plans", {**PRIVATE, "is_active": False})
    reply = await shop.call("GET", "/v1/plans", Authorization="")
    assert [plan["name"] for plan in reply.json()["items"]] == ["Free", "Team", "Pro"]


PRIVATE = {"name": "Private", "price_cents": 100, "monthly_quota": 1}
FEATURES = [
    {"feature": "units", "media_type": "VIDEO", "quality": "HIGH", "units": 2, "per_seconds": 10},
    {"feature": "max_file_bytes", "bytes": 1 << 30},
    {"feature": "retention_days", "of": "results", "days": 90},
]


async def test_a_plan_is_made_changed_and_deleted(shop: Shop) -> None:
    send = shop.manage
    made = (await send("POST", "/v1/admin/plans", {**PRIVATE, "features": FEATURES})).json()
    assert made["features"] == FEATURES
    path = f"/v1/admin/plans/{made['id']}"
    changed = (await send("PATCH", path, {"price_cents": 200, "features": []})).json()
    assert (changed["price_cents"], changed["features"], changed["version"]) == (200, [], 2)
    stale = await shop.boss.patch(path, json={"price_cents": 1}, headers={"If-Match": '"1"'})
    assert stale.json()["code"] == "precondition_failed"
    taken = await shop.boss.patch(path, json={"name": "Pro"})
    assert taken.json()["code"] == "plan_name_taken"
    await send("DELETE", path)
    assert (await shop.boss.get(path)).json()["code"] == "plan_not_found"


async def test_what_is_in_use_stays(shop: Shop) -> None:
    await shop.order()
    for plan in (shop.plans["Pro"], FREE_PLAN):
        refused = await shop.boss.delete(f"/v1/admin/plans/{plan}")
        assert (refused.status_code, refused.json()["code"]) == (409, "plan_in_use")


async def test_the_free_plan_stays_free(shop: Shop) -> None:
    refused = await shop.boss.patch(f"/v1/admin/plans/{FREE_PLAN}", json={"price_cents": 1})
    assert (refused.status_code, refused.json()["code"]) == (400, "plan_invalid")


async def test_features_have_a_form(shop: Shop) -> None:
    for wrong in ({"feature": "units"}, {"feature": "magic"}, {"feature": "concurrency", "tasks": 0}, "units"):
        refused = await shop.boss.post("/v1/admin/plans", json={**PRIVATE, "features": [wrong]})
        assert refused.status_code == 422, wrong


async def test_what_is_not_for_sale_cannot_be_ordered(shop: Shop) -> None:
    await shop.manage("PATCH", f"/v1/admin/plans/{shop.plans['Pro']}", {"is_active": False})
    await shop.manage("PATCH", f"/v1/admin/plans/{shop.plans['Team']}", {"currency": "USD"})
    for plan, code in (("Pro", "plan_not_for_sale"), ("Team", "plan_not_for_sale"), (FREE_PLAN, "plan_not_for_sale")):
        assert (await shop.call("POST", "/v1/subscriptions", {"plan": plan})).json()["code"] == code
    assert (await shop.call("POST", "/v1/subscriptions", {"plan": "none"})).json()["code"] == "plan_not_found"
