"""Authenticates requests by a session token, in the header or the cookie, or by an API key."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import asyncpg

from headrace import logs
from headrace.access import Authenticate, Caller, Count, Credentials, RateLimit, Role, Scope
from headrace.accounts import tokens
from headrace.accounts.config import SessionConfig
from headrace.accounts.errors import CsrfFailed
from headrace.accounts.store import api_keys, sessions
from headrace.accounts.store.sessions import Holder
from headrace.audit import ActorType, Principal, PrincipalType, Who
from headrace.database import Database
from headrace.errors import Unauthenticated

log = logs.get(__name__)

# Errors of the one statement that counts; a lost connection is none of them.
_UNCOUNTABLE = (
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.DeadlockDetectedError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.UndefinedTableError,
)


def authenticator(config: SessionConfig, csrf_key: bytes) -> Authenticate:
    """The function with which the edge authenticates every request."""

    async def authenticate(db: Database, who: Who, credentials: Credentials, changes_something: bool) -> Caller:
        if credentials.bearer is not None:
            if credentials.bearer.startswith(tokens.API_KEY):
                return await _by_api_key(db, config, who, credentials.bearer, credentials.limit)
            return await _by_session(db, config, who, credentials.bearer, credentials.limit)
        if credentials.cookie is None:
            raise Unauthenticated
        # Browsers send the cookie for any page; only our own pages can read the CSRF token and send it as well. A
        # request without it is not the user's, so the edge counts the user's after this.
        limit = None if changes_something else credentials.limit
        caller = await _by_session(db, config, who, credentials.cookie, limit)
        assert caller.session_id is not None
        if changes_something and not tokens.same(credentials.csrf, tokens.csrf(csrf_key, caller.session_id)):
            raise CsrfFailed
        return caller

    return authenticate


async def _counted(
    limit: RateLimit | None, find: Callable[[RateLimit | None], Awaitable[Holder | None]]
) -> Holder | None:
    """Find the holder, and count the request in the same statement. If it cannot be counted (its row is locked, the
    disk is full, the server only reads), the request goes on without, on the same connection."""
    try:
        return await find(limit)
    except _UNCOUNTABLE as exc:
        if limit is None:
            raise
        log.warning("limits.unavailable", error=type(exc).__name__)
        holder = await find(None)
        return None if holder is None else replace(holder, count=Count(known=False))


async def _by_session(db: Database, config: SessionConfig, who: Who, token: str, limit: RateLimit | None) -> Caller:
    if not token.startswith(tokens.SESSION):
        raise Unauthenticated
    async with db.autocommit() as tx:  # one statement but for once in a while
        times = config.idle_lifetime, config.seen_every
        find = partial(sessions.find_holder, tx, tokens.digest(token), idle_lifetime=times[0], seen_every=times[1])
        holder = await _counted(limit, lambda counts: find(limit=counts))
        if holder is None:
            raise Unauthenticated("The session has ended: log in again.")
        if holder.note_use:
            await sessions.note_seen(tx, holder.id, every=config.seen_every)
    return _caller(who, holder, session_id=holder.id)


async def _by_api_key(db: Database, config: SessionConfig, who: Who, key: str, limit: RateLimit | None) -> Caller:
    async with db.autocommit() as tx:  # one statement but for once in a while
        digest, every = tokens.digest(key), config.seen_every
        holder = await _counted(limit, lambda count: api_keys.find_holder(tx, digest, seen_every=every, limit=count))
        if holder is None:
            raise Unauthenticated("This API key is unknown, expired or revoked.")
        if holder.note_use:
            await api_keys.note_used(tx, holder.id, every=config.seen_every)
    return _caller(who, holder, api_key_id=holder.id)


def _caller(who: Who, holder: Holder, *, session_id: str | None = None, api_key_id: str | None = None) -> Caller:
    as_admin = holder.role is Role.ADMIN and (holder.scopes is None or Scope.ADMIN in holder.scopes)
    principal = Principal(holder.user_id, holder.username or "", PrincipalType.USER)
    return Caller(
        who=who.acting_as(principal, ActorType.ADMIN if as_admin else ActorType.USER),
        user_id=holder.user_id,
        role=holder.role,
        scopes=holder.scopes,
        session_id=session_id,
        api_key_id=api_key_id,
        count=holder.count,
    )
