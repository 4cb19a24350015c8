"""Every event reaches every endpoint that wants it; every attempt is on record. W-12, W-13."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
import standardwebhooks

from headrace import outbox
from headrace.access import Role
from headrace.database import Database
from headrace.outbox import Event
from headrace.outbox.consumers import StoredEvent
from headrace.webhooks import resending, service
from headrace.webhooks.consumer import WebhookConsumer
from headrace.webhooks.errors import DeliveryUnderWay
from headrace.webhooks.http.addresses import Address
from headrace.webhooks.http.client import HttpClient, HttpConfig
from headrace.webhooks.model import EndpointStatus
from headrace.webhooks.store import health, queue
from headrace.webhooks.store.health import EndpointOutcome
from headrace.webhooks.store.overview import read_overview
from tests.webhooks import stand
from tests.webhooks.receiver import Request, hangs, receiving, says


async def test_a_signed_event_arrives_and_is_on_record(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving(says(200, body="thanks")) as receiver:
        endpoint, secret = await stand.make_endpoint(db, ada, receiver.url, events=["task.*"])
        (event,) = await stand.happen(db, ada, type="task.succeeded", answer=42)
        await stand.happen(db, ada, type="account.deleted")  # not subscribed
        await stand.relay(db)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
    (request,) = receiver.requests
    body = request.body.decode()
    said = standardwebhooks.Webhook(secret.text).verify(body, request.headers)
    assert (said["type"], said["data"]["answer"]) == ("task.succeeded", 42)
    import svix  # takes a third of a second, which each process of a run would spend

    svix.Webhook(secret.text).verify(body, request.headers)
    (row,) = await stand.attempts(db)
    assert (row["status"], row["response_status"], row["response_body"]) == ("SUCCESS", 200, "thanks")
    assert (row["event_id"], row["attempt"], row["endpoint_id"]) == (event.id, 1, endpoint.id)
    assert row["request_headers"]["webhook-id"] == event.id
    assert row["delivered_at"] is not None
    assert row["next_retry_at"] is None
    assert secret.text not in str(row)


async def test_failures_are_tried_again_until_the_last_attempt(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving(says(500, body="broken")) as receiver:
        await stand.make_endpoint(db, ada, receiver.url, max_retries=2)
        await stand.happen(db, ada)
        await stand.relay(db)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
    rows = await stand.attempts(db)
    assert [(row["attempt"], row["status"]) for row in rows] == [(1, "DEAD"), (2, "DEAD"), (3, "DEAD")]
    assert all(row["response_status"] == 500 and row["response_body"] == "broken" for row in rows)
    assert len({row["delivery_id"] for row in rows}) == 3
    assert len(set(receiver.ids)) == 1
    assert all(row["next_retry_at"] is None for row in rows)  # so that the month can retire


async def test_a_later_attempt_succeeds(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    tries = 0

    async def third_time(request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal tries
        tries += 1
        await says(503 if tries < 3 else 204)(request, writer)

    async with receiving(third_time) as receiver:
        endpoint, _ = await stand.make_endpoint(db, ada, receiver.url)
        await stand.happen(db, ada)
        await stand.relay(db)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
    assert [row["status"] for row in await stand.attempts(db)] == ["DEAD", "DEAD", "SUCCESS"]
    # Ended attempts stayed RETRYING for ever: the query for what waits gave rows while nothing waited.
    waits = "SELECT FROM headrace.webhook_deliveries WHERE status IN ('FAILED', 'RETRYING')"
    assert await db.fetch_alone(waits) == []
    async with db.transaction() as tx:
        assert (await read_overview(tx)).given_up == 0
    async with db.transaction() as tx:
        found = await service.get_endpoint(tx, ada, endpoint.id)
    assert found.failing_since is None


async def test_410_disables_the_endpoint(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving(says(410)) as receiver:
        endpoint, _ = await stand.make_endpoint(db, ada, receiver.url)
        await stand.happen(db, ada, 30)
        await stand.relay(db)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
            await stand.until(lambda: _has_status(db, endpoint.id, "DISABLED"))
    assert {row["status"] for row in await stand.attempts(db)} == {"FAILED"}
    assert not await db.fetch_alone("SELECT FROM headrace.event_interests WHERE key = $1", endpoint.id)
    (row,) = await db.fetch_alone("SELECT status_reason FROM headrace.webhook_endpoints")
    assert row["status_reason"] == "gone"


async def _has_status(db: Database, endpoint_id: str, status: str) -> bool:
    (row,) = await db.fetch_alone("SELECT status FROM headrace.webhook_endpoints WHERE id = $1", endpoint_id)
    return bool(row["status"] == status)


async def test_retry_after_is_honoured_for_the_whole_endpoint(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving(says(429, headers="Retry-After: 3600\r\n")) as receiver:
        endpoint, _ = await stand.make_endpoint(db, ada, receiver.url)
        await stand.happen(db, ada, 20)
        await stand.relay(db)
        http = stand.http_client()
        sender = stand.sender(db, http)
        sent = await sender.run_once()
        assert 0 < sent < 20
        assert await sender.run_once() == 0
        await http.close()
    async with db.transaction() as tx:
        found = await service.get_statistics(tx, ada, endpoint.id, since=endpoint.created_at)
    assert found.blocked_until is not None
    assert (found.blocked_until - endpoint.created_at) > timedelta(minutes=50)
    assert found.waiting == 20
    waits = await db.fetch_alone(
        "SELECT next_retry_at - created_at AS wait FROM headrace.webhook_deliveries WHERE status = 'RETRYING'"
    )
    assert all(row["wait"] > timedelta(minutes=50) for row in waits)


async def test_the_breaker_opens_and_lets_one_through_to_try(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving(says(500)) as receiver:
        endpoint, _ = await stand.make_endpoint(db, ada, receiver.url, max_retries=0)
        await stand.happen(db, ada, 40)
        await stand.relay(db)
        http = stand.http_client()
        sender = stand.sender(db, http)
        while await sender.run_once():
            pass
        tried = len(receiver.requests)
        assert 10 <= tried < 40
        await db.fetch_alone("UPDATE headrace.webhook_health SET blocked_until = now()")
        assert await sender.run_once() == 1  # half open
        assert await sender.run_once() == 0
        receiver.answer = says(204)
        await db.fetch_alone("UPDATE headrace.webhook_health SET blocked_until = now()")
        assert await sender.run_once() == 1
        while await sender.run_once():
            pass
        await http.close()
    assert await stand.is_empty(db)
    assert endpoint.id


async def test_deliveries_under_way_do_not_lengthen_the_pause_of_the_breaker(db: Database) -> None:
    """Sixteen that failed together doubled the pause six times: one minute of 503 cost ten minutes."""
    ada = await stand.make_user(db, "ada")

    async def pause_s() -> float:
        (row,) = await db.fetch_alone(
            "SELECT extract(epoch FROM blocked_until - last_failure_at) AS s FROM headrace.webhook_health"
        )
        return float(row["s"])

    async with receiving(says(503)) as receiver:
        endpoint, _ = await stand.make_endpoint(db, ada, receiver.url)
        await stand.happen(db, ada, 60)
        await stand.relay(db)
        http = stand.http_client()
        sender = stand.sender(db, http)
        while await sender.run_once():
            pass
        assert len(receiver.requests) > 10
        assert await pause_s() == pytest.approx(30)
        for expected in (60, 120):
            await db.fetch_alone("UPDATE headrace.webhook_health SET blocked_until = now()")
            assert await sender.run_once() == 1
            assert await pause_s() == pytest.approx(expected)
        # One that was under way when the breaker opened, and fails only now.
        until = await db.fetch_alone("SELECT blocked_until FROM headrace.webhook_health")
        async with db.transaction() as tx:
            await health.record(tx, [EndpointOutcome(endpoint.id, False, 3, "HTTP 503", None)], threshold=10)
        assert await db.fetch_alone("SELECT blocked_until FROM headrace.webhook_health") == until
        receiver.answer = says(204)
        await db.fetch_alone("UPDATE headrace.webhook_health SET blocked_until = now()")
        while await sender.run_once():
            pass
        await http.close()
    rows = await db.fetch_alone("SELECT failures, failed_trials, blocked_until FROM headrace.webhook_health")
    assert [dict(row) for row in rows] == [{"failures": 0, "failed_trials": 0, "blocked_until": None}]


async def test_an_endpoint_that_fails_for_days_is_paused_and_its_owner_told(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving(says(500)) as receiver:
        endpoint, _ = await stand.make_endpoint(db, ada, receiver.url)
        await stand.happen(db, ada, 1)
        await stand.relay(db)
        http = stand.http_client()
        sender = stand.sender(db, http, pause_after=timedelta(days=5))
        await db.fetch_alone("UPDATE headrace.webhook_endpoints SET failing_since = now() - interval '6 days'")
        await sender.run_once()
        await http.close()
    async with db.transaction() as tx:
        paused = await service.get_endpoint(tx, ada, endpoint.id)
    assert (paused.status, paused.status_reason) == (EndpointStatus.PAUSED, "failing")
    (event,) = await db.fetch_alone("SELECT * FROM headrace.outbox_events WHERE event_type = 'webhook.endpoint.paused'")
    assert (event["user_id"], event["payload_json"]["endpoint_id"]) == (ada.user_id, endpoint.id)
    (audited,) = await db.fetch_alone(
        "SELECT action FROM headrace.audit_events WHERE resource_type = 'webhookEndpoint' AND action = 'disabled'"
    )
    assert audited


async def test_a_paused_endpoint_keeps_what_comes_and_sends_it_when_resumed(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving() as receiver, stand.sending(db):
        endpoint, _ = await stand.make_endpoint(db, ada, receiver.url)
        async with db.transaction() as tx:
            await service.pause_endpoint(tx, ada, endpoint.id)
        await stand.happen(db, ada, 3)
        await stand.relay(db)
        await asyncio.sleep(0.2)
        assert receiver.requests == []
        async with db.transaction() as tx:
            await service.resume_endpoint(tx, ada, endpoint.id)
        await stand.until(lambda: stand.is_empty(db))
        assert len(receiver.requests) == 3


async def test_endpoints_get_only_what_is_theirs(db: Database) -> None:
    """A user's own events; everybody's for an administrator who asks; nothing for a suspended one."""
    ada, eve = await stand.make_user(db, "ada"), await stand.make_user(db, "eve")
    root = await stand.make_user(db, "root", role=Role.ADMIN)
    was_root = await stand.make_user(db, "wasroot", role=Role.ADMIN)
    async with receiving() as hers, receiving() as eves, receiving() as all_, receiving() as no_longer:
        await stand.make_endpoint(db, ada, hers.url)
        await stand.make_endpoint(db, eve, eves.url)
        await stand.make_endpoint(db, root, all_.url, every_user=True)
        await stand.make_endpoint(db, was_root, no_longer.url, every_user=True)
        await db.fetch_alone("UPDATE headrace.users SET role = 'USER' WHERE id = $1", was_root.user_id)
        await db.fetch_alone("UPDATE headrace.users SET status = 'SUSPENDED' WHERE id = $1", eve.user_id)
        (event,) = await stand.happen(db, ada)
        (other,) = await stand.happen(db, eve)
        await stand.relay(db)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
    assert hers.ids == [event.id]
    assert eves.ids == []
    assert sorted(all_.ids) == sorted([event.id, other.id])
    assert no_longer.ids == []


async def test_a_filter_by_task_type(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving() as receiver:
        await stand.make_endpoint(db, ada, receiver.url, events=["task.*"], task_types=("IMAGE", "PDF"))
        events = []
        for kind in ("IMAGE", "VIDEO", "PDF"):
            event = Event("task.succeeded", "task", f"tsk_{kind}", {"type": kind}, user_id=ada.user_id)
            events.append(event)
        async with db.transaction() as tx:
            await outbox.append(tx, events)
        await stand.relay(db)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
    assert sorted(receiver.ids) == sorted([events[0].id, events[2].id])


async def test_strict_order_for_an_aggregate(db: Database) -> None:
    """While one fails, those behind it wait; others do not."""
    ada = await stand.make_user(db, "ada")
    failures = {"first": 3}
    seen: list[int] = []

    async def flaky(request: Request, writer: asyncio.StreamWriter) -> None:
        import json

        number = json.loads(request.body)["data"]["number"]
        if number == 0 and failures["first"]:
            failures["first"] -= 1
            await says(500)(request, writer)
            return
        seen.append(number)
        await says(204)(request, writer)

    async with receiving(flaky) as receiver:
        await stand.make_endpoint(db, ada, receiver.url, ordered=True)
        await stand.happen(db, ada, 12, thing="tsk_one")
        await stand.relay(db)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
    assert seen == list(range(12))


async def test_a_request_that_cannot_even_be_made_is_an_attempt_that_failed(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    await stand.make_endpoint(db, ada, "http://localhost:9/", max_retries=0)
    await stand.happen(db, ada, 1)
    await stand.relay(db)

    async def broken(*_: object) -> Sequence[Address]:
        raise ZeroDivisionError

    http = HttpClient(HttpConfig(policy=stand.LOCAL), resolve=broken)
    stop = asyncio.Event()
    running = asyncio.create_task(stand.sender(db, http).run(stop))
    await stand.until(lambda: stand.is_empty(db))  # and not only when the lease has run out
    stop.set()
    await running
    (row,) = await stand.attempts(db)
    assert (row["status"], row["error"]) == ("DEAD", "the request could not be made: ZeroDivisionError")


async def test_hanging_endpoints_take_few_places(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving(hangs) as hanging, receiving() as healthy:
        for number in range(5):
            await stand.make_endpoint(db, ada, f"{hanging.url}/{number}", timeout_ms=30_000)
        await stand.make_endpoint(db, ada, healthy.url)
        await stand.happen(db, ada, 60)
        await stand.relay(db)
        async with stand.sending(db, requests=20, shutdown=timedelta(0)):
            await stand.until(lambda: len(healthy.requests) == 60)
        assert len(hanging.requests) <= 10


async def test_more_endpoints_than_requests_at_once_all_have_their_turn(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving() as receiver:
        for number in range(12):
            await stand.make_endpoint(db, ada, f"{receiver.url}/{number}")
        await stand.happen(db, ada, 8)
        await stand.relay(db)
        async with stand.sending(db, requests=3):
            await stand.until(lambda: stand.is_empty(db))
    assert len(receiver.requests) == 12 * 8
    assert {row["attempt"] for row in await stand.attempts(db)} == {1}


async def test_a_dead_senders_deliveries_are_taken_over_and_its_attempts_stay_on_record(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving() as receiver:
        await stand.make_endpoint(db, ada, receiver.url)
        await stand.happen(db, ada, 3)
        await stand.relay(db)
        http = stand.http_client()
        dead, alive = stand.sender(db, http), stand.sender(db, http)
        claimed = await dead._claim(10)
        assert len(claimed) == 3
        assert await alive.run_once() == 0
        await db.fetch_alone("UPDATE headrace.webhook_queue SET leased_until = now() - interval '1 second'")
        assert await alive.take_over() == 3
        assert await alive.run_once() == 3
        # The dead one was only asleep: its answers are noted with its attempts, and end nothing.
        outcomes = [await dead._attempt(each) for each in claimed]
        await dead._recorder.write(outcomes)
        await http.close()
    rows = await stand.attempts(db)
    assert [(row["attempt"], row["status"]) for row in rows] == [(1, "DEAD"), (2, "SUCCESS")] * 3
    assert all(row["response_status"] == 204 for row in rows)
    assert await stand.is_empty(db)


async def test_two_senders_send_nothing_twice(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving() as receiver:
        await stand.make_endpoint(db, ada, receiver.url)
        await stand.happen(db, ada, 150)
        await stand.relay(db)
        async with stand.sending(db), stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
    assert len(receiver.ids) == len(set(receiver.ids)) == 150


async def test_what_was_not_begun_is_given_back_at_the_end(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving(hangs) as receiver:
        await stand.make_endpoint(db, ada, receiver.url)
        await stand.happen(db, ada, 8)
        await stand.relay(db)
        async with stand.sending(db, shutdown=timedelta(0)):
            await stand.until(lambda: len(receiver.requests) >= 1)
    (row,) = await db.fetch_alone(
        "SELECT count(*) FILTER (WHERE leased_until IS NULL) AS free FROM headrace.webhook_queue"
    )
    assert row["free"] >= 6
    assert {row["attempt"] for row in await stand.attempts(db)} == {1}


async def test_resending_one_and_all_that_failed(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving(says(500)) as receiver:
        endpoint, _ = await stand.make_endpoint(db, ada, receiver.url, max_retries=0)
        await stand.happen(db, ada, 4)
        await stand.relay(db)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
            receiver.answer = says(204)
            receiver.requests.clear()
            first = (await stand.attempts(db))[0]
            async with db.transaction() as tx:
                again = await resending.resend(tx, ada, first["delivery_id"])
            assert (again.attempt, again.event_id) == (2, first["event_id"])
            with pytest.raises(DeliveryUnderWay):
                async with db.transaction() as tx:
                    await tx.execute("UPDATE headrace.webhook_deliveries SET next_retry_at = now()")
                    await resending.resend(tx, ada, again.delivery_id)
                    await resending.resend(tx, ada, again.delivery_id)
            await stand.until(lambda: stand.is_empty(db))
            async with db.transaction() as tx:
                count = await resending.resend_failed(tx, ada, endpoint.id, since=endpoint.created_at)
            assert count == 3
            await stand.until(lambda: stand.is_empty(db))
            async with db.transaction() as tx:
                assert await resending.resend_failed(tx, ada, endpoint.id, since=endpoint.created_at) == 0
    assert len(set(receiver.ids)) == 4


async def test_a_delivery_that_waits_for_too_long_is_given_up(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    endpoint, _ = await stand.make_endpoint(db, ada, "http://127.0.0.1:9/")
    await stand.happen(db, ada, 2)
    await stand.relay(db)
    await db.fetch_alone(
        "UPDATE headrace.webhook_queue SET created_at = now() - interval '8 days' "
        "WHERE id = (SELECT min(id) FROM headrace.webhook_queue)"
    )
    async with db.transaction() as tx:
        assert await queue.expire(tx, 100, lifetime=timedelta(days=7)) == 1
    assert sorted(row["status"] for row in await stand.attempts(db, endpoint.id)) == ["DEAD", "PENDING"]


async def test_what_is_fanned_out_while_its_endpoint_is_deleted_does_not_wait_for_ever(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    endpoint, _ = await stand.make_endpoint(db, ada, "https://example.com/hooks")
    kept, _ = await stand.make_endpoint(db, ada, "https://example.com/kept")
    (event,) = await stand.happen(db, ada, 1)
    async with db.transaction() as relay:
        await WebhookConsumer().receive(relay, [StoredEvent(1, event, datetime.now(UTC))])
        async with db.transaction() as tx:  # does not see it
            await service.delete_endpoint(tx, ada, endpoint.id)
    assert [row["status"] for row in await stand.attempts(db, endpoint.id)] == ["PENDING"]
    async with db.transaction() as tx:
        assert await queue.expire(tx, 100, lifetime=timedelta(days=7)) == 1
    (row,) = await stand.attempts(db, endpoint.id)
    assert (row["status"], row["error"]) == ("DEAD", "the endpoint was deleted or disabled")
    assert [row["status"] for row in await stand.attempts(db, kept.id)] == ["PENDING"]


async def test_a_deleted_endpoint_gets_nothing_more_and_its_secret_is_gone(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving() as receiver:
        endpoint, _ = await stand.make_endpoint(db, ada, receiver.url)
        await stand.happen(db, ada, 2)
        await stand.relay(db)
        async with db.transaction() as tx:
            await service.delete_endpoint(tx, ada, endpoint.id)
        await stand.happen(db, ada, 2)
        await stand.relay(db)
        async with stand.sending(db):
            await stand.until(lambda: stand.is_empty(db))
        assert receiver.requests == []
        await stand.make_endpoint(db, ada, receiver.url)  # the address is free again
    assert {row["status"] for row in await stand.attempts(db)} == {"FAILED"}
    (row,) = await db.fetch_alone("SELECT secret_ciphertext FROM headrace.webhook_endpoints WHERE id = $1", endpoint.id)
    assert row["secret_ciphertext"] == ""
