"""Requests and undoes deletions of accounts. ``machine`` carries them out.

The request suspends the user, ends sessions and revokes API keys permanently. Until the grace period is over all other
data stays, and the request can be undone.
"""

from datetime import datetime, timedelta

from headrace import audit
from headrace.access import Caller, PreconditionFailed
from headrace.accounts import administration, confirmation, throttle
from headrace.accounts.errors import (
    DeletionNotFound,
    DeletionStarted,
    InvalidWeChatCode,
    SessionNeeded,
    UserNotFound,
    WeChatOff,
)
from headrace.accounts.model import Deletion, DeletionStatus, User, UserStatus
from headrace.accounts.service import Accounts
from headrace.accounts.store import api_keys as api_keys_store
from headrace.accounts.store import deletions as store
from headrace.accounts.store import sessions as sessions_store
from headrace.accounts.store import users as users_store
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Database, Tx
from headrace.sql import Mark


async def delete_own_account(
    db: Database, accounts: Accounts, caller: Caller, *, password: str, now: datetime | None = None
) -> Deletion:
    """Request the deletion of the caller's account. Requires the password, with throttled guesses: an open session must
    not be enough. Takes the database for the same reasons as ``log_in``."""
    confirmed = await confirmation.confirm(db, accounts, caller, password, purpose="delete", field="password", now=now)
    async with db.transaction() as tx:
        await users_store.lock_admins(tx)
        user = await users_store.lock_user(tx, confirmed.user.id)
        if user is None or user.password_hash != confirmed.user.password_hash:
            raise PreconditionFailed("The password was changed by another request in the meantime.")
        deletion = await _request(tx, caller.who, user, grace=accounts.config.deletion.grace, now=now)
        await throttle.succeed(tx, confirmed.attempt)
        return deletion


async def delete_own_wechat_account(db: Database, accounts: Accounts, caller: Caller, *, code: str) -> Deletion:
    """The same for a user without a password, who is identified by WeChat."""
    if caller.session_id is None:
        raise SessionNeeded
    if accounts.wechat is None:
        raise WeChatOff
    openid = await accounts.wechat.openid_of(code)
    async with db.transaction() as tx:
        await users_store.lock_admins(tx)
        user = await users_store.lock_user(tx, caller.user_id)
        if user is None or user.wechat_openid != openid:
            raise InvalidWeChatCode("This code belongs to another user.", field="code")
        return await _request(tx, caller.who, user, grace=accounts.config.deletion.grace)


async def delete_account(tx: Tx, who: Who, user_id: str, *, grace: timedelta, now: datetime | None = None) -> Deletion:
    """Request the deletion of an account. Idempotent, except that a zero ``grace`` ends the grace period."""
    await users_store.lock_admins(tx)
    user = await users_store.lock_user(tx, user_id)
    if user is None:
        raise UserNotFound
    return await _request(tx, who, user, grace=grace, now=now)


async def _request(tx: Tx, who: Who, user: User, *, grace: timedelta, now: datetime | None = None) -> Deletion:
    """The caller holds the lock on administrators and the user's row."""
    if (there := await store.find_open(tx, user.id)) is not None:
        if grace > timedelta(0) or (due_now := await store.end_grace_period(tx, there, now=now)) is None:
            return there
        await _record(tx, who, Action.UPDATED, due_now, {"due_at": due_now.due_at.isoformat()})
        return due_now
    await administration.refuse_last_admin(tx, user)
    deletion = await store.insert_deletion(tx, user, requested_by=who.principal.uid, grace=grace, now=now)
    if user.is_active:
        await users_store.set_status(tx, user, UserStatus.SUSPENDED)
    sessions = await sessions_store.revoke_all(tx, user.id)
    api_keys = await api_keys_store.revoke_all(tx, user.id)
    facts = {
        "due_at": deletion.due_at.isoformat(),
        "sessions_ended": str(sessions),
        "api_keys_revoked": str(api_keys),
    }
    await _record(tx, who, Action.DISABLED, deletion, facts)
    return deletion


async def keep_account(tx: Tx, who: Who, user_id: str, *, now: datetime | None = None) -> User:
    """Undo a deletion that has not begun: the user's former status is restored. API keys stay revoked.

    ``DeletionNotFound`` if there is none, ``DeletionStarted`` if it is too late.
    """
    user = await users_store.lock_user(tx, user_id)
    if user is None:
        raise DeletionNotFound
    if (undone := await store.cancel(tx, user.id, now=now)) is None:
        raise DeletionStarted if await store.find_open(tx, user.id) else DeletionNotFound
    kept = user if undone.status_before is user.status else await users_store.set_status(tx, user, undone.status_before)
    await _record(tx, who, Action.ENABLED, undone, {})
    return kept


async def get_deletion(tx: Tx, who: Who, user_id: str) -> Deletion:
    """The last deletion of an account, in any state. Audited."""
    found = await store.find_last(tx, user_id)
    if found is None:
        raise DeletionNotFound
    await _record(tx, who, Action.READ, found, {})
    return found


async def list_deletions(
    tx: Tx, who: Who, *, status: DeletionStatus | None = None, older_than: Mark | None = None, limit: int
) -> list[Deletion]:
    """Deletions, newest first. Audited."""
    facts = {"of": "deletions"} | ({"status": status} if status is not None else {})
    await audit.record(tx, who, Action.READ, Resource(ResourceType.ACCOUNT, "*"), data=facts)
    return await store.list_deletions(tx, status=status, older_than=older_than, limit=limit)


async def _record(tx: Tx, who: Who, action: Action, deletion: Deletion, facts: dict[str, str]) -> None:
    await audit.record(tx, who, action, account_resource(deletion), data={"deletion_id": deletion.id} | facts)


def account_resource(deletion: Deletion) -> Resource:
    """The audited resource, without the name, because the trail outlives the account."""
    return Resource(ResourceType.ACCOUNT, deletion.user_id)
