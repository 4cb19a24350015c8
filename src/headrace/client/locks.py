"""Locks, for programs with an event loop: ``client.locks``."""

from collections.abc import AsyncGenerator
from datetime import timedelta

from headrace.client.model import Lock
from headrace.client.verbs import Verbs, given

_TTL = timedelta(seconds=30)


class Locks(Verbs):
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
        asked = {"key": key, "ttl_seconds": ttl.total_seconds(), "wait_seconds": wait.total_seconds()}
        return Lock.of(await self._create("/v1/locks", asked | given({"purpose": purpose, "holder": holder}), once))

    async def renew(self, lock: Lock, *, ttl: timedelta = _TTL) -> Lock:
        """Hold on to a lock for ``ttl`` from now; ``lock_lost``, a conflict, means: stop."""
        body = {"key": lock.key, "token": lock.token, "ttl_seconds": ttl.total_seconds()}
        return Lock.of({**await self._change("/v1/locks/renew", None, safe=True, body=body), "token": lock.token})

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
        state: str | None = None,
        user_id: str | None = None,
    ) -> AsyncGenerator[Lock, None]:
        """Who holds and who held your locks, newest first."""
        asked = {"key": key, "holder": holder, "state": state, "user_id": user_id}
        async for item in self._pages("/v1/locks", asked):
            yield Lock.of(item)
