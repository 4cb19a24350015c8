"""Whom a command means: a user is named by username or by id, wherever one is named."""

from headrace import ids
from headrace.accounts import administration
from headrace.accounts.model import User
from headrace.audit import SYSTEM, Who
from headrace.cli.operator import OperatorSession
from headrace.database import Tx
from headrace.errors import Invalid, NotFound


async def get_user(tx: Tx, who: Who, name: str) -> User:
    """The user of this name or id. Looking is audited."""
    if _is_id(name):
        return await administration.get_user(tx, who, name)
    if "@" in name:  # no username has one; addresses need not be unique, and the trail does not hold them
        raise Invalid(f"{name} is an e-mail address, which several users may have: give the username, or the id: u_….")
    found = await administration.list_users(tx, who, username=name, limit=1)
    if not found:
        raise NotFound(f"There is no user {name}: give the username, or the id: u_….")
    return found[0]


async def user_id_of(session: OperatorSession, name: str) -> str:
    """The id of whoever is meant. An id stands for itself: what is left of a deleted user has it still."""
    if _is_id(name):
        return name
    if name == SYSTEM.username:
        return SYSTEM.uid
    async with session.db.transaction() as tx:
        return (await get_user(tx, session.caller.who, name)).id


def _is_id(name: str) -> bool:
    try:
        ids.check(name, "u")
    except ids.InvalidId:
        return False
    return True
