"""How a user gets in, for administrators: their sessions and API keys. Each look at another user's is audited."""

from headrace import audit
from headrace.accounts import api_keys, sessions
from headrace.accounts.administration import get_user
from headrace.accounts.config import SessionConfig
from headrace.accounts.model import ApiKey, Session
from headrace.accounts.store import api_keys as api_keys_store
from headrace.accounts.store import sessions as sessions_store
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Tx
from headrace.sql import Mark


async def list_sessions(
    tx: Tx, config: SessionConfig, who: Who, user_id: str, *, older_than: Mark | None, limit: int
) -> list[Session]:
    """A user's active sessions, newest first. Audited."""
    await _audit_read(tx, who, user_id, ResourceType.SESSION)
    return await sessions_store.list_sessions(
        tx, user_id, idle_lifetime=config.idle_lifetime, older_than=older_than, limit=limit
    )


async def revoke_session(tx: Tx, who: Who, user_id: str, session_id: str) -> None:
    """End one of a user's sessions; ``SessionNotFound`` if they have no such active session."""
    await get_user(tx, who, user_id)
    await sessions.revoke(tx, who, user_id, session_id)


async def list_api_keys(tx: Tx, who: Who, user_id: str, *, older_than: Mark | None, limit: int) -> list[ApiKey]:
    """A user's unrevoked API keys, newest first. Audited."""
    await _audit_read(tx, who, user_id, ResourceType.API_KEY)
    return await api_keys_store.list_api_keys(tx, user_id, older_than=older_than, limit=limit)


async def revoke_api_key(tx: Tx, who: Who, user_id: str, api_key_id: str) -> None:
    """Revoke one of a user's API keys at once; ``ApiKeyNotFound`` if they have no such unrevoked key."""
    await get_user(tx, who, user_id)
    await api_keys.revoke(tx, who, user_id, api_key_id)


async def _audit_read(tx: Tx, who: Who, user_id: str, what: ResourceType) -> None:
    """``UserNotFound`` if there is no such user; otherwise the read is on record, unless it is the reader's own."""
    await get_user(tx, who, user_id)
    if user_id != who.principal.uid:
        await audit.record(tx, who, Action.READ, Resource(what, "*", {"user_id": user_id}))
