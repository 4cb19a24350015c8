"""Acquires, renews and releases locks."""

import asyncio
import hashlib
import random
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from time import monotonic
from typing import TypeVar

from headrace import ids
from headrace.database import Tx
from headrace.locks import store
from headrace.locks.errors import LockHeld, LockLost
from headrace.locks.model import Claim, Grant, Lock, check_ttl

T = TypeVar("T")

_FIRST_PAUSE_S = 0.02
_MAX_PAUSE_S = 0.25


def digest_of(token: str) -> str:
    """The stored digest. No salt or work factor is needed for 256 random bits."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


async def acquire(tx: Tx, claim: Claim) -> Grant:
    """Take a lock, or ``LockHeld`` at once. It is held from the commit on; until then other takers are refused."""
    held = await store.find_held(tx, claim.user_id, claim.key)
    if held is None:
        token = secrets.token_urlsafe(32)
        fence = await store.next_fence(tx, claim.user_id, claim.key)
        await store.expire_one(tx, claim.user_id, claim.key)
        taken = await store.insert_lock(tx, claim, fence=fence, digest=digest_of(token))
        if taken is not None:
            return Grant(taken, token)
        # Another taker was faster, or a transaction of the last holder is under way.
        held = await store.find_held(tx, claim.user_id, claim.key)
    raise _held(claim.key, held)


def _held(key: str, lock: Lock | None) -> LockHeld:
    if lock is None:
        return LockHeld("This lock is being released: try again.", retry_after=timedelta(milliseconds=50), key=key)
    return LockHeld(
        f"{lock.holder_id} holds this lock until {lock.expires_at:%Y-%m-%d %H:%M:%S} UTC, unless it is renewed: try "
        "again later, or wait for it.",
        retry_after=lock.remaining,
        key=key,
        holder=lock.holder_id,
        purpose=lock.purpose,
        expires_at=lock.expires_at,
    )


async def _never_gone() -> bool:
    return False


async def retry_while_held(
    attempt: Callable[[], Awaitable[T]],
    *,
    wait: timedelta | None,
    caller_gone: Callable[[], Awaitable[bool]] = _never_gone,
) -> T:
    """Repeat an attempt to take a lock until it succeeds; the last ``LockHeld`` when the wait is over (None: never).

    ``caller_gone`` ends it sooner, so that no lock is taken for a caller that has left. Each attempt has its own
    transaction, so nothing is held in between, and waiting callers have no order.
    """
    deadline = None if wait is None else monotonic() + wait.total_seconds()
    longest = _FIRST_PAUSE_S
    while True:
        try:
            return await attempt()
        except LockHeld as held:
            pause = longest * random.uniform(0.5, 1)  # noqa: S311 - jitter of retries
            if held.retry_after is not None:
                pause = min(pause, max(held.retry_after.total_seconds(), 0.001))
            if deadline is not None:
                left = deadline - monotonic()
                if left <= 0:
                    raise
                pause = min(pause, left)
            await asyncio.sleep(pause)
            if await caller_gone():
                raise
        longest = min(longest * 1.5, _MAX_PAUSE_S)


async def renew(tx: Tx, key: str, token: str, *, ttl: timedelta, user_id: str = ids.SYSTEM_USER) -> Lock:
    """Extend the lease to ``ttl`` from now, or ``LockLost``."""
    check_ttl(ttl)
    lock = await store.renew(tx, user_id, key, digest=digest_of(token), ttl=ttl)
    if lock is None:
        raise LockLost(key=key)
    return lock


async def confirm(tx: Tx, key: str, token: str, *, user_id: str = ids.SYSTEM_USER) -> None:
    """``LockLost`` unless it is held with this token. It stays held until this transaction ends."""
    if not await store.confirm(tx, user_id, key, digest=digest_of(token)):
        raise LockLost(key=key)


async def release(tx: Tx, key: str, token: str, *, user_id: str = ids.SYSTEM_USER) -> tuple[Lock, Lock]:
    """Release it, or ``LockLost`` if it is no longer held. Returns the holding before and after."""
    ended = await store.release(tx, user_id, key, digest=digest_of(token))
    if ended is None:
        raise LockLost(key=key)
    return ended
