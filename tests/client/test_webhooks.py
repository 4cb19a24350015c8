"""``client.webhooks`` and ``client.notifications`` against the real API. W-13, W-14."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from headrace import ids
from headrace.client import Client, NewEndpoint, SyncClient
from headrace.client.errors import ApiError
from headrace.database import Database
from headrace.notifications.live import open_inbox
from headrace.notifications.routes import create_router as notifications
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from headrace.webhooks.routes import create_router as webhooks
from tests.client.conftest import served
from tests.edge import stand as edge
from tests.webhooks import stand

KEY = f"{ids.SYSTEM_USER},ADMIN,admin,webhooks:read,webhooks:write,notifications:read,notifications:write"
NOTIFY = """
INSERT INTO headrace.notifications (user_id, type, title, body) VALUES ($1, 'TASK_FAILED', $2, 'b') RETURNING id
"""


@pytest.fixture
async def url(db: Database) -> AsyncIterator[str]:
    async with open_inbox(db) as inbox:
        routers = [webhooks(stand.HOOKS), notifications(inbox)]
        async with served(create_app(edge.services(db), WebConfig(), routers=routers)) as address:
            yield address
            inbox.stop()


async def test_the_life_of_an_endpoint(url: str) -> None:
    async with Client(url, KEY) as client:
        made = await client.webhooks.create(NewEndpoint("mine", "https://example.com/", ["task.*"], max_retries=2))
        assert made.secret is not None
        assert made.secret not in repr(made)
        changed = await client.webhooks.update(made.id, name="other", allow_ips=["1.2.3.4"])
        assert (changed.name, changed.allow_ips, changed.secret) == ("other", ["1.2.3.4/32"], None)
        assert (await client.webhooks.update(made.id, allow_ips=None)).allow_ips is None
        assert (await client.webhooks.pause(made.id)).status == "PAUSED"
        assert (await client.webhooks.resume(made.id)).status == "ACTIVE"
        assert (await client.webhooks.rotate_secret(made.id)).secret != made.secret
        delivery = await client.webhooks.test(made.id)
        assert (await client.webhooks.delivery(delivery.id)).request_body["type"] == "webhook.test"
        assert [each.id async for each in client.webhooks.deliveries(endpoint_id=made.id)] == [delivery.id]
        with pytest.raises(ApiError, match="being sent"):
            await client.webhooks.resend(delivery.id)
        assert await client.webhooks.resend_failed(made.id, since=made.created_at) == 0
        assert (await client.webhooks.statistics(made.id)).waiting == 1
        assert [each.id async for each in client.webhooks.list()] == [made.id]
        await client.webhooks.delete(made.id)
        with pytest.raises(ApiError, match="no such endpoint"):
            await client.webhooks.get(made.id)


async def test_without_an_event_loop(url: str) -> None:
    def work() -> list[str]:
        with SyncClient(url, KEY) as client:
            made = client.webhooks.create(NewEndpoint("mine", "https://example.com/", ["*"]))
            client.webhooks.pause(made.id)
            assert client.notifications.unread_count() == 0
            assert list(client.notifications.list()) == []
            return [each.status for each in client.webhooks.list()]

    assert await asyncio.to_thread(work) == ["PAUSED"]


async def test_notifications_as_they_come(url: str, db: Database) -> None:
    async with Client(url, KEY) as client:
        (first,) = await db.fetch_alone(NOTIFY, ids.SYSTEM_USER, "one")
        assert await client.notifications.unread_count() == 1
        assert (await client.notifications.mark_read(first["id"])).is_read
        await client.notifications.set_language("zh")
        (second,) = await db.fetch_alone(NOTIFY, ids.SYSTEM_USER, "two")
        async with asyncio.timeout(60):
            async for told in client.notifications.follow(after=first["id"]):
                assert (told.id, told.title) == (second["id"], "two")
                break
        assert await client.notifications.mark_all_read(up_to=second["id"]) == 1
        assert [each.title async for each in client.notifications.list(unread=False)] == ["two", "one"]
