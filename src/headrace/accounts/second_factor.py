"""The second factor of logins: codes of an authenticator app, and recovery codes for a lost phone."""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headrace import audit
from headrace.access import Caller
from headrace.accounts import confirmation, throttle, tokens, totp
from headrace.accounts.errors import SecondFactorOff, SecondFactorOn, SessionNeeded, UserNotFound, WrongCode
from headrace.accounts.model import NewSecondFactor, User
from headrace.accounts.registration import user_resource
from headrace.accounts.service import Accounts
from headrace.accounts.store import second_factors as store
from headrace.accounts.store import users as users_store
from headrace.audit import Action, Who
from headrace.database import Database, Tx
from headrace.vault import Vault

_ISSUER = "Headrace"
RECOVERY_CODES = 10
_RECOVERY_BYTES = 10
_RECOVERY_LETTERS = 16  # of Base32, in groups of four


@dataclass(frozen=True, slots=True)
class FactorStatus:
    user: User
    recovery_codes: int


async def begin(
    db: Database, accounts: Accounts, caller: Caller, *, password: str, now: datetime | None = None
) -> NewSecondFactor:
    """Make a secret for an authenticator app; it is asked for only after ``enable``. Requires the password."""

    def refuse_when_on(user: User) -> None:
        if user.second_factor_at is not None:
            raise SecondFactorOn

    confirmed = await confirmation.confirm(
        db, accounts, caller, password, purpose="second_factor", field="password", before=refuse_when_on, now=now
    )
    secret = totp.new_secret()
    async with db.transaction() as tx:
        user = await _lock(tx, caller)
        await throttle.succeed(tx, confirmed.attempt)
        if user.second_factor_at is not None:
            raise SecondFactorOn
        await store.put_secret(tx, user.id, _vault(accounts).seal(secret, binding=_binding(user.id)))
        facts = {"factor": "totp", "verb": "begin"}
        await audit.record(tx, caller.who, Action.UPDATED, user_resource(user), old=user, new=user, data=facts)
    return NewSecondFactor(totp.text_of(secret), totp.uri_of(secret, account=user.username or "", issuer=_ISSUER))


async def enable(
    db: Database, accounts: Accounts, caller: Caller, *, code: str, now: datetime | None = None
) -> Sequence[str]:
    """Turn the second factor on with the app's first code; returns the recovery codes, which are shown only once."""
    attempt = await _count_guess(db, accounts, caller, now)
    async with db.transaction() as tx:
        old = await _lock(tx, caller)
        if old.second_factor_at is not None:
            raise SecondFactorOn
        if not await _accept_code(tx, accounts, old.id, code, now=now):
            raise WrongCode(field="code")
        new = await users_store.set_second_factor(tx, old, on=True)
        await throttle.succeed(tx, attempt)
        codes = await _new_codes(tx, old.id)
        facts = {"factor": "totp"}
        await audit.record(tx, caller.who, Action.ENABLED, user_resource(new), old=old, new=new, data=facts)
    return codes


async def disable(
    db: Database, accounts: Accounts, caller: Caller, *, password: str, code: str, now: datetime | None = None
) -> User:
    """Turn the second factor off. Requires the password and a code, of the app or for recovery."""
    old = await _confirm_both(db, accounts, caller, password, code, now)
    async with db.transaction() as tx:
        locked = await _lock(tx, caller)
        return await _turn_off(tx, caller.who, locked) if locked.second_factor_at is not None else old


async def new_recovery_codes(
    db: Database, accounts: Accounts, caller: Caller, *, password: str, code: str, now: datetime | None = None
) -> Sequence[str]:
    """Replace the recovery codes. Requires the password and a code; the former codes stop working."""
    await _confirm_both(db, accounts, caller, password, code, now)
    async with db.transaction() as tx:
        user = await _lock(tx, caller)
        if user.second_factor_at is None:
            raise SecondFactorOff
        codes = await _new_codes(tx, user.id)
        facts = {"factor": "totp", "verb": "recovery_codes"}
        await audit.record(tx, caller.who, Action.UPDATED, user_resource(user), old=user, new=user, data=facts)
    return codes


async def get_status(tx: Tx, caller: Caller) -> FactorStatus:
    user = await users_store.find_user(tx, caller.user_id)
    if user is None:
        raise UserNotFound
    left = await store.count_codes(tx, user.id) if user.second_factor_at is not None else 0
    return FactorStatus(user, left)


async def turn_off_for(tx: Tx, who: Who, user_id: str) -> User:
    """Turn a user's second factor off, for a lost phone without recovery codes. For administrators; idempotent."""
    user = await users_store.lock_user(tx, user_id)
    if user is None:
        raise UserNotFound
    return user if user.second_factor_at is None else await _turn_off(tx, who, user)


async def accept(tx: Tx, accounts: Accounts, user: User, code: str, *, now: datetime | None = None) -> bool:
    """Whether this code lets the user in: of the app, or an unused recovery code. Each is accepted once."""
    if await _accept_code(tx, accounts, user.id, code, now=now):
        return True
    return await store.use_code(tx, user.id, tokens.digest(_bare(code)))


async def _accept_code(tx: Tx, accounts: Accounts, user_id: str, code: str, *, now: datetime | None) -> bool:
    factor = await store.lock_factor(tx, user_id, now=now)
    bare = _bare(code)
    if factor is None or len(bare) != totp.DIGITS:  # a recovery code needs no secret, and works when the key is lost
        return False
    secret = _vault(accounts).open(factor.sealed_secret, binding=_binding(user_id))
    step = totp.matching_step(secret, bare, at=factor.at, after=factor.last_step)
    return step is not None and await store.note_step(tx, user_id, step)


async def _confirm_both(
    db: Database, accounts: Accounts, caller: Caller, password: str, code: str, now: datetime | None
) -> User:
    def refuse_when_off(user: User) -> None:
        if user.second_factor_at is None:
            raise SecondFactorOff

    confirmed = await confirmation.confirm(
        db, accounts, caller, password, purpose="second_factor", field="password", before=refuse_when_off, now=now
    )
    async with db.transaction() as tx:
        user = await _lock(tx, caller)
        # A wrong code stays counted: who has the password must not try codes without a limit.
        right = await accept(tx, accounts, user, code, now=now)
        if right:
            await throttle.succeed(tx, confirmed.attempt)
        else:
            facts = {"outcome": "failure", "reason": "wrong_code", "purpose": "second_factor"}
            await audit.record(tx, caller.who, Action.LOGIN, user_resource(user), data=facts)
    if not right:
        raise WrongCode(field="code")
    return user


async def _count_guess(db: Database, accounts: Accounts, caller: Caller, now: datetime | None) -> throttle.Attempt:
    if caller.session_id is None:
        raise SessionNeeded
    async with db.transaction() as tx:
        subject, network = throttle.change_subject(caller.user_id), throttle.network_of(caller.who.client_ip)
        return await throttle.reserve(tx, accounts.config.throttle, subject, network, now=now)


async def _turn_off(tx: Tx, who: Who, old: User) -> User:
    new = await users_store.set_second_factor(tx, old, on=False)
    await store.delete_factor(tx, old.id)
    await audit.record(tx, who, Action.DISABLED, user_resource(new), old=old, new=new, data={"factor": "totp"})
    return new


async def _new_codes(tx: Tx, user_id: str) -> Sequence[str]:
    codes = [base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower() for _ in range(RECOVERY_CODES)]
    await store.replace_codes(tx, user_id, [tokens.digest(code) for code in codes])
    return ["-".join(code[at : at + 4] for at in range(0, _RECOVERY_LETTERS, 4)) for code in codes]


async def _lock(tx: Tx, caller: Caller) -> User:
    user = await users_store.lock_user(tx, caller.user_id)
    if user is None:
        raise UserNotFound
    return user


def _bare(code: str) -> str:
    """A code as people type it: with blanks, hyphens and capitals."""
    return "".join(letter for letter in code.lower() if letter.isalnum())


def _vault(accounts: Accounts) -> Vault:
    return Vault(accounts.factor_key)


def _binding(user_id: str) -> bytes:
    return f"second_factors/{user_id}".encode()
