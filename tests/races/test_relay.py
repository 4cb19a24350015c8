"""Relays side by side, and relays that are killed: each event once for a consumer, in its aggregate's order. W-12."""

import asyncio
import itertools
import random
import signal
from collections.abc import AsyncIterator

import pytest

from headrace import outbox
from headrace.database import Database
from headrace.outbox import Event
from headrace.outbox.relay import Relay, RelayConfig, Relayed
from tests.outbox.recording import Recording, check_each_once_in_order, relay_all, write
from tests.races.nursery import Start, nursery
from tests.races.relay_program import HASTY


@pytest.fixture
async def start(database_url: str) -> AsyncIterator[Start]:
    async with nursery("tests.races.relay_program", database_url) as starting:
        yield starting


@pytest.mark.long
async def test_killed_around_any_commit_nothing_is_lost_or_doubled(db: Database, start: Start) -> None:
    events = []
    for number, when in itertools.product(range(1, 5), ("before", "after")):
        events += await write(db, *(f"t{n % 6}" for n in range(15)))
        assert await start(number, when) == -signal.SIGKILL, f"{number} {when}: it was over before"
    assert await start(0, "never") == 0
    await check_each_once_in_order(db, events)
    await check_each_once_in_order(db, events, "second")


async def test_relays_side_by_side_share_the_work_in_order(db: Database) -> None:
    events: list[Event] = []
    relays = [Relay(db, [Recording(), Recording("second")], RelayConfig(batch=5, chain=3)) for _ in range(4)]

    async def append() -> None:
        chance = random.Random(7)
        for _ in range(30):
            batch = [Event("thing.moved", "thing", f"t{chance.randrange(12)}", {}) for _ in range(10)]
            async with db.transaction() as tx:
                await outbox.append(tx, batch)
            events.extend(batch)

    writing = asyncio.create_task(append())

    async def relay_until_written(relay: Relay) -> Relayed:
        done = Relayed()
        while not writing.done():
            done += await relay.run_once()
        return done + await relay_all(relay)

    async with asyncio.timeout(120):
        done = await asyncio.gather(*(relay_until_written(relay) for relay in relays))
        await writing
        rest = await relay_all(relays[0])
    assert sum(each.published for each in done) + rest.published == 300
    await check_each_once_in_order(db, events)
    await check_each_once_in_order(db, events, "second")


async def test_leases_that_run_out_at_once_still_give_each_event_once(db: Database) -> None:
    """Every relay is late all the time: what one has claimed the next one claims, too, and only one publishes."""
    events = await write(db, *(f"t{n % 5}" for n in range(60)))
    relays = [Relay(db, [Recording()], HASTY) for _ in range(4)]
    async with asyncio.timeout(120):
        done = await asyncio.gather(*map(relay_all, relays))
        rest = await relay_all(relays[0])  # the last ones may all have been too late for what they had claimed
    assert sum(each.published for each in done) + rest.published == 60
    assert sum(each.dead for each in done) == 0
    await check_each_once_in_order(db, events)


async def test_a_consumer_that_fails_for_a_while_delays_and_loses_nothing(db: Database) -> None:
    events = await write(db, *(f"t{n % 10}" for n in range(50)))
    # More often than a batch is halved: so each of them fails alone, too.
    left = dict.fromkeys((event.id for event in events[::7]), 10)

    def refuses(event: Event) -> bool:
        left[event.id] = left.get(event.id, 0) - 1
        return left[event.id] >= 0

    relays = [Relay(db, [Recording(refuses=refuses)], HASTY) for _ in range(3)]
    async with asyncio.timeout(120):
        done = await asyncio.gather(*map(relay_all, relays))
        rest = await relay_all(relays[0])
    assert sum(each.published for each in done) + rest.published == 50
    assert sum(each.failed for each in done) >= 8
    await check_each_once_in_order(db, events)
