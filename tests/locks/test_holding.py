"""``hold``: kept while the block runs, let go at its end, and its loss raised in the block. S-13."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from headrace import ids, leases
from headrace.database import Database, Tx
from headrace.database_errors import DatabaseUnavailable
from headrace.locks import holding, store
from headrace.locks.errors import LockHeld, LockLost
from headrace.locks.model import LockState
from headrace.locks.store import Filter
from tests.locks.blocks import NEVER, lose, take_turns

SHORT = timedelta(seconds=0.3)


async def states(db: Database) -> list[str]:
    async with db.transaction() as tx:
        return [lock.state.value for lock in await store.list_locks(tx, Filter(None), limit=100)]


async def take_away(db: Database, key: str = "k") -> None:
    async with db.transaction() as tx:
        assert await store.release(tx, ids.SYSTEM_USER, key, digest=None) is not None


async def test_it_is_renewed_while_the_block_runs_and_let_go_at_its_end(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_AFTER_RATIO", 1 / 200)  # often, and never late on a busy machine
    minute = timedelta(minutes=1)
    ends: set[datetime] = set()
    async with holding.hold(db, "k", ttl=minute, purpose="a long report") as lock, asyncio.timeout(60):
        assert lock.fence == 1
        while len(ends) < 3:
            with pytest.raises(LockHeld, match="holds this lock until"):
                async with holding.hold(db, "k", ttl=minute):
                    pytest.fail("two at once")
            async with db.transaction() as tx:
                await lock.confirm(tx)
                [shown] = await store.list_locks(tx, Filter(None, state=LockState.ACTIVE), limit=9)
            ends.add(shown.expires_at)
        assert (shown.purpose, shown.fence) == ("a long report", lock.fence)
    assert await states(db) == ["released"]
    async with holding.hold(db, "k", ttl=minute) as again:
        assert again.fence == 2


async def test_what_is_taken_away_is_noticed_and_raised_in_the_block(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_AFTER_RATIO", 1 / 200)  # noticed soon, and never lost for being slow
    with pytest.raises(LockLost):
        await lose(lambda: holding.hold(db, "k", ttl=timedelta(minutes=1)), lambda: take_away(db))


async def test_a_block_that_ends_before_it_notices_is_told_at_its_end(db: Database) -> None:
    with pytest.raises(LockLost):
        async with holding.hold(db, "k"):
            await take_away(db)


async def test_a_paused_process_learns_of_the_loss_and_cannot_confirm(db: Database) -> None:
    with pytest.raises(LockLost):
        async with holding.hold(db, "k", ttl=SHORT) as late:
            time.sleep(SHORT.total_seconds() + 0.1)  # noqa: ASYNC251 - as SIGSTOP does
            await asyncio.sleep(NEVER)
    async with holding.hold(db, "k") as next_one, db.transaction() as tx:
        assert next_one.fence > late.fence
        await next_one.confirm(tx)
        with pytest.raises(LockLost):
            await late.confirm(tx)
    assert await states(db) == ["released", "expired"]


async def test_who_cannot_renew_is_stopped_before_others_can_take_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()

    async def cut_off(*_: object, **__: object) -> None:
        raise DatabaseUnavailable

    monkeypatch.setattr(store, "renew", cut_off)
    began = loop.time()
    with pytest.raises(LockLost):
        async with holding.hold(db, "k", ttl=timedelta(seconds=4)):
            await asyncio.sleep(NEVER)
    assert loop.time() - began < 4
    with pytest.raises(LockHeld):  # it was stopped while it still had the lock
        async with holding.hold(db, "k"):
            pass


async def test_the_blocks_own_errors_pass_and_let_the_lock_go(db: Database) -> None:
    for error in (ValueError("no"), TimeoutError("its own"), KeyError("k")):
        with pytest.raises(type(error)):
            async with holding.hold(db, "k"):
                raise error
    assert await states(db) == ["released"] * 3


async def test_a_block_that_is_canceled_lets_the_lock_go(db: Database) -> None:
    inside = asyncio.Event()

    async def body() -> None:
        async with holding.hold(db, "k"):
            inside.set()
            await asyncio.sleep(NEVER)

    running = asyncio.create_task(body())
    await inside.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await states(db) == ["released"]


class Slow(Database):
    """A database whose first commit arrives, and whose answer to it does not."""

    answers = False

    @asynccontextmanager
    async def transaction(self, **how: Any) -> AsyncIterator[Tx]:
        async with super().transaction(**how) as tx:
            yield tx
        if not self.answers:
            self.answers = True
            await asyncio.sleep(NEVER)


async def test_what_was_given_to_one_who_is_canceled_meanwhile_is_let_go(db: Database) -> None:
    async def body(slow: Slow) -> None:
        async with holding.hold(slow, "k"):
            pytest.fail("it was never told")

    async with await Slow.connect(db.config) as slow, asyncio.timeout(60):
        running = asyncio.create_task(body(slow))
        while await states(db) != ["active"]:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert await states(db) == ["released"]


async def test_those_who_wait_come_one_after_the_other(db: Database) -> None:
    fences = await take_turns(lambda: holding.hold(db, "k", wait=None), blocks=12, seconds=0.005)
    assert fences == sorted(set(fences))
    assert len(fences) == 12


async def test_a_guarded_table_refuses_an_older_fence(db: Database) -> None:
    """The statement of docs/howto/locks.md."""
    async with db.transaction() as tx:
        await tx.execute("CREATE TEMPORARY TABLE guarded (key text PRIMARY KEY, fence bigint, value text)")
        write = (
            "INSERT INTO guarded AS g VALUES ('k', $1, $2) ON CONFLICT (key) DO UPDATE "
            "SET fence = excluded.fence, value = excluded.value WHERE g.fence <= excluded.fence"
        )
        assert await tx.count(write, 7, "new") == 1
        assert await tx.count(write, 6, "late") == 0
        assert await tx.count(write, 7, "newer") == 1
        assert await tx.fetchval("SELECT value FROM guarded") == "newer"
