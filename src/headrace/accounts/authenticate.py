"""Authenticates requests by a session token, in the header or the cookie, or by an API key."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from headrace import logs
from headrace.access import Authenticate, Caller, Count, Credentials, RateLimit, Role, Scope
from headrace.accounts import tokens
from headrace.accounts.config import SessionConfig
from headrace.accounts.errors import CsrfFailed
from headrace.accounts.store import api_keys, sessions
from headrace.accounts.store.sessions import Holder
from headrace.audit import ActorType, Principal, PrincipalType, Who
from headrace.database import Database
from headrace.database_errors import DatabaseBusy, SchemaMissing
from headrace.errors import Unauthenticated

log = logs.get(__name__)


def authenticator(config: SessionConfig, csrf_key: bytes) -> Authenticate:
    """The function with which the edge authenticates every request."""

    async def authenticate(db: Database, who: Who, credentials: Credentials, changes_something: bool) -> Caller:
        if credentials.bearer is not None:
            if credentials.bearer.startswith(tokens.API_KEY):
                return await _counted(credentials.limit, partial(_by_api_key, db, config, who, credentials.bearer))
            return await _counted(credentials.limit, partial(_by_session, db, config, who, credentials.bearer))
        if credentials.cookie is None:
            raise Unauthenticated
        caller = await _counted(credentials.limit, partial(_by_session, db, config, who, credentials.cookie))
        # Browsers send the cookie for any page; only our own pages can read the CSRF token and send it as well.
        assert caller.session_id is not None
        if changes_something and not tokens.same(credentials.csrf, tokens.csrf(csrf_key, caller.session_id)):
            raise CsrfFailed
        return caller

    return authenticate


async def _counted(limit: RateLimit | None, find: Callable[[RateLimit | None], Awaitable[Caller]]) -> Caller:
    """Find the caller, and count the request in the same statement. If the counts alone cannot be had (their rows are
    locked), the request goes on without."""
    try:
        return await find(limit)
    except (DatabaseBusy, SchemaMissing) as exc:
        if limit is None:
            raise
        log.warning("limits.unavailable", error=exc.code)
        return replace(await find(None), count=Count(known=False))


async def _by_session(db: Database, config: SessionConfig, who: Who, token: str, limit: RateLimit | None) -> Caller:
    if not token.startswith(tokens.SESSION):
        raise Unauthenticated
    async with db.autocommit() as tx:  # one statement but for once in a while
        holder = await sessions.find_holder(
            tx, tokens.digest(token), idle_lifetime=config.idle_lifetime, seen_every=config.seen_every, limit=limit
        )
        if holder is None:
            raise Unauthenticated("The session has ended: log in again.")
        if holder.note_use:
            await sessions.note_seen(tx, holder.id, every=config.seen_every)
    return _caller(who, holder, session_id=holder.id)


async def _by_api_key(db: Database, config: SessionConfig, who: Who, key: str, limit: RateLimit | None) -> Caller:
    async with db.autocommit() as tx:  # one statement but for once in a while
        holder = await api_keys.find_holder(tx, tokens.digest(key), seen_every=config.seen_every, limit=limit)
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
