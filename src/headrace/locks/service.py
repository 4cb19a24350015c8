"""Verbs of locks for users and programs: callers reach their own; administrators read all and can force-release.

Acquire, release and force-release are audited. Renewals are not, because the history records the end.
"""

from datetime import timedelta

from headrace import audit
from headrace.access import AdminOnly, Caller
from headrace.audit import Action, Resource, ResourceType
from headrace.database import Tx
from headrace.locks import store, taking
from headrace.locks.errors import LockNotFound, TooManyLocks
from headrace.locks.model import Claim, Grant, Lock
from headrace.locks.store import Filter

EVERY_USER = "*"
MAX_LOCKS = 1_000  # held by one user at a time


async def acquire_lock(
    tx: Tx, caller: Caller, key: str, *, ttl: timedelta, holder: str | None = None, purpose: str | None = None
) -> Grant:
    """Take one of the caller's locks, or ``LockHeld`` at once; ``TooManyLocks`` at the limit."""
    if await store.count_held(tx, caller.user_id) >= MAX_LOCKS:
        raise TooManyLocks
    grant = await taking.acquire(tx, Claim(key, holder or _name(caller), ttl, purpose, caller.user_id))
    await audit.record(tx, caller.who, Action.GRANTED, _resource(grant.lock), new=grant.lock)
    return grant


async def renew_lock(tx: Tx, caller: Caller, key: str, token: str, *, ttl: timedelta) -> Lock:
    """Extend the lease to ``ttl`` from now; ``LockLost`` if it is not held with this token."""
    return await taking.renew(tx, key, token, ttl=ttl, user_id=caller.user_id)


async def release_lock(tx: Tx, caller: Caller, key: str, token: str) -> Lock:
    """Release it; ``LockLost`` if it is not held with this token."""
    old, new = await taking.release(tx, key, token, user_id=caller.user_id)
    await audit.record(tx, caller.who, Action.UPDATED, _resource(new), old=old, new=new, data={"verb": "release"})
    return new


async def force_release_lock(tx: Tx, caller: Caller, key: str, *, user_id: str) -> Lock:
    """End a holding, administrators only. The holder notices at its next renewal.

    Waits for a transaction that has confirmed the lock. ``LockNotFound`` if it is not held.
    """
    if not caller.is_admin:
        raise AdminOnly
    ended = await store.release(tx, user_id, key, digest=None)
    if ended is None:
        raise LockNotFound
    old, new = ended
    await audit.record(tx, caller.who, Action.REVOKED, _resource(new), old=old, new=new)
    return new


async def list_locks(tx: Tx, caller: Caller, wanted: Filter, *, before: int | None = None, limit: int) -> list[Lock]:
    """Holdings, newest first. Only administrators list other users' locks."""
    if wanted.user_id != caller.user_id:
        if not caller.is_admin:
            raise AdminOnly("Only an administrator may list other people's locks.")
        owner = wanted.user_id or EVERY_USER
        await audit.record(
            tx, caller.who, Action.READ, Resource(ResourceType.LOCK, EVERY_USER), data={"user_id": owner}
        )
    return await store.list_locks(tx, wanted, before=before, limit=limit)


def _name(caller: Caller) -> str:
    """The default name of the holder."""
    return caller.api_key_id or caller.session_id or caller.user_id


def _resource(lock: Lock) -> Resource:
    return Resource(ResourceType.LOCK, lock.lock_key, {"user_id": lock.user_id, "holder": lock.holder_id})
