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
from headrace.client.generated.answers import Lock
from headrace.client.verbs import Verbs, given
from headrace.errors import HeadraceError
from headrace.leases import RENEW_AFTER_RATIO, holding

DEFAULT_TTL = timedelta(seconds=30)
_MAX_WAIT_SECONDS = 20.0  # for one request; the server allows 30
MAX_RELEASE_SECONDS = 3.0  # for the release after a cancellation; later the lock expires by itself


class Locks(Verbs):
    """Distributed locks."""

    @asynccontextmanager
    async def hold(
        self,
        key: str,
        *,
        ttl: timedelta = DEFAULT_TTL,
        purpose: str | None = None,
        wait: timedelta | None = timedelta(0),
        holder: str | None = None,
    ) -> AsyncIterator[Lock]:
        """Hold a lock while the block runs. ``LockHeld`` unless it is free within ``wait`` (None: no limit).

        It is renewed in the background. When it is lost, or might be lost, the block is canceled and ``LockLost`` is
        raised at its end. The block must not block the event loop for long, or the lock is not renewed. The target of
        the block's writes can refuse a late holder by ``lock.fence``.
        """
        holder = holder or f"{socket.gethostname()}:{os.getpid()}"
        loop = asyncio.get_running_loop()
        end = None if wait is None else loop.time() + wait.total_seconds()
        longest = min(_MAX_WAIT_SECONDS, self._connection.timeout.total_seconds() / 2)
        while True:
            asked_at = loop.time()
            left = longest if end is None else min(max(end - asked_at, 0), longest)
            ask = partial(self.acquire, key, ttl=ttl, purpose=purpose, holder=holder, once=ids.new("key"))
            try:
                lock = await ask(wait=timedelta(seconds=left))
                if loop.time() - asked_at > ttl.total_seconds() * RENEW_AFTER_RATIO:
                    # The time of the grant during the wait is unknown: the lease counts from here.
                    asked_at = loop.time()
                    lock = await self.renew(lock, ttl=ttl)
            except (LockHeld, LockLost):
                if end is not None and loop.time() >= end:
                    raise
            except asyncio.CancelledError:
                await self._release_granted(ask)
                raise
            else:
                break
        async with holding(_Held(self, lock, ttl), asked_at=asked_at):
            yield lock

    async def _release_granted(self, ask: Callable[[], Awaitable[Lock]]) -> None:
        # The answer may be lost. The same request with the same key, without waiting, gets it again.
        with suppress(HeadraceError, TimeoutError):
            async with asyncio.timeout(MAX_RELEASE_SECONDS):
                await self.release(await ask())

    async def acquire(
        self,
        key: str,
        *,
        ttl: timedelta = DEFAULT_TTL,
        wait: timedelta = timedelta(0),
        purpose: str | None = None,
        holder: str | None = None,
        once: str | None = None,
    ) -> Lock:
        """Take a lock, at once or within ``wait`` (at most 30 s). ``lock_held``, a conflict, names the holder.

        Renew it well before ``ttl`` is over, usually after a third. Retries take it once; with ``once``, your own
        idempotency key, also after a restart of your program.
        """
        times = {"ttl_seconds": ttl.total_seconds(), "wait_seconds": wait.total_seconds()}
        asked = {"key": key, **times, **given({"purpose": purpose, "holder": holder})}
        return Lock.of({**await self._create("/v1/locks", asked, once), "ttl_seconds": ttl.total_seconds()})

    async def renew(self, lock: Lock, *, ttl: timedelta | None = None) -> Lock:
        """Extend a lock to ``ttl`` from now, by default its last TTL; after ``lock_lost``, a conflict, stop the guarded
        work."""
        seconds = lock.ttl_seconds if ttl is None else ttl.total_seconds()
        body = {"key": lock.key, "token": lock.token, "ttl_seconds": seconds}
        answer = await self._change("/v1/locks/renew", None, safe=True, body=body)
        return Lock.of({**answer, "token": lock.token, "ttl_seconds": seconds})

    async def release(self, lock: Lock) -> Lock:
        """Release a lock; ``lock_lost`` if it was lost before."""
        return Lock.of(
            await self._change("/v1/locks/release", None, safe=False, body={"key": lock.key, "token": lock.token})
        )

    async def force_release(self, key: str, *, user_id: str | None = None) -> Lock:
        """Force-release another user's lock. For administrators."""
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
        """Present and past holdings of your locks, newest first."""
        asked = {"key": key, "holder": holder, "status": status, "user_id": user_id}
        async for item in self._pages("/v1/locks", asked):
            yield Lock.of(item)


class _Held:
    """A lock held by a block."""

    lost: type[HeadraceError] = LockLost

    def __init__(self, locks: Locks, lock: Lock, ttl: timedelta) -> None:
        self.ttl = ttl
        self._locks = locks
        self._lock = lock

    async def renew(self) -> None:
        # A hanging request is abandoned in time for another one.
        async with asyncio.timeout(self.ttl.total_seconds() * RENEW_AFTER_RATIO):
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
