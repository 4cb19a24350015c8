"""The caller of library verbs: the system, or a user for whom the program acts."""

from headrace import ids
from headrace.access import Caller, Role
from headrace.accounts.errors import UserNotFound
from headrace.accounts.store.users import find_user
from headrace.audit import SYSTEM, ActorType, Who, local_account
from headrace.database import Tx


async def caller_for(tx: Tx, user_id: str | None) -> Caller:
    """The system, who reaches every task, or a user, who reaches their own. The audit trail names the library."""
    who = Who(SYSTEM, ActorType.SYSTEM, user_agent=f"headrace library ({local_account()})")
    if user_id is None or user_id == ids.SYSTEM_USER:
        return Caller(who, ids.SYSTEM_USER, Role.ADMIN)
    user = await find_user(tx, user_id)
    if user is None:
        raise UserNotFound(f"There is no user {user_id}.")
    return Caller(who.acting_as(user.principal()), user.id, Role.USER)
