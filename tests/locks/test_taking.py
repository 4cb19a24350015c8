"""Taking, renewing, releasing, expiring: one active row for a key, the token in every WHERE, all of it kept. S-13."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from headrace import ids
from headrace.database import Database, Tx
from headrace.locks import store, taking
from headrace.locks.errors import LockHeld, LockInvalid, LockLost
from headrace.locks.model import Claim, Grant, LockState
from headrace.locks.store import Filter
from headrace.locks.taking import digest_of

TTL = timedelta(seconds=30)


def claim(key: str = "k", **changes: Any) -> Claim:
    return Claim(**{"key": key, "holder": "host:1", "ttl": TTL, **changes})


async def age(tx: Tx, by: timedelta = timedelta(hours=1)) -> None:
    """Let time go by for all locks."""
    moved = "acquired_at = acquired_at - $1::interval, expires_at = expires_at - $1::interval"
    await tx.execute(f"UPDATE headrace.task_locks SET {moved}", by)


async def history(tx: Tx, **wanted: Any) -> list[tuple[int, str]]:
    found = await store.list_locks(tx, Filter(**{"user_id": None, **wanted}), limit=100)
    return [(lock.fence, lock.state.value) for lock in found]


async def test_a_held_lock_is_refused_and_says_who_has_it(tx: Tx) -> None:
    taken = await taking.acquire(tx, claim(purpose="closing June"))
    with pytest.raises(LockHeld) as refused:
        await taking.acquire(tx, claim(holder="host:2"))
    details = refused.value.details
    assert (details["holder"], details["purpose"]) == ("host:1", "closing June")
    assert details["expires_at"] == taken.lock.expires_at
    assert refused.value.retry_after is not None
    assert timedelta(0) < refused.value.retry_after <= TTL
    assert await history(tx) == [(1, "active")]


async def test_each_holding_has_a_larger_fence_and_all_are_kept(tx: Tx) -> None:
    for _ in range(3):
        grant = await taking.acquire(tx, claim())
        await taking.release(tx, "k", grant.token)
    assert await history(tx) == [(3, "released"), (2, "released"), (1, "released")]
    other = await taking.acquire(tx, claim("another"))
    assert other.lock.fence == 1


async def test_only_the_token_renews_and_releases(tx: Tx) -> None:
    grant = await taking.acquire(tx, claim())
    for act in (
        taking.renew(tx, "k", "wrong", ttl=TTL),
        taking.release(tx, "k", "wrong"),
        taking.confirm(tx, "k", "x"),
    ):
        with pytest.raises(LockLost):
            await act
    renewed = await taking.renew(tx, "k", grant.token, ttl=timedelta(hours=1))
    assert renewed.expires_at > grant.lock.expires_at + timedelta(minutes=50)
    await taking.confirm(tx, "k", grant.token)
    old, new = await taking.release(tx, "k", grant.token)
    assert (old.state, new.state, new.fence) == (LockState.ACTIVE, LockState.RELEASED, grant.lock.fence)
    assert new.released_at is not None
    with pytest.raises(LockLost):
        await taking.release(tx, "k", grant.token)


async def test_the_token_itself_is_not_stored(tx: Tx) -> None:
    grant = await taking.acquire(tx, claim())
    assert await tx.fetchval("SELECT token FROM headrace.task_locks") == digest_of(grant.token)
    assert grant.token not in repr(grant)


async def test_a_lock_whose_time_is_over_is_nobodys(tx: Tx) -> None:
    grant = await taking.acquire(tx, claim())
    await age(tx)
    # nobody has come to write it down, and yet it shows as what it is
    assert await tx.fetchval("SELECT state FROM headrace.task_locks") == "active"
    assert await history(tx) == await history(tx, state=LockState.EXPIRED) == [(1, "expired")]
    assert await history(tx, state=LockState.ACTIVE) == []
    for act in (taking.renew(tx, "k", grant.token, ttl=TTL), taking.release(tx, "k", grant.token)):
        with pytest.raises(LockLost):
            await act
    with pytest.raises(LockLost):
        await taking.confirm(tx, "k", grant.token)

    second = await taking.acquire(tx, claim(holder="host:2"))
    assert second.lock.fence == 2
    assert await history(tx) == [(2, "active"), (1, "expired")]
    assert await tx.fetchval("SELECT state FROM headrace.task_locks WHERE fence = 1") == "expired"


async def test_owners_do_not_meet_at_a_key(tx: Tx) -> None:
    ada = ids.new("u")
    await tx.execute("INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, 'ada', '!')", ada)
    ours, theirs = await taking.acquire(tx, claim()), await taking.acquire(tx, claim(user_id=ada))
    assert (ours.lock.fence, theirs.lock.fence) == (1, 1)
    with pytest.raises(LockLost):
        await taking.release(tx, "k", theirs.token)
    await taking.release(tx, "k", theirs.token, user_id=ada)
    assert await history(tx, state=LockState.ACTIVE) == [(1, "active")]


async def test_expired_ones_are_written_down(tx: Tx) -> None:
    await taking.acquire(tx, claim())
    await taking.acquire(tx, claim("another"))
    await age(tx)
    await taking.acquire(tx, claim("fresh"))
    assert [await store.expire(tx, 1) for _ in range(3)] == [1, 1, 0]
    assert await history(tx) == [(1, "active"), (1, "expired"), (1, "expired")]
    assert (await taking.acquire(tx, claim())).lock.fence == 2


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"key": ""}, "key"),
        ({"key": "k" * 256}, "key"),
        ({"key": "a\0b"}, "key"),
        ({"holder": ""}, "holder"),
        ({"purpose": "p" * 256}, "purpose"),
        ({"ttl": timedelta(0)}, "ttl"),
        ({"ttl": timedelta(days=2)}, "ttl"),
    ],
)
def test_what_cannot_be_a_lock_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(LockInvalid) as refused:
        claim(**changes)
    assert refused.value.details["field"] == field


# -- several at once


async def take(db: Database, key: str = "k", ttl: timedelta = TTL, **more: Any) -> Grant:
    async with db.transaction() as tx:
        return await taking.acquire(tx, claim(key, ttl=ttl, **more))


async def test_of_twenty_who_ask_at_once_one_gets_it(db: Database) -> None:
    for expected in range(1, 6):
        answers = await asyncio.gather(*(take(db) for _ in range(20)), return_exceptions=True)
        [grant] = [answer for answer in answers if isinstance(answer, Grant)]
        assert sum(isinstance(answer, LockHeld) for answer in answers) == 19, answers
        assert grant.lock.fence == expected  # and no number is wasted on those who got nothing
        async with db.transaction() as tx:
            await taking.release(tx, "k", grant.token)


async def test_a_transaction_that_confirmed_the_lock_ends_before_anyone_else_has_it(db: Database) -> None:
    grant = await take(db, ttl=timedelta(seconds=0.2))
    async with db.transaction() as writing:
        await taking.confirm(writing, "k", grant.token)
        await asyncio.sleep(0.25)
        with pytest.raises(LockHeld):  # its time is over, and yet it is held
            await take(db)
        async with db.transaction() as tx:
            assert await store.expire(tx, 10) == 0
    assert (await take(db)).lock.fence == 2


async def test_who_takes_a_lock_away_waits_for_a_transaction_that_confirmed_it(db: Database) -> None:
    grant = await take(db)

    async def take_away() -> object:
        async with db.transaction() as tx:
            return await store.release(tx, ids.SYSTEM_USER, "k", digest=None)

    async with db.transaction() as writing:
        await taking.confirm(writing, "k", grant.token)
        taking_away = asyncio.create_task(take_away())
        await asyncio.sleep(0.1)
        assert not taking_away.done()
    assert await taking_away is not None


async def test_renewing_does_not_wait_for_a_transaction_that_confirmed(db: Database) -> None:
    grant = await take(db)
    async with asyncio.timeout(60), db.transaction() as writing:
        await taking.confirm(writing, "k", grant.token)
        async with db.transaction() as tx:
            await taking.renew(tx, "k", grant.token, ttl=TTL)


async def test_a_lock_is_waited_for(db: Database) -> None:
    grant = await take(db)
    waiting = asyncio.create_task(
        taking.retry_while_held(lambda: take(db, holder="host:2"), wait=timedelta(seconds=10))
    )
    await asyncio.sleep(0.1)
    assert not waiting.done()
    async with db.transaction() as tx:
        await taking.release(tx, "k", grant.token)
    assert (await waiting).lock.fence == 2
    with pytest.raises(LockHeld):
        await taking.retry_while_held(lambda: take(db), wait=timedelta(seconds=0.1))


async def test_the_database_refuses_a_second_holder_whoever_writes_it(tx: Tx) -> None:
    await taking.acquire(tx, claim())
    with pytest.raises(asyncpg.UniqueViolationError, match="idx_task_locks_key"):
        await tx.execute(
            "INSERT INTO headrace.task_locks (lock_key, fence, holder_id, token, state, acquired_at, expires_at) "
            "VALUES ('k', 99, 'me', 't', 'active', now(), now() + interval '1 hour')"
        )
