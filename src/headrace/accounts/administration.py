"""Administration of accounts. At least one active administrator always remains, also under concurrent changes."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headrace import audit
from headrace.access import Role, check_version
from headrace.accounts import rules, throttle
from headrace.accounts.errors import DeletionPending, LastAdmin, NoPassword, UsernameTaken, UserNotFound
from headrace.accounts.model import NewUser, User, UserStatus
from headrace.accounts.newcomers import Welcome
from headrace.accounts.passwords import generate
from headrace.accounts.registration import prepare, register, user_resource
from headrace.accounts.service import Accounts
from headrace.accounts.store import deletions as deletions_store
from headrace.accounts.store import links as links_store
from headrace.accounts.store import sessions as sessions_store
from headrace.accounts.store import users as store
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Database, Tx
from headrace.sql import Mark


async def get_user(tx: Tx, who: Who, user_id: str) -> User:
    """Any user. Reading another user is audited."""
    user = await store.find_user(tx, user_id)
    if user is None:
        raise UserNotFound
    if user.id != who.principal.uid:
        await audit.record(tx, who, Action.READ, user_resource(user))
    return user


async def list_users(
    tx: Tx,
    who: Who,
    *,
    username: str | None = None,
    status: UserStatus | None = None,
    role: Role | None = None,
    older_than: Mark | None = None,
    limit: int,
) -> list[User]:
    """Users, newest first; by ``username`` at most one. Audited."""
    asked = {"username": username, "status": status, "role": role}
    filters = {name: value for name, value in asked.items() if value is not None}
    await audit.record(tx, who, Action.READ, Resource(ResourceType.USER, "*"), data=filters)
    if username is None:
        return await store.list_users(tx, status=status, role=role, older_than=older_than, limit=limit)
    user = await store.find_by_name(tx, rules.fold(username.strip()))
    wanted = user is not None and status in (None, user.status) and role in (None, user.role)
    return [user] if user is not None and wanted and older_than is None else []


async def list_names(tx: Tx, who: Who, user_ids: Sequence[str]) -> dict[str, str | None]:
    """The usernames of these users, for lists of what is theirs. Audited."""
    names = await store.list_names(tx, user_ids)
    facts = {"users": str(len(names))}
    await audit.record(tx, who, Action.READ, Resource(ResourceType.USER, "*"), data=facts)
    return names


async def suspend(tx: Tx, who: Who, user_id: str, *, expected: int | None = None) -> User:
    """Suspend a user: sessions end, and API keys stop working with this commit. Idempotent."""
    await store.lock_admins(tx)
    old = await _lock(tx, user_id, expected)
    if old.status is UserStatus.SUSPENDED:
        await _refuse_while_deleted(tx, old)
        return old
    await refuse_last_admin(tx, old)
    new = await store.set_status(tx, old, UserStatus.SUSPENDED)
    ended = await sessions_store.revoke_all(tx, new.id)
    await audit.record(
        tx, who, Action.DISABLED, user_resource(new), old=old, new=new, data={"sessions_ended": str(ended)}
    )
    return new


async def reinstate(tx: Tx, who: Who, user_id: str, *, expected: int | None = None) -> User:
    """Reinstate a suspended user. Their API keys work again; ended sessions stay ended."""
    old = await _lock(tx, user_id, expected)
    if old.is_active:
        return old
    await _refuse_while_deleted(tx, old)
    new = await store.set_status(tx, old, UserStatus.ACTIVE)
    await audit.record(tx, who, Action.ENABLED, user_resource(new), old=old, new=new)
    return new


async def set_role(tx: Tx, who: Who, user_id: str, role: Role, *, expected: int | None = None) -> User:
    """Set a user's role. It applies from the next request on."""
    await store.lock_admins(tx)
    old = await _lock(tx, user_id, expected)
    if old.role is role:
        return old
    if role is not Role.ADMIN:
        await refuse_last_admin(tx, old)
    new = await store.set_role(tx, old, role)
    action, granted = (Action.GRANTED, role) if role is Role.ADMIN else (Action.REVOKED, old.role)
    await audit.record(tx, who, action, user_resource(new), old=old, new=new, data={"role": granted})
    return new


async def reset_password(
    db: Database, accounts: Accounts, who: Who, user_id: str, password: str, *, expected: int | None = None
) -> User:
    """Set a user's password and end all sessions. Takes the database, so that no transaction is open while hashing."""
    async with db.transaction(readonly=True) as tx:
        user = await store.find_user(tx, user_id)
    if user is None or user.status is UserStatus.DELETED:
        raise UserNotFound
    if user.username is None:
        raise NoPassword("This account logs in with WeChat and has no password.")
    rules.check_password(password, username=user.username, config=accounts.config.passwords)
    password_hash = await accounts.passwords.hash(password)
    async with db.transaction() as tx:
        old = await _lock(tx, user_id, expected)
        new = await store.set_password(tx, old, password_hash)
        await links_store.delete_links(tx, new.id)
        ended = await sessions_store.revoke_all(tx, new.id)
        # Continued guessing must not block the owner's first login with the new password.
        await throttle.forgive(tx, user.username)
        facts = {"sessions_ended": str(ended), "purpose": "reset"}
        await audit.record(tx, who, Action.UPDATED, user_resource(new), old=old, new=new, data=facts)
    return new


async def create_admin(tx: Tx, who: Who, new: NewUser, *, welcomes: Sequence[Welcome] = ()) -> User:
    """Store an administrator; ``prepare(…, role=Role.ADMIN, by_operator=True)`` makes ``new``."""
    if new.role is not Role.ADMIN:
        raise ValueError("an administrator has the role ADMIN")
    return await register(tx, who, new, welcomes=welcomes)


@dataclass(frozen=True, slots=True)
class FirstAdmin:
    """The first administrator of a new installation."""

    user: User
    password: str = field(repr=False)


async def ensure_first_admin(
    db: Database, accounts: Accounts, *, username: str = "admin", keep: Callable[[FirstAdmin], None] | None = None
) -> FirstAdmin | None:
    """Create an administrator if there is none, else None. Of several starting processes one creates it.

    ``keep`` is called before the commit; if it fails, no administrator is created.
    """
    async with db.transaction() as tx:
        if await store.admin_exists(tx):
            return None
    password = generate(accounts.config.passwords)
    # Hashed before taking the lock: some processes hash in vain, but none blocks the others.
    new = await prepare(accounts, username=username, password=password, role=Role.ADMIN, by_operator=True)
    try:
        async with db.transaction() as tx:
            await store.lock_admins(tx)
            if await store.admin_exists(tx):
                return None
            user = await create_admin(tx, Who.system(), new, welcomes=accounts.welcomes)
            made = FirstAdmin(user, password)
            if keep is not None:
                keep(made)
            return made
    except UsernameTaken:  # by a user who is not an administrator
        return await ensure_first_admin(db, accounts, username=f"{username}-{secrets.token_hex(2)}", keep=keep)


async def _lock(tx: Tx, user_id: str, expected: int | None) -> User:
    user = await store.lock_user(tx, user_id)
    if user is None:
        raise UserNotFound
    check_version(user.version, expected)
    return user


async def refuse_last_admin(tx: Tx, user: User) -> None:
    """Refuse to remove the last administrator. The caller holds the lock on administrators until its commit."""
    if user.role is Role.ADMIN and user.is_active and not await store.admin_exists(tx, besides=user.id):
        raise LastAdmin


async def _refuse_while_deleted(tx: Tx, user: User) -> None:
    """Refuse changes of status during a deletion, because undoing it restores the former status."""
    if await deletions_store.find_open(tx, user.id) is not None:
        raise DeletionPending
