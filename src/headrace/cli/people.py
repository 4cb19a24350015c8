"""Whom a command means: a user is named by username or by id, wherever one is named."""

from headrace.accounts import administration
from headrace.accounts.model import User
from headrace.audit import SYSTEM, Who
from headrace.cli.calls import is_user_id, no_such_user, refuse_address
from headrace.cli.operator import OperatorSession
from headrace.database import Tx


async def get_user(tx: Tx, who: Who, name: str) -> User:
    """The user of this name or id. Looking is audited."""
    if is_user_id(name):
        return await administration.get_user(tx, who, name)
    refuse_address(name)
    found = await administration.list_users(tx, who, username=name, limit=1)
    if not found:
        raise no_such_user(name)
    return found[0]


async def user_id_of(session: OperatorSession, name: str) -> str:
    """The id of whoever is meant. An id stands for itself: what is left of a deleted user has it still."""
    if is_user_id(name):
        return name
    if name == SYSTEM.username:
        return SYSTEM.uid
    async with session.db.transaction() as tx:
        return (await get_user(tx, session.caller.who, name)).id
