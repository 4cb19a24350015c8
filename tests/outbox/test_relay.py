"""The relay gives each event to its consumers: once, in order, whatever one of them cannot take. W-12."""

from datetime import timedelta

import pytest

from headrace.database import Database
from headrace.outbox import claims
from headrace.outbox.consumers import is_interested
from headrace.outbox.relay import Relay, RelayConfig, Relayed, RetryConfig
from tests.outbox.recording import (
    EVENTS,
    Recording,
    check_each_once_in_order,
    later,
    received,
    relay_all,
    statuses,
    write,
)

LEASE = timedelta(minutes=1)
FIRST_AGAIN = "UPDATE headrace.outbox_events SET next_retry_at = now() - interval '1 d' WHERE id = $1"


@pytest.mark.parametrize(
    ("interests", "event_type", "interested"),
    [
        (["task.created"], "task.created", True),
        (["task.created"], "task.created_again", False),
        (["task.*"], "task.created", True),
        (["task.*"], "tasks.created", False),
        (["task.*"], "task", False),
        (["account.*", "task.failed"], "task.failed", True),
        (["*"], "anything.at_all", True),
        ([], "task.created", False),
    ],
)
def test_interests_are_types_or_what_they_begin_with(interests: list[str], event_type: str, interested: bool) -> None:
    assert is_interested(interests, event_type) is interested


def test_a_failed_event_waits_longer_each_time_up_to_a_limit() -> None:
    retries = RetryConfig(first=timedelta(seconds=10), longest=timedelta(minutes=1))
    around = [10, 20, 40, 60, 60]
    for tries, seconds in enumerate(around, start=1):
        assert 0.8 * seconds <= retries.delay(tries).total_seconds() <= 1.2 * seconds
    assert retries.delay(5000) <= timedelta(seconds=72)


def test_two_consumers_of_one_name_are_refused(db: Database) -> None:
    with pytest.raises(ValueError, match="one name"):
        Relay(db, [Recording("a"), Recording("a")])


async def test_every_event_is_received_once_and_in_the_order_of_its_aggregate(db: Database) -> None:
    events = await write(db, *(f"t{n % 7}" for n in range(60)))
    relay = Relay(db, [Recording()], RelayConfig(batch=3, chain=2))
    assert await relay_all(relay) == Relayed(published=60)
    await check_each_once_in_order(db, events)
    assert {row["retry_count"] for row in await db.fetch_alone(EVENTS)} == {0}


async def test_without_a_consumer_nothing_is_read(db: Database) -> None:
    await write(db, "a")
    assert await Relay(db, ()).run_once() == Relayed()
    assert await statuses(db) == ["PENDING"]


async def test_consumers_are_called_in_the_order_of_registration_with_what_they_want(db: Database) -> None:
    [task] = await write(db, "a", type="task.created")
    [account] = await write(db, "b", type="account.deleted")
    everything, tasks = Recording("everything"), Recording("tasks", interests=["task.*"])
    assert await Relay(db, [everything, tasks]).run_once() == Relayed(published=2)
    assert await received(db, "everything") == [task.id, account.id]
    assert await received(db, "tasks") == [task.id]
    order = await db.fetch_alone("SELECT status FROM headrace.task_logs ORDER BY id")
    assert [row["status"] for row in order] == ["everything", "everything", "tasks"]


async def test_what_nobody_wants_is_published_all_the_same(db: Database) -> None:
    await write(db, "a", type="task.created")
    assert await Relay(db, [Recording(interests=["account.*"])]).run_once() == Relayed(published=1)
    assert (await received(db), await statuses(db)) == ([], ["PUBLISHED"])


async def test_what_one_consumer_cannot_take_none_has(db: Database) -> None:
    await write(db, "a")
    first, second = Recording("first"), Recording("second", refuses=lambda _: True)
    assert await Relay(db, [first, second]).run_once() == Relayed(failed=1)
    assert (len(first.batches), await received(db, "first"), await statuses(db)) == (1, [], ["FAILED"])
    second.refuses = lambda _: False
    assert await Relay(db, [first, second]).run_once(now=later()) == Relayed(published=1)
    assert len(await received(db, "first")) == len(await received(db, "second")) == 1


async def test_an_event_that_cannot_be_received_delays_only_its_aggregate(db: Database) -> None:
    events = await write(db, "a", "bad", "b", "bad", "c", "bad", "a", "d")
    bad = events[3].id
    consumer = Recording(refuses=lambda event: event.id == bad)
    relay = Relay(db, [consumer])
    done = await relay_all(relay)
    assert done == Relayed(published=6, failed=1)
    open_ = [row["event_id"] for row in await db.fetch_alone(EVENTS) if row["status"] != "PUBLISHED"]
    assert open_ == [events[3].id, events[5].id]
    # What comes meanwhile waits behind it, and nobody else's does.
    events += await write(db, "bad", "e")
    assert await relay_all(relay) == Relayed(published=1)
    consumer.refuses = lambda _: False
    assert await relay_all(relay, now=later()) == Relayed(published=3)
    await check_each_once_in_order(db, events)


async def test_what_waits_behind_a_failed_event_is_not_looked_at_before_it(db: Database) -> None:
    await write(db, "bad", "bad", "bad")
    await Relay(db, [Recording(refuses=lambda _: True)]).run_once()
    due = "SELECT count(*) FROM headrace.outbox_events WHERE next_retry_at <= now()"
    assert [row[0] for row in await db.fetch_alone(due)] == [0]


async def test_after_the_last_try_an_event_is_dead_and_those_behind_it_go_on(db: Database) -> None:
    events = await write(db, "bad", "bad")
    relay = Relay(
        db,
        [Recording(refuses=lambda event: event.id == events[0].id)],
        RelayConfig(retries=RetryConfig(longest=timedelta(minutes=1), max_tries=3)),
    )
    done = [await relay.run_once(now=later(timedelta(hours=hours))) for hours in range(4)]
    assert done == [Relayed(failed=1), Relayed(failed=1), Relayed(dead=1), Relayed(published=1)]
    assert await statuses(db) == ["DEAD", "PUBLISHED"]
    assert await received(db) == [events[1].id]


async def test_an_event_that_kills_its_relay_is_tried_alone_and_dies_after_the_last_try(db: Database) -> None:
    await write(db, "a", "killer", "b")
    consumer = Recording()
    relay = Relay(db, [consumer], RelayConfig(lease=LEASE, retries=RetryConfig(max_tries=3)))
    async with db.transaction() as tx:  # the relay that dies
        assert len((await claims.claim_new(tx, limit=10, length=10, lease=LEASE)).chains) == 3
    assert await relay.run_once() == Relayed()  # leased
    now = later(timedelta(hours=1))
    async with db.transaction() as tx:
        again = await claims.claim_new(tx, limit=10, length=10, lease=LEASE, now=now)
        assert (again.chains, again.set_aside) == ((), 3)
    assert await statuses(db) == ["FAILED"] * 3
    for _ in range(2):  # the next ones that die: each with one event only, which is the same one
        async with db.transaction() as tx:
            claim = await claims.claim_failed(tx, max_tries=3, lease=LEASE, now=now)
            assert len(claim.chains) == 1
            await tx.execute(FIRST_AGAIN, claim.chains[0].head.position)
    assert await relay_all(relay, now=now) == Relayed(published=2, dead=1)
    assert sorted(await statuses(db)) == ["DEAD", "PUBLISHED", "PUBLISHED"]
    assert [len(batch) for batch in consumer.batches] == [1, 1]


async def test_a_late_relay_changes_nothing(db: Database) -> None:
    events = await write(db, "a", "a", "b")
    async with db.transaction() as tx:
        late = await claims.claim_new(tx, limit=10, length=10, lease=LEASE)
    assert await relay_all(Relay(db, [Recording()])) == Relayed()  # the lease holds
    done = await relay_all(Relay(db, [Recording()]), now=later())
    assert done == Relayed(published=3, set_aside=2)
    async with db.transaction() as tx:
        assert await claims.publish(tx, late.chains) == frozenset()
        assert await claims.fail(tx, late.chains[0], delay=LEASE, max_tries=9) is None
    await check_each_once_in_order(db, events)


async def test_a_late_relay_loses_also_what_was_only_claimed_anew(db: Database) -> None:
    await write(db, "a")
    async with db.transaction() as tx:
        late = await claims.claim_new(tx, limit=10, length=10, lease=LEASE)
    async with db.transaction() as tx:
        await claims.claim_new(tx, limit=10, length=10, lease=LEASE, now=later())
    async with db.transaction() as tx:
        [new] = (await claims.claim_failed(tx, max_tries=9, lease=LEASE, now=later())).chains
    async with db.transaction() as tx:
        assert await claims.publish(tx, late.chains) == frozenset()
    async with db.transaction() as tx:
        assert await claims.publish(tx, [new]) == {new.head.position}
