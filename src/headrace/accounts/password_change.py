"""Changes the caller's own password."""

from datetime import datetime

from headrace import audit
from headrace.access import Caller, PreconditionFailed
from headrace.accounts import confirmation, rules, throttle
from headrace.accounts.errors import InvalidPassword, PasswordsBusy, SessionNeeded
from headrace.accounts.model import User
from headrace.accounts.registration import user_resource
from headrace.accounts.service import Accounts
from headrace.accounts.store import links as links_store
from headrace.accounts.store import sessions as sessions_store
from headrace.accounts.store import users as store
from headrace.audit import Action
from headrace.database import Database, Tx


async def change_password(
    db: Database, accounts: Accounts, caller: Caller, *, current: str, new: str, now: datetime | None = None
) -> User:
    """Replace the caller's password and end all their other sessions.

    Takes the database for the same reasons as ``log_in``. Requires the current password, with throttled guesses: an
    open session must not be enough to take the account over.
    """
    if caller.session_id is None:
        raise SessionNeeded
    if current == new:
        raise InvalidPassword("The new password must not be the current one.", field="new_password")

    def check_new(user: User) -> None:
        rules.check_password(new, username=user.username or "", config=accounts.config.passwords, field="new_password")

    confirmed = await confirmation.confirm(
        db, accounts, caller, current, purpose="change", field="current_password", before=check_new, now=now
    )
    try:
        hashed = await accounts.passwords.hash(new)
    except PasswordsBusy:
        await confirmation.take_back(db, confirmed.attempt)
        raise
    async with db.transaction() as tx:
        changed = await _replace(tx, caller, confirmed.user, hashed)
        # Locked after the user's row, as in a login: another order could deadlock.
        await throttle.succeed(tx, confirmed.attempt)
        return changed


async def _replace(tx: Tx, caller: Caller, checked: User, password_hash: str) -> User:
    old = await store.lock_user(tx, checked.id)
    if old is None or old.password_hash != checked.password_hash:
        raise PreconditionFailed("The password was changed by another request in the meantime.")
    new = await store.set_password(tx, old, password_hash)
    await links_store.delete_links(tx, new.id)  # a link to reset the former password must not work any more
    ended = await sessions_store.revoke_all(tx, new.id, besides=caller.session_id)
    await audit.record(
        tx, caller.who, Action.UPDATED, user_resource(new), old=old, new=new, data={"sessions_ended": str(ended)}
    )
    return new
