"""Confirms the password before sensitive changes, for which an open session is not enough."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from headrace import audit
from headrace.access import Caller
from headrace.accounts import throttle
from headrace.accounts.errors import NoPassword, PasswordsBusy, SessionNeeded, UserNotFound, WrongPassword
from headrace.accounts.model import User
from headrace.accounts.registration import user_resource
from headrace.accounts.service import Accounts
from headrace.accounts.store import users as store
from headrace.audit import Action
from headrace.database import Database


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The confirmed user, and the attempt to uncount (``throttle.succeed``) in the transaction of the change.

    The hash may have changed by then: compare it under the row lock.
    """

    user: User
    attempt: throttle.Attempt


async def confirm(
    db: Database,
    accounts: Accounts,
    caller: Caller,
    password: str,
    *,
    purpose: str,
    field: str,
    before: Callable[[User], None] | None = None,
    now: datetime | None = None,
) -> Confirmed:
    """Check the caller's password. Failures are audited and throttled; ``WrongPassword`` names the ``field``.

    ``before`` may refuse the request before an attempt is counted.
    """
    if caller.session_id is None:
        raise SessionNeeded
    user, attempt = await _begin(db, accounts, caller, before, now)
    try:
        right = await accounts.passwords.verify(user.password_hash, password)
    except PasswordsBusy:
        await take_back(db, attempt)
        raise
    if right:
        return Confirmed(user, attempt)
    async with db.transaction() as tx:
        facts = {"outcome": "failure", "reason": "wrong_password", "purpose": purpose}
        await audit.record(tx, caller.who, Action.LOGIN, user_resource(user), data=facts)
    raise WrongPassword(field=field)


async def take_back(db: Database, attempt: throttle.Attempt) -> None:
    """Uncount an attempt that failed for other reasons than the password."""
    async with db.transaction() as tx:
        await throttle.take_back(tx, attempt)


async def _begin(
    db: Database, accounts: Accounts, caller: Caller, before: Callable[[User], None] | None, now: datetime | None
) -> tuple[User, throttle.Attempt]:
    async with db.transaction() as tx:
        user = await store.find_user(tx, caller.user_id)
        if user is None:
            raise UserNotFound
        if user.username is None or user.password_hash is None:
            raise NoPassword
        if before is not None:
            before(user)
        network = throttle.network_of(caller.who.client_ip)
        subject = throttle.change_subject(user.id)
        attempt = await throttle.reserve(tx, accounts.config.throttle, subject, network, now=now)
    return user, attempt
