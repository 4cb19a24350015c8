"""Registration of new users."""

from collections.abc import Sequence

from headrace import audit
from headrace.access import Role
from headrace.accounts import rules
from headrace.accounts.errors import RegistrationClosed
from headrace.accounts.model import NewUser, User
from headrace.accounts.newcomers import Welcome, welcome
from headrace.accounts.service import Accounts
from headrace.accounts.store import users as store
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Tx


def refuse_if_closed(accounts: Accounts) -> None:
    if not accounts.config.registration_open:
        raise RegistrationClosed


async def prepare(
    accounts: Accounts,
    *,
    username: str,
    password: str,
    email: str | None = None,
    role: Role = Role.USER,
    by_operator: bool = False,
) -> NewUser:
    """Validate the input and hash the password. Slow, so it runs before the transaction."""
    name = rules.check_username(username, allow_reserved=by_operator)
    address = rules.check_email(email)
    rules.check_password(password, username=name, config=accounts.config.passwords)
    return NewUser(name, address, await accounts.passwords.hash(password), role)


async def register(tx: Tx, who: Who, new: NewUser, *, welcomes: Sequence[Welcome] = ()) -> User:
    """Insert a new user, audit it and call the hooks; ``UsernameTaken`` if another was faster."""
    user = await store.insert_user(tx, new)
    await audit.record(tx, who, Action.CREATED, user_resource(user), new=user)
    await welcome(tx, welcomes, user.id)
    return user


def user_resource(user: User) -> Resource:
    return Resource(ResourceType.USER, user.id, {"username": user.username} if user.username else {})
