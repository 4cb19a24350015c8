"""``async with hold(db, "key") as lock``: a lock for the duration of a block.

It is renewed in the background; a lost lock cancels the block and raises ``LockLost`` (``headrace.leases``). A process
that was paused can still act for a moment before it notices. The target of its writes must refuse them: in this
database with ``lock.confirm(tx)`` in the transaction of the write, elsewhere by ``lock.fence``, a number that only
grows for a key.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from headrace import ids, logs
from headrace.database import Database, Tx
from headrace.errors import HeadraceError
from headrace.leases import holding
from headrace.locks import taking
from headrace.locks.errors import LockLost
from headrace.locks.model import Claim, Grant

log = logs.get(__name__)

DEFAULT_TTL = timedelta(seconds=30)


class Held:
    """A lock that a block holds."""

    lost: type[HeadraceError] = LockLost

    def __init__(self, db: Database, grant: Grant, ttl: timedelta) -> None:
        self.key = grant.lock.lock_key
        self.user_id = grant.lock.user_id
        self.fence = grant.lock.fence
        self.token = grant.token
        self.ttl = ttl
        self._db = db

    async def confirm(self, tx: Tx) -> None:
        """``LockLost`` unless it is held; it stays held until this transaction ends."""
        await taking.confirm(tx, self.key, self.token, user_id=self.user_id)

    async def renew(self) -> None:
        """Extend the lease by the TTL from now."""
        try:
            async with self._db.transaction() as tx:
                await taking.renew(tx, self.key, self.token, ttl=self.ttl, user_id=self.user_id)
        except HeadraceError as exc:
            log.warning("lock.not_renewed", key=self.key, error=exc.code)
            raise

    async def release(self) -> None:
        """Release it; ``LockLost`` if it has ended already. Without a database connection it expires by itself."""
        try:
            async with asyncio.timeout(self.ttl.total_seconds()), self._db.transaction() as tx:
                await taking.release(tx, self.key, self.token, user_id=self.user_id)
        except LockLost:
            log.warning("lock.lost", key=self.key)
            raise
        except (HeadraceError, TimeoutError) as exc:
            log.warning("lock.not_released", key=self.key, error=type(exc).__name__)

    def loss(self) -> LockLost:
        return LockLost(key=self.key)


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
    """Hold a lock while the block runs. ``LockHeld`` unless it is free within ``wait`` (None: no limit).

    Raises ``LockLost`` at the end of the block when it was lost: the block was canceled, or had just ended. The block
    must not block the event loop for long, or the lock is not renewed.
    """
    claim = Claim(key, holder or f"{socket.gethostname()}:{os.getpid()}", ttl, purpose, user_id)
    loop = asyncio.get_running_loop()

    granted: Grant | None = None

    async def attempt() -> tuple[float, Grant]:
        nonlocal granted
        asked_at = loop.time()
        async with db.transaction() as tx:
            granted = await taking.acquire(tx, claim)
        return asked_at, granted

    try:
        asked_at, grant = await taking.retry_while_held(attempt, wait=wait)
    except asyncio.CancelledError:
        if granted is not None:  # its commit was under way, and may have succeeded
            with suppress(LockLost):
                await Held(db, granted, ttl).release()
        raise
    held = Held(db, grant, ttl)
    async with holding(held, asked_at=asked_at):
        yield held
