"""Recipes of tasks, schedules, webhooks, operators' acts, payments and files."""

from datetime import UTC, datetime, timedelta

import asyncpg

from headrace import ids
from tests.assets.stand import png
from tests.web.recipes.base import Sent, recipe
from tests.web.world import PASSWORD, PLAN, World

RISK = {
    "category": "COST",
    "severity": "HIGH",
    "trigger_condition": "the bill doubles",
    "mitigation_plan": "watch it",
    "owner": "ada",
}


@recipe("POST /v1/tasks")
async def _(world: World) -> Sent:
    return Sent(body={"type": "anything"})


@recipe("POST /v1/tasks/batch")
async def _(world: World) -> Sent:
    return Sent(body={"tasks": [{"type": "anything"}, {"type": "anything"}]})


@recipe("POST /v1/tasks/{task_id}/cancel")
async def _(world: World) -> Sent:
    return Sent({"task_id": await world.task()})


@recipe("POST /v1/tasks/{task_id}/retry", "DELETE /v1/tasks/{task_id}")
async def _(world: World) -> Sent:
    return Sent({"task_id": await world.canceled_task()})


@recipe("POST /v1/queues/{name}/pause")
async def _(world: World) -> Sent:
    return Sent({"name": "default"})


@recipe("POST /v1/queues/{name}/resume")
async def _(world: World) -> Sent:
    await world.send("POST", "/v1/queues/paused/pause?create=true")
    return Sent({"name": "paused"})


@recipe("PUT /v1/queues/{name}/limit")
async def _(world: World) -> Sent:
    return Sent({"name": "default"}, {"max_running": 3})


@recipe("POST /v1/locks")
async def _(world: World) -> Sent:
    return Sent(body={"key": "free"})


@recipe("POST /v1/locks/release")
async def _(world: World) -> Sent:
    token = (await world.send("POST", "/v1/locks", {"key": "held"})).json()["token"]
    return Sent(body={"key": "held", "token": token})


@recipe("POST /v1/locks/force-release")
async def _(world: World) -> Sent:
    await world.send("POST", "/v1/locks", {"key": "taken"})
    return Sent(body={"key": "taken"})


@recipe("POST /v1/webhooks/endpoints")
async def _(world: World) -> Sent:
    return Sent(body={"name": "new", "url": "https://example.com/new", "subscribed_events": ["*"]})


@recipe(
    "PATCH /v1/webhooks/endpoints/{endpoint_id}",
    "DELETE /v1/webhooks/endpoints/{endpoint_id}",
    "POST /v1/webhooks/endpoints/{endpoint_id}/pause",
    "POST /v1/webhooks/endpoints/{endpoint_id}/test",
)
async def _(world: World) -> Sent:
    return Sent({"endpoint_id": await world.endpoint()}, {"name": "renamed"})


@recipe("POST /v1/webhooks/endpoints/{endpoint_id}/rotate-secret")
async def _(world: World) -> Sent:
    return Sent({"endpoint_id": await world.endpoint()}, {})


@recipe("POST /v1/webhooks/endpoints/{endpoint_id}/resume")
async def _(world: World) -> Sent:
    endpoint_id = await world.endpoint()
    await world.send("POST", f"/v1/webhooks/endpoints/{endpoint_id}/pause")
    return Sent({"endpoint_id": endpoint_id})


async def _failed_delivery(world: World) -> str:
    delivery_id = await world.delivery()
    await world.db.fetch_alone("DELETE FROM headrace.webhook_queue WHERE delivery_id = $1", delivery_id)
    await world.db.fetch_alone(
        "UPDATE headrace.webhook_deliveries SET status = 'DEAD', next_retry_at = NULL WHERE delivery_id = $1",
        delivery_id,
    )
    return delivery_id


@recipe("POST /v1/webhooks/endpoints/{endpoint_id}/resend")
async def _(world: World) -> Sent:
    delivery_id = await _failed_delivery(world)
    delivery = (await world.send("GET", f"/v1/webhooks/deliveries/{delivery_id}")).json()
    return Sent({"endpoint_id": delivery["endpoint_id"]}, {"since": "2020-01-01T00:00:00Z"})


@recipe("POST /v1/webhooks/deliveries/{delivery_id}/resend")
async def _(world: World) -> Sent:
    return Sent({"delivery_id": await _failed_delivery(world)})


@recipe("PUT /v1/notifications/language")
async def _(world: World) -> Sent:
    token, _ = await world.session()
    return Sent(body={"language": "zh"}, token=token)


@recipe("POST /v1/schedules")
async def _(world: World) -> Sent:
    return Sent(body={"name": "nightly", "type": "anything", "interval": 3600})


@recipe(
    "PATCH /v1/schedules/{schedule_id}",
    "DELETE /v1/schedules/{schedule_id}",
    "POST /v1/schedules/{schedule_id}/disable",
    "POST /v1/schedules/{schedule_id}/run",
)
async def _(world: World) -> Sent:
    return Sent({"schedule_id": await world.schedule()}, {"priority": 3})


@recipe("POST /v1/schedules/{schedule_id}/enable")
async def _(world: World) -> Sent:
    uid = await world.schedule()
    await world.send("POST", f"/v1/schedules/{uid}/disable")
    return Sent({"schedule_id": uid})


@recipe("POST /v1/executions/{execution_id}/cancel")
async def _(world: World) -> Sent:
    run = (await world.send("POST", f"/v1/schedules/{await world.schedule()}/run")).json()
    return Sent({"execution_id": run["id"]})


@recipe("POST /v1/me/deletion")
async def _(world: World) -> Sent:
    return Sent(body={"password": PASSWORD}, token=(await world.session())[0])


@recipe("POST /v1/admin/users/{user_id}/deletion")
async def _(world: World) -> Sent:
    return Sent({"user_id": (await world.user())["id"]}, {})


@recipe("DELETE /v1/admin/users/{user_id}/deletion")
async def _(world: World) -> Sent:
    user_id = (await world.user())["id"]
    await world.send("POST", f"/v1/admin/users/{user_id}/deletion", {})
    return Sent({"user_id": user_id})


@recipe("PUT /v1/admin/configs/{key}")
async def _(world: World) -> Sent:
    return Sent({"key": "features"}, {"value": {"beta": True}})


@recipe("DELETE /v1/admin/configs/{key}")
async def _(world: World) -> Sent:
    await world.send("PUT", "/v1/admin/configs/contact", {"value": {}})
    return Sent({"key": "contact"})


@recipe("POST /v1/admin/entitlements/{entitlement_id}/adjust")
async def _(world: World) -> Sent:
    return Sent({"entitlement_id": await world.entitlement()}, {"units": 5, "reason": "the outage of Monday"})


@recipe("POST /v1/tasks/bulk")
async def _(world: World) -> Sent:
    return Sent(body={"action": "cancel", "filter": {"ids": [await world.task()]}, "expected": 1})


@recipe("POST /v1/schedules/bulk")
async def _(world: World) -> Sent:
    return Sent(body={"action": "disable", "filter": {"ids": [await world.schedule()]}, "expected": 1})


@recipe("PUT /v1/me/views")
async def _(world: World) -> Sent:
    view = {"name": "what failed", "path": "/operators/tasks?status=FAILED"}
    return Sent(body={"views": [view]}, token=(await world.session())[0])


@recipe("POST /v1/admin/audit/verify")
async def _(world: World) -> Sent:
    return Sent(body={})


@recipe("POST /v1/admin/ledger/verify")
async def _(world: World) -> Sent:
    return Sent()


@recipe("POST /v1/admin/risks")
async def _(world: World) -> Sent:
    return Sent(body=RISK)


@recipe("PATCH /v1/admin/risks/{risk_id}")
async def _(world: World) -> Sent:
    risk = (await world.send("POST", "/v1/admin/risks", RISK)).json()
    return Sent({"risk_id": risk["risk_id"]}, {"owner": "somebody else"})


@recipe("DELETE /v1/admin/risks/{risk_id}")
async def _(world: World) -> Sent:
    risk = (await world.send("POST", "/v1/admin/risks", RISK)).json()
    return Sent({"risk_id": risk["risk_id"]})


@recipe("POST /v1/admin/plans")
async def _(world: World) -> Sent:
    return Sent(body=PLAN)


@recipe("PATCH /v1/admin/plans/{plan_id}", "DELETE /v1/admin/plans/{plan_id}")
async def _(world: World) -> Sent:
    return Sent({"plan_id": await world.plan()}, {"price_cents": 1900})


@recipe("POST /v1/subscriptions")
async def _(world: World) -> Sent:
    return Sent(body={"plan": await world.plan()})


@recipe("POST /v1/subscriptions/{subscription_id}/cancel")
async def _(world: World) -> Sent:
    return Sent({"subscription_id": (await world.order())["subscription"]["id"]})


@recipe("POST /v1/subscriptions/{subscription_id}/renew")
async def _(world: World) -> Sent:
    return Sent({"subscription_id": (await world.bought())["subscription"]["id"]}, {})


@recipe("POST /v1/subscriptions/{subscription_id}/resume")
async def _(world: World) -> Sent:
    subscription_id = (await world.bought())["subscription"]["id"]
    await world.send("POST", f"/v1/subscriptions/{subscription_id}/cancel")
    return Sent({"subscription_id": subscription_id})


@recipe("POST /v1/payments/{order_id}/check")
async def _(world: World) -> Sent:
    order_id = (await world.order())["order"]["id"]
    world.local.pay(order_id)
    return Sent({"order_id": order_id})


@recipe("POST /v1/payments/wechat/notify")
async def _(world: World) -> Sent:
    paid = world.local.pay((await world.order())["order"]["id"])
    body, headers = world.local.notice("TRANSACTION.SUCCESS", paid)
    return Sent(content=body, headers=headers)


@recipe("POST /v1/admin/payments/{order_id}/refund")
async def _(world: World) -> Sent:
    return Sent({"order_id": (await world.bought())["order"]["id"]}, {"reason": "as agreed"})


@recipe("POST /v1/admin/payments/{order_id}/resolve")
async def _(world: World) -> Sent:
    order_id = (await world.order())["order"]["id"]
    await world.db.fetch_alone("UPDATE headrace.payment_orders SET problem = 'amount_mismatch' WHERE id = $1", order_id)
    return Sent({"order_id": order_id}, {"reason": "paid back by hand"})


DEAD_EVENT = """
INSERT INTO headrace.outbox_events
  (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json, status)
VALUES ($1, 'account.deleted', 1, 'account', 'u_1', '{}', 'DEAD')
"""


@recipe("POST /v1/admin/outbox/events/{outbox_event_id}/revive", "POST /v1/admin/outbox/revive")
async def _(world: World) -> Sent:
    event_id = ids.new("evt")
    await world.db.fetch_alone(DEAD_EVENT, event_id)
    return Sent({"outbox_event_id": event_id}, {})


@recipe("POST /v1/assets")
async def _(world: World) -> Sent:
    return Sent(body=png(shade=next(world._numbers)))


@recipe("POST /v1/assets/{asset_id}/links")
async def _(world: World) -> Sent:
    return Sent({"asset_id": await world.asset()}, {"expires_in": 60})


@recipe("DELETE /v1/assets/{asset_id}")
async def _(world: World) -> Sent:
    return Sent({"asset_id": await world.asset()})


@recipe("POST /v1/removals")
async def _(world: World) -> Sent:
    return Sent(body={"asset_ids": [await world.asset()], "rights": {"basis": "OWNER"}})


@recipe("POST /v1/removals/{task_id}/return")
async def _(world: World) -> Sent:
    return Sent({"task_id": await world.removed()})


@recipe("POST /v1/assets/{asset_id}/detect")
async def _(world: World) -> Sent:
    return Sent({"asset_id": await world.asset()}, {})


@recipe("POST /v1/uploads/{upload_id}/complete")
async def _(world: World) -> Sent:
    return Sent({"upload_id": await world.whole_upload()})


@recipe("POST /v1/tasks/{task_id}/result/links")
async def _(world: World) -> Sent:
    return Sent({"task_id": await world.result()}, {})


# Operations that change nothing that anybody could want to know of, each with the reason.
@recipe("POST /v1/admin/partitions")
async def _(world: World) -> Sent:
    owner = await asyncpg.connect(world.db.config.url.partition("?")[0])
    await owner.execute(f"DROP TABLE headrace.audit_events{datetime.now(UTC) + timedelta(days=32):_y%Ym%m}")
    await owner.close()
    return Sent()


NOT_CHANGES: dict[str, str] = {
    "POST /v1/auth/password/forgot": "answered before anything is looked up: tests/accounts/test_recovery.py",
    "POST /v1/uploads": "nothing is a file before it is complete, and that is told",
    "PUT /v1/uploads/{upload_id}/parts/{number}": "a part of what is not a file yet",
    "POST /v1/uploads/{upload_id}/links": "the same; only the storage takes these",
    "DELETE /v1/uploads/{upload_id}": "it was no file",
    "POST /v1/removals/quote": "asks what an order would cost",
    "POST /v1/schedules/preview": "asks when a rhythm would be due",
    "POST /v1/notifications/{notification_id}/read": "what somebody has read is nobody else's business",
    "POST /v1/notifications/read-all": "the same",
    "POST /v1/locks/renew": "the lock is held as before; its history has its end",
}
