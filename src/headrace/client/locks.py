"""Locks, for programs with an event loop: ``client.locks``."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial

from headrace import ids
from headrace.client.errors import LockHeld, LockLost
from headrace.client.model import Lock
from headrace.client.verbs import Verbs, given
from headrace.errors import HeadraceError
from headrace.leases import RENEWED_AFTER, holding

_TTL = timedelta(seconds=30)
_LONGEST_WAIT_S = 20.0  # of one request; the server allows 30
LONGEST_FAREWELL_S = 3.0  # of one who is canceled; after that the lock expires by itself


class Locks(Verbs):
    """Names that one holder has at a time, over all machines."""

    @asynccontextmanager
    async def hold(
        self,
        key: str,
        *,
        ttl: timedelta = _TTL,
        purpose: str | None = None,
        wait: timedelta | None = timedelta(0),
        holder: str | None = None,
    ) -> AsyncIterator[Lock]:
        """Hold a lock while the block runs. ``LockHeld`` unless it is free within ``wait`` (None: however long it is).

        It is renewed in the background. When it is lost, or might be by now, ``LockLost`` is raised in the place of the
        block's end: then the block was canceled, or had just ended. The block must not keep the event loop busy for
        long, or the lock is not renewed. Whoever is written to can refuse a late holder by ``lock.fence``.
        """
        holder = holder or f"{socket.gethostname()}:{os.getpid()}"
        loop = asyncio.get_running_loop()
        end = None if wait is None else loop.time() + wait.total_seconds()
        longest = min(_LONGEST_WAIT_S, self._connection.timeout.total_seconds() / 2)
        while True:
            asked_at = loop.time()
            left = longest if end is None else min(max(end - asked_at, 0), longest)
            ask = partial(self.acquire, key, ttl=ttl, purpose=purpose, holder=holder, once=ids.new("key"))
            try:
                lock = await ask(wait=timedelta(seconds=left))
                if loop.time() - asked_at > ttl.total_seconds() * RENEWED_AFTER:
                    # Nobody knows when it was given while this waited: its time is counted from here.
                    asked_at = loop.time()
                    lock = await self.renew(lock, ttl=ttl)
            except (LockHeld, LockLost):
                if end is not None and loop.time() >= end:
                    raise
            except asyncio.CancelledError:
                await self._let_go_of_what_was_given(ask)
                raise
            else:
                break
        async with holding(_Held(self, lock, ttl), asked_at=asked_at):
            yield lock

    async def _let_go_of_what_was_given(self, ask: Callable[[], Awaitable[Lock]]) -> None:
        # The answer may have been on its way. Asked again with the same key, without waiting, the server repeats it.
        with suppress(HeadraceError, TimeoutError):
            async with asyncio.timeout(LONGEST_FAREWELL_S):
                await self.release(await ask())

    async def acquire(
        self,
        key: str,
        *,
        ttl: timedelta = _TTL,
        wait: timedelta = timedelta(0),
        purpose: str | None = None,
        holder: str | None = None,
        once: str | None = None,
    ) -> Lock:
        """Take a lock, at once or within ``wait`` (30 s at most). ``lock_held``, a conflict, says who has it.

        Renew it well before ``ttl`` is over: a third of it is usual. Sent again, it is taken once; with ``once``, an
        idempotency key of your own, also when your program is started again.
        """
        times = {"ttl_seconds": ttl.total_seconds(), "wait_seconds": wait.total_seconds()}
        asked = {"key": key, **times, **given({"purpose": purpose, "holder": holder})}
        return Lock.of({**await self._create("/v1/locks", asked, once), "ttl_seconds": ttl.total_seconds()})

    async def renew(self, lock: Lock, *, ttl: timedelta | None = None) -> Lock:
        """Hold on to a lock for ``ttl`` from now, by default for as long as the last time; ``lock_lost``, a conflict,
        means: stop."""
        seconds = lock.ttl_seconds if ttl is None else ttl.total_seconds()
        body = {"key": lock.key, "token": lock.token, "ttl_seconds": seconds}
        answer = await self._change("/v1/locks/renew", None, safe=True, body=body)
        return Lock.of({**answer, "token": lock.token, "ttl_seconds": seconds})

    async def release(self, lock: Lock) -> Lock:
        """Let a lock go; ``lock_lost`` if it was lost before."""
        return Lock.of(
            await self._change("/v1/locks/release", None, safe=False, body={"key": lock.key, "token": lock.token})
        )

    async def force_release(self, key: str, *, user_id: str | None = None) -> Lock:
        """Take somebody's lock away. For administrators."""
        body = given({"key": key, "user_id": user_id})
        return Lock.of(await self._change("/v1/locks/force-release", None, safe=False, body=body))

    async def list(
        self,
        *,
        key: str | None = None,
        holder: str | None = None,
        status: str | None = None,
        user_id: str | None = None,
    ) -> AsyncGenerator[Lock, None]:
        """Who holds and who held your locks, newest first."""
        asked = {"key": key, "holder": holder, "status": status, "user_id": user_id}
        async for item in self._pages("/v1/locks", asked):
            yield Lock.of(item)


class _Held:
    """A lock in the hands of a block."""

    lost: type[HeadraceError] = LockLost

    def __init__(self, locks: Locks, lock: Lock, ttl: timedelta) -> None:
        self.ttl = ttl
        self._locks = locks
        self._lock = lock

    async def renew(self) -> None:
        # A request that hangs is given up in time for another one.
        async with asyncio.timeout(self.ttl.total_seconds() * RENEWED_AFTER):
            await self._locks.renew(self._lock, ttl=self.ttl)

    async def release(self) -> None:
        try:
            async with asyncio.timeout(self.ttl.total_seconds()):
                await self._locks.release(self._lock)
        except LockLost:
            raise
        except (HeadraceError, TimeoutError):
            pass  # it expires by itself

    def loss(self) -> LockLost:
        detail = f"The lock {self._lock.key!r} could not be renewed in time."
        return LockLost({"code": "lock_lost", "detail": detail}, status=409)
