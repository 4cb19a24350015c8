"""What packages tell fits the catalogue, whatever is told of. Events of tasks: tests/tasks/test_events.py."""

from datetime import UTC, datetime

import pytest

from headrace.audit import Who
from headrace.billing.subscriptions import events as subscriptions
from headrace.billing.subscriptions.model import Subscription, SubscriptionStatus
from headrace.database import Database, Tx
from headrace.outbox.catalogue import EVENT_TYPES, faults
from headrace.webhooks import automatic
from headrace.webhooks.resending import send_test
from tests.webhooks import stand

TOLD = "SELECT event_type, event_version, payload_json, user_id FROM headrace.outbox_events"


@pytest.mark.parametrize("what", [each.name for each in EVENT_TYPES if each.group == "subscription"])
@pytest.mark.parametrize("status", SubscriptionStatus)
async def test_subscriptions(tx: Tx, what: str, status: SubscriptionStatus) -> None:
    now = datetime.now(UTC)
    told = Subscription(
        id="sub_1",
        user_id="u_1",
        plan_id="plan_1",
        status=status,
        channel="wechat",
        external_order_id=None,
        started_at=now,
        effective_at=now,
        expire_at=None if status is SubscriptionStatus.PENDING else now,
        canceled_at=None,
        auto_renew=True,
        version=0,
        created_at=now,
        updated_at=now,
    )
    await subscriptions.append(tx, Who.system(), what.partition(".")[2], told)
    (row,) = await tx.fetch(TOLD)
    assert (row["event_type"], row["user_id"]) == (what, "u_1")
    assert faults(what, row["event_version"], row["payload_json"]) == []


async def test_endpoints_that_are_paused_disabled_and_tested(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    endpoint, _ = await stand.make_endpoint(db, ada, "https://example.com/hooks")
    async with db.transaction() as tx:
        tested = await send_test(tx, ada, endpoint.id)
        await automatic.pause_failing(tx, endpoint)
        await automatic.disable_gone(tx, endpoint.id)
    rows = await db.fetch_alone(TOLD)
    assert {row["event_type"] for row in rows} == {"webhook.endpoint.paused", "webhook.endpoint.disabled"}
    for row in rows:
        assert row["user_id"] == ada.user_id
        assert faults(row["event_type"], row["event_version"], row["payload_json"]) == []
    # A test looks as every other event does: whoever reads one reads it.
    body = tested.request_body
    assert body is not None
    assert body.keys() == {
        *("id", "type", "version", "created_at", "timestamp", "aggregate", "user_id", "trace_id", "data"),
    }
    assert (body["id"], body["aggregate"]) == (tested.event_id, {"type": "webhook_endpoint", "id": endpoint.id})
    assert faults(body["type"], body["version"], body["data"]) == []
