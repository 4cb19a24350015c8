"""A user changes their own password."""

from datetime import datetime

from headrace import audit
from headrace.accounts import rules, throttle
from headrace.accounts.errors import (
    InvalidPassword,
    NoPassword,
    PasswordsBusy,
    SessionNeeded,
    UserNotFound,
    WrongPassword,
)
from headrace.accounts.model import User
from headrace.accounts.registration import user_resource
from headrace.accounts.service import Accounts
from headrace.accounts.store import sessions as sessions_store
from headrace.accounts.store import users as store
from headrace.audit import Action
from headrace.database import Database, Tx
from headrace.edge.caller import Caller
from headrace.edge.errors import PreconditionFailed


async def change_password(
    db: Database, accounts: Accounts, caller: Caller, *, current: str, new: str, now: datetime | None = None
) -> User:
    """Replace the caller's password and end all their other sessions.

    It takes the database for the same reasons as ``log_in``. The current password is needed, and guesses at it are
    throttled: a session left open somewhere must not be enough to take the account over.
    """
    if caller.session_id is None:
        raise SessionNeeded
    if current == new:
        raise InvalidPassword("The new password must not be the current one.", field="new_password")
    user, attempt = await _begin(db, accounts, caller, new, now)
    try:
        right = await accounts.passwords.verify(user.password_hash, current)
        hashed = await accounts.passwords.hash(new) if right else None
    except PasswordsBusy:
        async with db.transaction() as tx:
            await throttle.take_back(tx, attempt)
        raise
    async with db.transaction() as tx:
        if hashed is not None:
            changed = await _replace(tx, caller, user, hashed)
            # After the user's row, as when logging in: both orders would wait for each other.
            await throttle.succeed(tx, attempt)
            return changed
        await audit.record(
            tx,
            caller.who,
            Action.LOGIN,
            user_resource(user),
            data={"outcome": "failure", "reason": "wrong_password", "purpose": "change"},
        )
    raise WrongPassword(field="current_password")


async def _begin(
    db: Database, accounts: Accounts, caller: Caller, new: str, now: datetime | None
) -> tuple[User, throttle.Attempt]:
    async with db.transaction() as tx:
        user = await store.find_user(tx, caller.user_id)
        if user is None:
            raise UserNotFound
        if user.username is None or user.password_hash is None:
            raise NoPassword
        rules.check_password(new, username=user.username, config=accounts.config.passwords, field="new_password")
        network = throttle.network_of(caller.who.client_ip)
        subject = throttle.change_subject(user.id)
        attempt = await throttle.reserve(tx, accounts.config.throttle, subject, network, now=now)
    return user, attempt


async def _replace(tx: Tx, caller: Caller, checked: User, password_hash: str) -> User:
    old = await store.lock_user(tx, checked.id)
    if old is None or old.password_hash != checked.password_hash:
        raise PreconditionFailed("The password was changed by another request in the meantime.")
    new = await store.set_password(tx, old, password_hash)
    ended = await sessions_store.revoke_all(tx, new.id, besides=caller.session_id)
    await audit.record(
        tx, caller.who, Action.UPDATED, user_resource(new), old=old, new=new, data={"sessions_ended": str(ended)}
    )
    return new
