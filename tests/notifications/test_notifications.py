"""The five types, once for each event, in the user's language; read marks; live. W-14."""

import asyncio
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI

from headrace import outbox
from headrace.access import Caller
from headrace.database import Database, Tx
from headrace.database_errors import DatabaseUnavailable
from headrace.edge.streams import Heartbeat, Revoked, StreamLimits
from headrace.notifications import service, store
from headrace.notifications.consumer import NotificationConsumer
from headrace.notifications.erasure import ForgetNotifications
from headrace.notifications.live import Inbox, open_inbox
from headrace.notifications.model import Notification
from headrace.notifications.routes import create_router
from headrace.outbox import Event
from headrace.outbox.consumers import StoredEvent
from headrace.outbox.relay import Relay
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand as edge
from tests.webhooks.stand import make_user, until


async def tell(db: Database, *events: Event) -> None:
    async with db.transaction() as tx:
        await outbox.append(tx, list(events))
    relay = Relay(db, [NotificationConsumer()])
    while (await relay.run_once()).published:
        pass


def task(user_id: str, type: str, kind: str = "IMAGE", **data: Any) -> Event:  # noqa: A002
    return Event(type, "task", "tsk_1", {"task_id": "tsk_1", "type": kind, "user_id": user_id, **data}, user_id=user_id)


def subscription(user_id: str, what: str) -> Event:
    payload = {"subscription_id": "sub_1", "user_id": user_id, "expire_at": "2026-12-24T00:00:00+00:00"}
    return Event(f"subscription.{what}", "subscription", "sub_1", payload)  # without user_id beside the payload


async def inbox_of(db: Database, caller: Caller) -> list[Notification]:
    async with db.transaction() as tx:
        return await service.list_notifications(tx, caller, limit=100)


async def test_four_types_come_by_events_the_fifth_with_the_end_of_an_account(db: Database) -> None:
    ada = await make_user(db, "ada")
    await tell(
        db,
        task(ada.user_id, "task.succeeded"),
        task(ada.user_id, "task.failed", "PDF", error_message="The file is broken"),
        subscription(ada.user_id, "activated"),
        subscription(ada.user_id, "expiring"),
        task(ada.user_id, "task.created"),
        task(ada.user_id, "task.succeeded", "report.build"),  # a program's own type: nobody's inbox
        subscription(ada.user_id, "canceled"),
    )
    told = {each.type.value: each for each in await inbox_of(db, ada)}
    assert len(told) == 4
    assert told["TASK_SUCCEEDED"].title == "Your image is ready"
    assert told["TASK_FAILED"].body == "Task tsk_1 has failed: The file is broken. Nothing was charged for it."
    assert told["SUBSCRIPTION_EXPIRING"].body.startswith("Your subscription ends on 2026-12-24.")
    assert told["SUBSCRIPTION_ACTIVATED"].payload == {
        "subscription_id": "sub_1",
        "expire_at": "2026-12-24T00:00:00+00:00",
    }


async def test_it_names_the_file(db: Database) -> None:
    ada = await make_user(db, "ada")
    submit = "SELECT headrace.submit('shrink', title => 'holiday.jpg', unknown_type => 'wait') AS id"
    (made,) = await db.fetch_alone(submit)
    await tell(db, task(ada.user_id, "task.succeeded", task_id=made["id"]))
    (told,) = await inbox_of(db, ada)
    assert told.title == "Your image is ready: holiday.jpg"
    assert (told.payload or {})["title"] == "holiday.jpg"


BATCH = """
WITH made AS (
  INSERT INTO headrace.tasks
    (id, user_id, title, task_type, status, error_code, finished_at, created_at, updated_at, started_at)
  SELECT 'tsk_' || n, $1, n || '.jpg', 'shrink', status, nullif(code, ''),
         CASE WHEN status IN ('SUCCEEDED', 'FAILED', 'CANCELED') THEN now() END, now(), now(), now()
  FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS given (status, code, n)
  RETURNING id
)
INSERT INTO headrace.removals (task_id, user_id, asset_id, asset_sha256, units, batch_id, rights_basis, principal_uid)
SELECT id, $1, 'ast_1', repeat('0', 64), 1, 'bat_1', 'OWNER', $1 FROM made
"""


async def test_a_batch_has_one_notification_when_its_last_file_has_ended(db: Database) -> None:  # S21
    ada = await make_user(db, "ada")
    ends = [("SUCCEEDED", ""), ("SUCCEEDED", ""), ("FAILED", "NO_MARK"), ("FAILED", "CORRUPT"), ("CANCELED", "")]
    async with db.transaction() as tx:
        states, codes = zip(("INPAINTING", ""), *ends, strict=True)
        await tx.execute(BATCH, ada.user_id, list(states), list(codes))
    told = [task(ada.user_id, f"task.{status.lower()}", task_id=f"tsk_{n}") for n, (status, _) in enumerate(ends, 2)]
    await tell(db, *told)
    assert await inbox_of(db, ada) == [], "one file is still running"
    await db.fetch_alone("UPDATE headrace.tasks SET status = 'CANCELED', finished_at = now() WHERE id = 'tsk_1'")
    for again in ("tsk_1", "tsk_2"):
        await tell(db, task(ada.user_id, "task.canceled", task_id=again))
    (only,) = await inbox_of(db, ada)
    assert only.title == "Your 6 files are processed"
    assert only.body == "2 ready, 1 waiting for your decision, 1 failed."
    ended = {"total": 6, "succeeded": 2, "needs_input": 1, "failed": 1}
    assert (only.type, only.payload) == ("TASK_SUCCEEDED", {"batch_id": "bat_1", **ended})


async def test_an_event_that_comes_twice_is_told_once(db: Database) -> None:
    ada = await make_user(db, "ada")
    event = task(ada.user_id, "task.succeeded")
    stored = StoredEvent(1, event, (await db.fetch_alone("SELECT now() AS now"))[0]["now"])
    for _ in range(2):
        async with db.transaction() as tx:
            await NotificationConsumer().receive(tx, [stored, stored])
    assert len(await inbox_of(db, ada)) == 1


async def test_chinese_for_those_who_want_it(db: Database) -> None:
    ada, li = await make_user(db, "ada"), await make_user(db, "li")
    async with db.transaction() as tx:
        await service.set_language(tx, li, "zh")
        assert await service.get_language(tx, li) == "zh"
        assert await service.get_language(tx, ada) == "en"
    await tell(db, task(ada.user_id, "task.succeeded"), task(li.user_id, "task.failed", "VIDEO", error_code="E42"))
    (hers,) = await inbox_of(db, ada)
    (his,) = await inbox_of(db, li)
    assert hers.title == "Your image is ready"
    assert (his.title, his.body) == ("您的视频处理失败", "任务 tsk_1 失败：E42。本次未扣费。")
    # Everybody's, where nobody has said otherwise.
    await db.fetch_alone("INSERT INTO headrace.system_configs (config_key, config_value) VALUES ('language', '\"zh\"')")
    await tell(db, task(ada.user_id, "task.succeeded", "PPT"))
    assert (await inbox_of(db, ada))[0].title == "您的演示文稿已处理完成"


async def test_nobody_is_told_after_their_end(db: Database) -> None:
    ada = await make_user(db, "ada")
    await tell(db, task(ada.user_id, "task.succeeded"))
    async for _ in ForgetNotifications().erase(db, ada.user_id):
        pass
    assert await inbox_of(db, ada) == []
    await db.fetch_alone("UPDATE headrace.users SET status = 'DELETED', deleted_at = now() WHERE id = $1", ada.user_id)
    await tell(db, task(ada.user_id, "task.succeeded"))
    assert await inbox_of(db, ada) == []


@pytest.fixture
async def app(db: Database) -> Any:
    async with open_inbox(db, StreamLimits()) as inbox:
        yield create_app(edge.services(db), WebConfig(), routers=[create_router(inbox)])


async def test_list_count_and_read_over_http(app: FastAPI, db: Database) -> None:
    ada, eve = await make_user(db, "ada"), await make_user(db, "eve")
    await tell(db, *(task(ada.user_id, "task.succeeded", attempt=number) for number in range(3)))
    async with (
        edge.client(app, Authorization=f"Bearer {ada.user_id}") as hers,
        edge.client(app, Authorization=f"Bearer {eve.user_id}") as others,
    ):
        page = (await hers.get("/v1/notifications?limit=2")).json()
        rest = (await hers.get(f"/v1/notifications?limit=2&cursor={page['next_cursor']}")).json()
        ids = [item["id"] for item in page["items"] + rest["items"]]
        assert ids == sorted(ids, reverse=True)
        assert len(ids) == 3
        assert (await hers.get("/v1/notifications/unread-count")).json() == {"unread": 3}

        assert (await others.post(f"/v1/notifications/{ids[0]}/read")).status_code == 404
        for _ in range(2):
            marked = (await hers.post(f"/v1/notifications/{ids[0]}/read")).json()
            assert marked["is_read"]
        assert len((await hers.get("/v1/notifications?unread=true")).json()["items"]) == 2
        assert len((await hers.get("/v1/notifications?unread=false")).json()["items"]) == 1
        assert (await hers.post("/v1/notifications/read-all", json={"up_to": ids[2]})).json() == {"marked": 1}
        assert (await hers.post("/v1/notifications/read-all", json={})).json() == {"marked": 1}
        assert (await hers.get("/v1/notifications/unread-count")).json() == {"unread": 0}
        assert (await hers.put("/v1/notifications/language", json={"language": "zh"})).json() == {"language": "zh"}
        assert (await hers.put("/v1/notifications/language", json={"language": "xx"})).is_client_error
        assert (await others.get("/v1/notifications/language")).json() == {"language": "en"}


async def test_they_come_live_and_a_stream_goes_on_where_it_was(db: Database) -> None:
    ada, eve = await make_user(db, "ada"), await make_user(db, "eve")

    async def yes() -> bool:
        return True

    async with open_inbox(db) as inbox:
        got: list[int] = []

        async def follow(after: int | None) -> None:
            async for each in inbox.follow(ada.user_id, after=after, may_see=yes):
                if isinstance(each, Notification):
                    got.append(each.id)  # noqa: PERF401 - one after the other, as they come

        await tell(db, task(ada.user_id, "task.succeeded"))
        following = asyncio.create_task(follow(None))
        await until(lambda: len(inbox._streams) == 1)
        await tell(db, task(eve.user_id, "task.succeeded"), task(ada.user_id, "task.succeeded", number=2))
        await until(lambda: len(got) == 1)
        following.cancel()
        await asyncio.wait({following})
        await tell(db, task(ada.user_id, "task.succeeded", number=3))
        again = asyncio.create_task(follow(got[0]))
        await until(lambda: len(got) == 2)
        again.cancel()
        await asyncio.wait({again})
    assert got == sorted(got)
    assert len(await inbox_of(db, ada)) == 3


async def test_a_stream_that_was_away_for_long_catches_up_at_once(db: Database) -> None:
    ada = await make_user(db, "ada")
    await db.fetch_alone(
        "INSERT INTO headrace.notifications (user_id, type, title, body) "
        "SELECT $1, 'TASK_SUCCEEDED', 't', 'b' FROM generate_series(1, 2500)",
        ada.user_id,
    )

    async def yes() -> bool:
        return True

    got: list[int] = []
    async with open_inbox(db) as inbox, aclosing(inbox.follow(ada.user_id, after=0, may_see=yes)) as news:
        async for each in news:
            assert isinstance(each, Notification), "a heartbeat: it waited before it had told all"
            got.append(each.id)
            if len(got) == 2500:
                break
    assert got == sorted(set(got))


async def test_a_stream_ends_when_it_may_no_longer_be_seen(app: FastAPI, db: Database) -> None:
    ada = await make_user(db, "ada")

    async def no() -> bool:
        return False

    inbox = Inbox(db, StreamLimits(heartbeat=timedelta(milliseconds=20)))
    events = [each async for each in inbox.follow(ada.user_id, after=None, may_see=no)]
    assert isinstance(events[-1], Revoked)
    assert isinstance(app, FastAPI)


async def test_a_stream_goes_on_while_nobody_can_tell_whether_it_may_be_seen(db: Database) -> None:
    """The access check failed with the database away, and the stream broke off; those of tasks and changes went on."""
    ada = await make_user(db, "ada")
    answers: list[bool | Exception] = [DatabaseUnavailable(), RuntimeError("a mistake of ours"), True, False]

    async def may_see() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    inbox = Inbox(db, StreamLimits(heartbeat=timedelta(0)))
    async with aclosing(inbox.follow(ada.user_id, after=None, may_see=may_see)) as news:
        assert [type(each) async for each in news] == [Heartbeat] * 3 + [Revoked]


async def test_a_stream_that_is_opened_while_the_database_is_away_goes_on(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read where to begin before anything else, and broke off when that failed."""
    ada = await make_user(db, "ada")
    newest, calls = store.newest, 0

    async def away_once(tx: Tx, user_id: str) -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise DatabaseUnavailable
        return await newest(tx, user_id)

    async def may_see() -> bool:
        return calls < 2

    monkeypatch.setattr(store, "newest", away_once)
    inbox = Inbox(db, StreamLimits(heartbeat=timedelta(0)))
    async with aclosing(inbox.follow(ada.user_id, after=None, may_see=may_see)) as news:
        assert [type(each) async for each in news] == [Heartbeat, Heartbeat, Revoked]
