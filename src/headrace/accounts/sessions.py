"""Sessions: open, list, end."""

from datetime import datetime

from headrace import audit, ids
from headrace.access import Caller
from headrace.accounts import tokens
from headrace.accounts.config import SessionConfig
from headrace.accounts.errors import SessionNeeded, SessionNotFound, UserNotFound
from headrace.accounts.model import LoggedIn, Session, SessionId, User
from headrace.accounts.store import sessions as store
from headrace.accounts.store import users as users_store
from headrace.accounts.throttle import network_of
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Tx
from headrace.sql import Mark

_MAX_USER_AGENT_LENGTH = 512


async def open_session(tx: Tx, config: SessionConfig, user: User, who: Who, *, now: datetime | None = None) -> LoggedIn:
    """Open a session. The caller has authenticated the user, and audits the login."""
    token = tokens.new(tokens.SESSION)
    session = await store.insert_session(
        tx,
        SessionId(ids.new("ses")),
        user.id,
        token_hash=tokens.digest(token),
        client_ip=who.client_ip if network_of(who.client_ip) else None,
        user_agent=who.user_agent[:_MAX_USER_AGENT_LENGTH] if who.user_agent else None,
        lifetime=config.lifetime,
        now=now,
    )
    return LoggedIn(user, session, token)


async def get_self(tx: Tx, caller: Caller) -> User:
    """The caller's user."""
    user = await users_store.find_user(tx, caller.user_id)
    if user is None:
        raise UserNotFound
    return user


async def list_sessions(
    tx: Tx,
    config: SessionConfig,
    caller: Caller,
    *,
    older_than: Mark | None,
    limit: int,
    now: datetime | None = None,
) -> list[Session]:
    """The caller's active sessions, newest first."""
    return await store.list_sessions(
        tx, caller.user_id, idle_lifetime=config.idle_lifetime, older_than=older_than, limit=limit, now=now
    )


async def get_session(tx: Tx, config: SessionConfig, caller: Caller, session_id: str) -> Session:
    """One of the caller's active sessions."""
    found = await store.find_session(tx, session_id, caller.user_id, idle_lifetime=config.idle_lifetime)
    if found is None:
        raise SessionNotFound
    return found


async def revoke_session(tx: Tx, caller: Caller, session_id: str) -> None:
    """End one of the caller's sessions; ``SessionNotFound`` if there is no such active session."""
    await revoke(tx, caller.who, caller.user_id, session_id)


async def revoke(tx: Tx, who: Who, user_id: str, session_id: str) -> None:
    """End a session of this user; ``SessionNotFound`` if there is no such active session."""
    ended = await store.revoke_session(tx, session_id, user_id)
    if ended is None:
        raise SessionNotFound
    await audit.record(tx, who, Action.REVOKED, _resource(ended), new=ended)


async def revoke_other_sessions(tx: Tx, caller: Caller) -> int:
    """End all of the caller's sessions except the present one; returns their number."""
    ended = await store.revoke_all(tx, caller.user_id, besides=caller.session_id)
    if ended:
        await audit.record(
            tx,
            caller.who,
            Action.REVOKED,
            Resource(ResourceType.USER, caller.user_id),
            data={"sessions_ended": str(ended)},
        )
    return ended


async def log_out(tx: Tx, caller: Caller) -> None:
    """End the caller's present session. Idempotent."""
    if caller.session_id is None:
        raise SessionNeeded("An API key has no session: revoke it instead.")
    ended = await store.revoke_session(tx, caller.session_id, caller.user_id)
    if ended is not None:
        await audit.record(tx, caller.who, Action.LOGOUT, _resource(ended))


def _resource(session: Session) -> Resource:
    return Resource(ResourceType.SESSION, session.id, {"user_id": session.user_id})


async def forget_sessions(tx: Tx, *, limit: int, now: datetime | None = None) -> int:
    """Delete at most ``limit`` sessions that ended long ago; returns their number. For maintenance."""
    return await store.forget(tx, limit=limit, now=now)
