"""API keys for programs: created by users, shown once, limited to scopes."""

from collections.abc import Set as AbstractSet
from datetime import datetime

from headrace import audit, ids
from headrace.access import Caller, Role, Scope, is_type_scope
from headrace.accounts import tokens
from headrace.accounts.errors import ApiKeyNotFound, InvalidExpiry, InvalidScopes, SessionNeeded, TooManyApiKeys
from headrace.accounts.model import ApiKey, ApiKeyId, ApiKeyMade, UserId
from headrace.accounts.store import api_keys as store
from headrace.audit import Action, ActorType, Resource, ResourceType, Who
from headrace.database import Tx
from headrace.sql import Mark

_HINT_LENGTH = 4
MAX_API_KEYS = 200  # unrevoked keys of one user


def refuse_program(caller: Caller) -> None:
    """Only a logged-in user can create a key, or an operator with access to the database."""
    if caller.session_id is None and caller.who.actor_type is not ActorType.SYSTEM:
        raise SessionNeeded("Log in to create an API key: an API key cannot create another.")


async def create_api_key(
    tx: Tx, caller: Caller, *, name: str, scopes: AbstractSet[str], expires_at: datetime | None = None
) -> ApiKeyMade:
    """Create a key for the caller. Programs cannot: a key that creates keys could outlive its revocation."""
    refuse_program(caller)
    if await store.count_api_keys(tx, caller.user_id) >= MAX_API_KEYS:
        raise TooManyApiKeys
    if not scopes:
        raise InvalidScopes("An API key needs at least one scope.", field="scopes")
    unknown = sorted(scope for scope in scopes if scope not in set(Scope) and not is_type_scope(scope))
    if unknown:
        raise InvalidScopes(f"There is no scope {unknown[0]}.", field="scopes")
    if Scope.ADMIN in scopes and caller.role is not Role.ADMIN:
        raise InvalidScopes("Only an administrator can create an API key with the scope admin.", field="scopes")
    key = tokens.new(tokens.API_KEY)
    made = await store.insert_api_key(
        tx,
        ApiKeyId(ids.new("key")),
        UserId(caller.user_id),
        name=name,
        key_hash=tokens.digest(key),
        key_hint=key[-_HINT_LENGTH:],
        scopes=frozenset(scopes),
        expires_at=expires_at,
    )
    if made is None:
        raise InvalidExpiry(field="expires_at")
    await audit.record(tx, caller.who, Action.CREATED, _resource(made), new=made)
    return ApiKeyMade(made, key)


async def list_api_keys(tx: Tx, caller: Caller, *, older_than: Mark | None, limit: int) -> list[ApiKey]:
    """The caller's unrevoked keys, newest first."""
    return await store.list_api_keys(tx, caller.user_id, older_than=older_than, limit=limit)


async def get_api_key(tx: Tx, caller: Caller, api_key_id: str) -> ApiKey:
    found = await store.find_api_key(tx, api_key_id, caller.user_id)
    if found is None:
        raise ApiKeyNotFound
    return found


async def revoke_api_key(tx: Tx, caller: Caller, api_key_id: str) -> None:
    """Revoke one of the caller's keys at once; ``ApiKeyNotFound`` if there is no such unrevoked key."""
    await revoke(tx, caller.who, caller.user_id, api_key_id)


async def revoke(tx: Tx, who: Who, user_id: str, api_key_id: str) -> None:
    """Revoke a key of this user at once; ``ApiKeyNotFound`` if there is no such unrevoked key."""
    ended = await store.revoke_api_key(tx, api_key_id, user_id)
    if ended is None:
        raise ApiKeyNotFound
    await audit.record(tx, who, Action.REVOKED, _resource(ended), new=ended)


def _resource(api_key: ApiKey) -> Resource:
    return Resource(ResourceType.API_KEY, api_key.id, {"name": api_key.name, "user_id": api_key.user_id})
