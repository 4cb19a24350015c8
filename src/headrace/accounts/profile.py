"""Changes of the caller's own profile."""

from headrace import audit
from headrace.access import Caller, check_version
from headrace.accounts import rules
from headrace.accounts.errors import SessionNeeded, UserNotFound
from headrace.accounts.model import User
from headrace.accounts.registration import user_resource
from headrace.accounts.store import users as store
from headrace.audit import Action
from headrace.database import Tx


async def change_mobile(tx: Tx, caller: Caller, mobile: str | None, *, expected: int | None = None) -> User:
    """Set or remove the caller's telephone number; ``InvalidMobile`` if malformed. Idempotent.

    Requires a login, because API keys are for programs. The trail records the change without the number.
    """
    if caller.session_id is None:
        raise SessionNeeded
    number = rules.check_mobile(mobile)
    old = await store.lock_user(tx, caller.user_id)
    if old is None:
        raise UserNotFound
    check_version(old.version, expected)
    if old.mobile == number:
        return old
    new = await store.set_mobile(tx, old, number)
    await audit.record(tx, caller.who, Action.UPDATED, user_resource(new), old=old, new=new)
    return new
