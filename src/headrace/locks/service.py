"""Locks for people and programs: each caller's own, by name; administrators see all and can take one away.

Taking, releasing and taking away are audited. Renewing is not: it says nothing new, and the history has its end.
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

EVERYBODY = "*"
MAX_LOCKS = 1_000  # that one user holds at a time


async def acquire_lock(
    tx: Tx, caller: Caller, key: str, *, ttl: timedelta, holder: str | None = None, purpose: str | None = None
) -> Grant:
    """Take one of the caller's locks, or ``LockHeld`` at once; ``TooManyLocks`` for who holds very many."""
    if await store.count_held(tx, caller.user_id) >= MAX_LOCKS:
        raise TooManyLocks
    grant = await taking.acquire(tx, Claim(key, holder or _name(caller), ttl, purpose, caller.user_id))
    await audit.record(tx, caller.who, Action.GRANTED, _resource(grant.lock), new=grant.lock)
    return grant


async def renew_lock(tx: Tx, caller: Caller, key: str, token: str, *, ttl: timedelta) -> Lock:
    """Hold on for ``ttl`` from now; ``LockLost`` when it is not held with this token (any more)."""
    return await taking.renew(tx, key, token, ttl=ttl, user_id=caller.user_id)


async def release_lock(tx: Tx, caller: Caller, key: str, token: str) -> Lock:
    """Let go; ``LockLost`` when it is not held with this token (any more)."""
    old, new = await taking.release(tx, key, token, user_id=caller.user_id)
    await audit.record(tx, caller.who, Action.UPDATED, _resource(new), old=old, new=new, data={"verb": "release"})
    return new


async def force_release_lock(tx: Tx, caller: Caller, key: str, *, user_id: str) -> Lock:
    """Take a lock away from whoever holds it: administrators only. The holder learns it when it renews next.

    A transaction that has confirmed the lock is waited for. ``LockNotFound`` when nobody holds it.
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
    """Who holds and who held what, newest first. Only administrators list somebody else's, or everybody's."""
    if wanted.user_id != caller.user_id:
        if not caller.is_admin:
            raise AdminOnly("Only an administrator may list other people's locks.")
        owner = wanted.user_id or EVERYBODY
        await audit.record(tx, caller.who, Action.READ, Resource(ResourceType.LOCK, EVERYBODY), data={"user_id": owner})
    return await store.list_locks(tx, wanted, before=before, limit=limit)


def _name(caller: Caller) -> str:
    """Who holds it, when the caller does not say."""
    return caller.api_key_id or caller.session_id or caller.user_id


def _resource(lock: Lock) -> Resource:
    return Resource(ResourceType.LOCK, lock.lock_key, {"user_id": lock.user_id, "holder": lock.holder_id})
