"""``async with hold(db, "key") as lock``: a lock for as long as a block runs.

It is renewed in the background. When it is lost, or might be by now, the block is canceled and ``LockLost`` raised in
its place: a tenth of its time before others can have it, by this machine's monotonic clock, counted from before the
database was asked. A process that was paused can still do a thing or two before it notices. What must not happen then
is refused by whoever is written to: in this database by ``lock.confirm(tx)`` in the transaction of the write, elsewhere
by ``lock.fence``, a number that only grows for a key.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from headrace import ids, logs
from headrace.database import Database, Tx
from headrace.errors import HeadraceError
from headrace.locks import taking
from headrace.locks.errors import LockLost
from headrace.locks.model import Claim, Grant

log = logs.get(__name__)

DEFAULT_TTL = timedelta(seconds=30)

_RENEWED_AFTER = 1 / 3  # of its time
_TRIED_AGAIN_AFTER = 1 / 20  # when the database did not answer
_SAFE_FOR = 0.9


class Held:
    """A lock in the hands of a block."""

    def __init__(self, db: Database, grant: Grant, ttl: timedelta) -> None:
        self.key = grant.lock.lock_key
        self.user_id = grant.lock.user_id
        self.fence = grant.lock.fence
        self.token = grant.token
        self._db = db
        self._ttl = ttl

    async def confirm(self, tx: Tx) -> None:
        """``LockLost`` unless it is held; nobody else can take it before this transaction has ended."""
        await taking.confirm(tx, self.key, self.token, user_id=self.user_id)

    async def keep(self, scope: asyncio.Timeout) -> None:
        """Renew it, and move the end of the scope with it; end the scope at once when it is lost."""
        loop = asyncio.get_running_loop()
        whole = self._ttl.total_seconds()
        pause = whole * _RENEWED_AFTER
        while True:
            await asyncio.sleep(pause)
            asked_at = loop.time()
            try:
                async with self._db.transaction() as tx:
                    await taking.renew(tx, self.key, self.token, ttl=self._ttl, user_id=self.user_id)
            except LockLost:
                _end_at(scope, asked_at)
                return
            except HeadraceError as exc:
                log.warning("lock.not_renewed", key=self.key, error=exc.code)
                pause = whole * _TRIED_AGAIN_AFTER
            else:
                _end_at(scope, asked_at + whole * _SAFE_FOR)
                pause = whole * _RENEWED_AFTER

    async def let_go(self) -> None:
        """Release it; ``LockLost`` when somebody has ended it. Who cannot reach the database leaves it to expire."""
        try:
            async with asyncio.timeout(self._ttl.total_seconds()), self._db.transaction() as tx:
                await taking.release(tx, self.key, self.token, user_id=self.user_id)
        except LockLost:
            raise
        except (HeadraceError, TimeoutError) as exc:
            log.warning("lock.not_released", key=self.key, error=type(exc).__name__)


@asynccontextmanager
async def hold(
    db: Database,
    key: str,
    *,
    ttl: timedelta = DEFAULT_TTL,
    purpose: str | None = None,
    wait: timedelta | None = timedelta(0),
    user_id: str = ids.SYSTEM_USER,
    holder: str | None = None,
) -> AsyncIterator[Held]:
    """Hold a lock while the block runs. ``LockHeld`` unless it is free within ``wait`` (None: however long it takes).

    ``LockLost`` in the place of the block's end when it was lost: then the block was canceled, or had just ended. The
    block must not keep the event loop busy for long, or the lock is not renewed.
    """
    claim = Claim(key, holder or f"{socket.gethostname()}:{os.getpid()}", ttl, purpose, user_id)
    loop = asyncio.get_running_loop()

    async def attempt() -> tuple[float, Grant]:
        asked_at = loop.time()
        async with db.transaction() as tx:
            return asked_at, await taking.acquire(tx, claim)

    asked_at, grant = await taking.when_free(attempt, wait=wait)
    held = Held(db, grant, ttl)
    scope = asyncio.timeout_at(asked_at + ttl.total_seconds() * _SAFE_FOR)
    keeping: asyncio.Task[None] | None = None
    try:
        async with scope:
            keeping = asyncio.create_task(held.keep(scope))
            yield held
    except BaseException as exc:
        await _stop(keeping)
        if scope.expired() and isinstance(exc, TimeoutError):
            raise LockLost(key=key) from None
        await _let_go_quietly(held, scope)
        raise
    await _stop(keeping)
    if scope.expired():  # just as the block ended
        raise LockLost(key=key)
    await held.let_go()


def _end_at(scope: asyncio.Timeout, when: float) -> None:
    if not scope.expired():  # else the block is being canceled already
        scope.reschedule(when)


async def _stop(keeping: asyncio.Task[None] | None) -> None:
    if keeping is not None and not keeping.done():
        keeping.cancel()
        await asyncio.wait({keeping}, timeout=1)


async def _let_go_quietly(held: Held, scope: asyncio.Timeout) -> None:
    """After a failure of the block: that one is told."""
    if scope.expired():
        return
    try:
        await held.let_go()
    except LockLost:
        log.warning("lock.lost", key=held.key)
