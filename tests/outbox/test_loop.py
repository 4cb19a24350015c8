"""A relay process: woken or not, it relays what there is, and stops in good order. W-12."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from headrace.database import Database
from headrace.outbox.loop import LoopConfig, RelayLoop, declare_interests
from headrace.outbox.relay import Relay, RelayConfig, Relayed
from tests.outbox.recording import Recording, check_each_once_in_order, received, statuses, write

WAKEABLE = LoopConfig(poll_every=timedelta(minutes=10))
POLLING = LoopConfig(poll_every=timedelta(milliseconds=50), listen=False)
RELAYS = "SELECT asleep FROM headrace.relays"


async def until(there: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await there():
            await asyncio.sleep(0.01)


class Sending:
    """A sender that says when it began and that it was told to end."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def run(self, stop: asyncio.Event) -> None:
        self.said.append("began")
        await stop.wait()
        self.said.append("ended")


@asynccontextmanager
async def relaying(
    db: Database, *consumers: Recording, config: LoopConfig, sender: Sending | None = None
) -> AsyncIterator[RelayLoop]:
    stop = asyncio.Event()
    loop = RelayLoop(db, Relay(db, consumers, RelayConfig(batch=5)), consumers, [sender] if sender else [], config)
    running = asyncio.create_task(loop.run(stop))
    try:
        yield loop
    finally:
        stop.set()
        async with asyncio.timeout(60):
            await running


async def is_asleep(db: Database) -> bool:
    return [row["asleep"] for row in await db.fetch_alone(RELAYS)] == [True]


async def test_a_relay_that_sleeps_is_woken_by_new_events(db: Database) -> None:
    sender = Sending()
    async with relaying(db, Recording(), config=WAKEABLE, sender=sender) as loop:
        await until(lambda: is_asleep(db))
        for _ in range(3):
            before = loop.relayed.published
            await write(db, "a")

            async def told(before: int = before) -> bool:
                return loop.relayed.published > before

            await until(told)
        assert sender.said == ["began"]
    assert sender.said == ["began", "ended"]
    assert await db.fetch_alone(RELAYS) == []


async def test_a_relay_that_only_polls_finds_everything(db: Database) -> None:
    events = await write(db, *(f"t{n % 7}" for n in range(60)))
    async with relaying(db, Recording(), config=POLLING):
        events += await write(db, *(f"t{n % 5}" for n in range(20)))

        async def all_received() -> bool:
            return len(await received(db)) == 80

        await until(all_received)
    await check_each_once_in_order(db, events)


async def test_what_consumers_want_always_is_stored_when_a_relay_starts(db: Database) -> None:
    async with relaying(db, Recording("one", interests=["task.*", "account.deleted"]), config=POLLING):

        async def stored() -> bool:
            return len(await db.fetch_alone("SELECT FROM headrace.event_interests")) == 2

        await until(stored)
    await declare_interests(db, [Recording("one", interests=["task.*"])])
    rows = await db.fetch_alone("SELECT consumer, key, pattern FROM headrace.event_interests")
    assert [tuple(row) for row in rows] == [("one", "", "task.*")]


async def test_trouble_is_waited_for(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.outbox.loop._RETRY_PAUSE_S", 0.01)
    left = 3

    class Shaky(Relay):
        async def run_once(self, **_: object) -> Relayed:
            nonlocal left
            if left:
                left -= 1
                raise RuntimeError
            return await super().run_once()

    await write(db, "a")
    consumer, stop = Recording(), asyncio.Event()
    running = asyncio.create_task(RelayLoop(db, Shaky(db, [consumer]), [consumer], config=POLLING).run(stop))

    async def published() -> bool:
        return await statuses(db) == ["PUBLISHED"]

    await until(published)
    stop.set()
    await running


async def test_under_a_held_snapshot_looks_begin_where_the_first_waiting_event_was(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.outbox.floors.SLOW_S", 0.0)  # every look over everything counts as slow
    monkeypatch.setattr("headrace.outbox.relay.SLOW_S", 0.0)
    relay, events = Relay(db, [Recording()], RelayConfig(batch=3, chain=2)), []
    async with db.transaction() as early:  # began first, commits last
        await early.execute("SELECT 1")
        for _ in range(3):
            events += await write(db, *(f"t{n % 7}" for n in range(30)))
            while (await relay.run_once()).published:
                pass
        from headrace import outbox
        from headrace.outbox import Event

        late = Event("thing.moved", "thing", "late", {})
        await outbox.append(early, [late])

    async def all_received() -> bool:
        await relay.run_once()
        return len(await received(db)) == 91

    await until(all_received)
    await check_each_once_in_order(db, [*events, late])
