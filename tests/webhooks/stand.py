"""What tests of webhooks begin with: a user, endpoints, events in the outbox, a relay and a sender."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from headrace import ids, outbox
from headrace.access import Caller, Role
from headrace.audit import ActorType, Principal, PrincipalType, Who
from headrace.database import Database, Row
from headrace.outbox import Event
from headrace.outbox.relay import Relay
from headrace.webhooks import service
from headrace.webhooks.config import RetrySchedule, SenderConfig
from headrace.webhooks.consumer import WebhookConsumer
from headrace.webhooks.http.addresses import AddressPolicy
from headrace.webhooks.http.client import HttpClient, HttpConfig
from headrace.webhooks.model import Endpoint, EndpointSpec
from headrace.webhooks.secrets import Secret, keyring_of
from headrace.webhooks.sending import Sender
from headrace.webhooks.service import Webhooks

KEY = b"k" * 32
LOCAL = AddressPolicy(local=True)
HOOKS = Webhooks(keyring_of(KEY), LOCAL)
# As in life, but for the times.
QUICK = SenderConfig(
    poll_every=timedelta(milliseconds=50),
    take_over_every=timedelta(milliseconds=200),
    lease=timedelta(seconds=40),
    shutdown=timedelta(seconds=5),
    retries=RetrySchedule(delays=(timedelta(milliseconds=20),)),
)


async def make_user(db: Database, name: str, *, role: Role = Role.USER) -> Caller:
    user_id = ids.new("u")
    await db.fetch_alone(
        "INSERT INTO headrace.users (id, username, password_hash, role) VALUES ($1, $2, '!', $3)", user_id, name, role
    )
    who = Who(Principal(user_id, name, PrincipalType.USER), ActorType.USER)
    return Caller(who, user_id, role)


async def make_endpoint(
    db: Database, caller: Caller, url: str, *, events: Sequence[str] = ("*",), secret: str | None = None, **more: Any
) -> tuple[Endpoint, Secret]:
    spec = EndpointSpec("hook", url, tuple(events), **more)
    async with db.transaction() as tx:
        return await service.create_endpoint(tx, HOOKS, caller, spec, secret=secret)


async def happen(
    db: Database,
    caller: Caller,
    count: int = 1,
    *,
    type: str = "task.succeeded",  # noqa: A002 - the event's word
    thing: str | None = None,
    **data: Any,
) -> list[Event]:
    """Events of one user: of one aggregate if it is named, else of one each."""
    events = [
        Event(type, "task", thing or f"tsk_{number}", {"number": number, **data}, user_id=caller.user_id)
        for number in range(count)
    ]
    async with db.transaction() as tx:
        await outbox.append(tx, events)
    return events


async def relay(db: Database) -> None:
    """Fan out whatever is in the outbox."""
    relaying = Relay(db, [WebhookConsumer()])
    while (await relaying.run_once()).published:
        pass


def http_client(**config: Any) -> HttpClient:
    return HttpClient(HttpConfig(policy=LOCAL, **config))


def sender(db: Database, http: HttpClient, **config: Any) -> Sender:
    return Sender(db, http, HOOKS.keyring, replace(QUICK, **config))


@asynccontextmanager
async def sending(db: Database, **config: Any) -> AsyncIterator[Sender]:
    """A sender at work."""
    http = http_client()
    stop = asyncio.Event()
    running = sender(db, http, **config)
    task = asyncio.create_task(running.run(stop))
    try:
        yield running
    finally:
        stop.set()
        await task
        await http.close()


async def until(holds: Callable[[], Awaitable[bool]] | Callable[[], bool], *, limit: float = 60) -> None:
    async with asyncio.timeout(limit):
        while True:
            found = holds()
            if found is True or (not isinstance(found, bool) and await found):
                return
            await asyncio.sleep(0.02)


async def attempts(db: Database, endpoint_id: str | None = None) -> list[Row]:
    return await db.fetch_alone(
        "SELECT * FROM headrace.webhook_deliveries WHERE endpoint_id = coalesce($1, endpoint_id) "
        "ORDER BY event_id, attempt",
        endpoint_id,
    )


async def is_empty(db: Database) -> bool:
    """Whether nothing is to be sent any more."""
    return not await db.fetch_alone("SELECT FROM headrace.webhook_queue LIMIT 1")
