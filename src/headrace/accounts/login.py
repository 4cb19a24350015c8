"""Logins with a password or through WeChat.

These verbs take the database rather than a transaction, because each needs several: the attempt is counted and
committed before the password is checked, no transaction is open during Argon2 or a request to WeChat, and a failure is
recorded although the login fails.
"""

from dataclasses import dataclass
from datetime import datetime

from headrace import audit, logs
from headrace.accounts import registration, rules, second_factor, sessions, throttle
from headrace.accounts.deletion import service as deletion_service
from headrace.accounts.errors import (
    AccountBeingDeleted,
    AccountSuspended,
    BadCredentials,
    LoginPaused,
    PasswordsBusy,
    SecondFactorNeeded,
    WeChatOff,
    WrongCode,
)
from headrace.accounts.model import Deletion, LoggedIn, User
from headrace.accounts.newcomers import welcome
from headrace.accounts.registration import user_resource
from headrace.accounts.service import Accounts
from headrace.accounts.store import deletions as deletions_store
from headrace.accounts.store import users as store
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Database, Tx
from headrace.errors import HeadraceError

log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class _Checked:
    """The result of a password check."""

    user: User | None
    right: bool
    rehashed: str | None = None


async def log_in(
    db: Database,
    accounts: Accounts,
    who: Who,
    *,
    username: str,
    password: str,
    code: str | None = None,
    keep_account: bool = False,
    now: datetime | None = None,
) -> LoggedIn:
    """Log in with a name, a password, and the second factor's code; ``keep_account`` undoes a waiting deletion.

    ``BadCredentials`` for an unknown name and a wrong password alike, after the same work; ``LoginPaused`` before any
    work; ``SecondFactorNeeded``, ``WrongCode``, ``AccountSuspended`` and ``AccountBeingDeleted`` only after a correct
    password.
    """
    name = rules.fold(username.strip())
    user, attempt = await _begin(db, accounts, who, name, now)
    try:
        checked = await _check(accounts, user, password)
    except PasswordsBusy:
        async with db.transaction() as tx:
            await throttle.take_back(tx, attempt)
        raise
    async with db.transaction() as tx:
        # An account that cannot be entered now is refused before its code is used up: keep_account sends it again.
        can_enter = keep_account or checked.user is None or checked.user.is_active
        factor = await _refusal_of_factor(tx, accounts, checked, code, attempt, now) if can_enter else None
        if factor is None:
            if keep_account and checked.user is not None and checked.right:
                await _keep(tx, who, checked.user, now)
            if (logged_in := await _enter(tx, accounts, who, checked, attempt, now)) is not None:
                return logged_in
        error, reason = factor or await _refusal(tx, checked)
        if not isinstance(error, SecondFactorNeeded):
            await _record_failure(tx, who, user, name, reason=reason, pause=attempt.pause_seconds)
    raise error


async def _begin(
    db: Database, accounts: Accounts, who: Who, name: str, now: datetime | None
) -> tuple[User | None, throttle.Attempt]:
    config, network = accounts.config.throttle, throttle.network_of(who.client_ip)
    try:
        async with db.transaction() as tx:
            found = (
                await store.find_candidate(tx, name, network, known_for=config.known_for, now=now)
                if len(name) <= rules.MAX_USERNAME_LENGTH
                else None
            )
            known_here = found is not None and found.known_here
            subject = throttle.login_subject(name, network, known_here=known_here)
            attempt = await throttle.reserve(tx, config, subject, network, now=now)
    except LoginPaused as exc:
        # Not audited, because nothing was checked: a flood of refused attempts must not flood the trail. The failure
        # that began the pause is recorded in its own event.
        log.info("login.paused", client_ip=who.client_ip, retry_after=exc.retry_after)
        raise
    return (found.user if found else None), attempt


async def _check(accounts: Accounts, user: User | None, password: str) -> _Checked:
    stored = user.password_hash if user else None
    right = await accounts.passwords.verify(stored, password)
    if not right or stored is None or not accounts.passwords.needs_rehash(stored):
        return _Checked(user, right)
    try:
        return _Checked(user, right, await accounts.passwords.hash(password))
    except PasswordsBusy:  # the next login rehashes it
        return _Checked(user, right)


async def _refusal_of_factor(
    tx: Tx, accounts: Accounts, checked: _Checked, code: str | None, attempt: throttle.Attempt, now: datetime | None
) -> tuple[HeadraceError, str] | None:
    """The refusal for a missing or wrong code; None if the account has no second factor or the code is right."""
    user = checked.user
    if user is None or not checked.right or user.second_factor_at is None:
        return None
    if not code:
        # Uncounted, but earlier failures stay: who has the password must not clear the count between two codes.
        await throttle.take_back(tx, attempt)
        return SecondFactorNeeded(), "second_factor_needed"
    await store.lock_user(tx, user.id)  # before the factor, as where it is turned off
    return (
        None
        if await second_factor.accept(tx, accounts, user, code, now=now)
        else (WrongCode(field="code"), "wrong_code")
    )


async def _enter(
    tx: Tx, accounts: Accounts, who: Who, checked: _Checked, attempt: throttle.Attempt, now: datetime | None
) -> LoggedIn | None:
    if checked.user is None or not checked.right:
        return None
    user = await store.record_login(tx, checked.user, rehashed=checked.rehashed, now=now)
    if user is None:
        return None
    await throttle.succeed(tx, attempt)
    return await _open(tx, accounts, who, user, method="password", now=now)


async def _open(
    tx: Tx, accounts: Accounts, who: Who, user: User, *, method: str, now: datetime | None = None
) -> LoggedIn:
    logged_in = await sessions.open_session(tx, accounts.config.sessions, user, who, now=now)
    await audit.record(
        tx,
        user.acting(who),
        Action.LOGIN,
        user_resource(user),
        data={"outcome": "success", "method": method, "session_id": logged_in.session.id},
    )
    return logged_in


async def _keep(tx: Tx, who: Who, user: User, now: datetime | None) -> None:
    """Undo the owner's own deletion request if it has not begun; any other deletion stays."""
    deletion = await deletions_store.find_open(tx, user.id)
    if deletion is not None and deletion.may_undo:
        await deletion_service.keep_account(tx, user.acting(who), user.id, now=now)


async def _refusal(tx: Tx, checked: _Checked) -> tuple[HeadraceError, str]:
    if checked.user is None:
        return BadCredentials(), "unknown_user"
    if not checked.right:
        return BadCredentials(), "wrong_password"
    error, reason = await _refusal_of_status(tx, checked.user)
    if reason == "suspended" and checked.user.is_active:
        return BadCredentials(), "changed_meanwhile"
    return error, reason


async def _refusal_of_status(tx: Tx, user: User) -> tuple[HeadraceError, str]:
    """The refusal of an authenticated but inactive user."""
    if (deletion := await deletions_store.find_open(tx, user.id)) is not None:
        return _being_deleted(deletion), "being_deleted"
    return AccountSuspended(), "suspended"


def _being_deleted(deletion: Deletion) -> AccountBeingDeleted:
    if not deletion.may_undo:
        return AccountBeingDeleted("This account is being deleted. Only an administrator can undo it.", undo=False)
    return AccountBeingDeleted(
        f"This account will be deleted from {deletion.due_at:%Y-%m-%d %H:%M} UTC on. Until then, log in with "
        "`keep_account` to keep it.",
        due_at=deletion.due_at.isoformat(),
        undo=True,
    )


async def _record_failure(
    tx: Tx, who: Who, user: User | None, name: str, *, reason: str, pause: int | None = None
) -> None:
    # An unknown name may be a password typed into the wrong field: only its beginning is recorded.
    resource = user_resource(user) if user else Resource(ResourceType.USER, "unknown", {"username": f"{name[:3]}…"})
    data = {"outcome": "failure", "reason": reason} | ({"paused_seconds": str(pause)} if pause is not None else {})
    await audit.record(tx, who, Action.LOGIN, resource, data=data)


async def log_in_with_wechat(
    db: Database, accounts: Accounts, who: Who, *, code: str, keep_account: bool = False
) -> LoggedIn:
    """Log in the WeChat user of the code, and register new ones.

    Concurrent first logins create one user, because the openid is unique.
    """
    if accounts.wechat is None:
        raise WeChatOff
    openid = await accounts.wechat.openid_of(code)
    async with db.transaction() as tx:
        user = await _find_or_register(tx, accounts, who, openid)
        if keep_account:
            await _keep(tx, who, user, None)
        entered = await store.record_login(tx, user)
        if entered is not None:
            return await _open(tx, accounts, who, entered, method="wechat")
        error, reason = await _refusal_of_status(tx, user)
        await _record_failure(tx, who, user, "", reason=reason)
    raise error


async def _find_or_register(tx: Tx, accounts: Accounts, who: Who, openid: str) -> User:
    if (user := await store.find_by_openid(tx, openid)) is not None:
        return user
    registration.refuse_if_closed(accounts)
    if (user := await store.insert_wechat_user(tx, openid)) is not None:
        await audit.record(tx, who, Action.CREATED, user_resource(user), new=user, data={"method": "wechat"})
        await welcome(tx, accounts.welcomes, user.id)
        return user
    user = await store.find_by_openid(tx, openid)
    assert user is not None, "the insert met this user"
    return user
