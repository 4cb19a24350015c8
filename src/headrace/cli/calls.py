"""How commands read and change things: as requests to the REST API, over the network or in this process.

A command is written once. ``remote`` sends its requests to a server; ``inprocess`` sends them to the same routes on the
database of the settings, as an operator.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from headrace import ids
from headrace.cli import place
from headrace.cli.requests import EVERYBODY, Answer, Api
from headrace.errors import Invalid, NotFound
from headrace.extras import gc_paused_while_importing

T = TypeVar("T")
SYSTEM_NAME = "system"


def perform(command: str, act: Callable[[Api], Awaitable[T]], *, needs_database: bool = True) -> T:
    """Do this where the command was sent to."""
    server = place.with_key()
    if server is not None:
        with gc_paused_while_importing():
            from headrace.cli import remote

        return remote.perform(server, act)
    with gc_paused_while_importing():
        from headrace.cli import inprocess

    return inprocess.perform(command, act) if needs_database else inprocess.perform_without_database(command, act)


def path(*parts: str) -> str:
    """``path("tasks", task_id)`` is ``/v1/tasks/…``, whatever is in the id."""
    return "/".join(("/v1", *(_quoted(part) for part in parts)))


def _quoted(part: str) -> str:
    # httpx resolves dot segments: the request would go to another route.
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def drop_none(**values: Any) -> dict[str, Any]:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


async def user_id_of(api: Api, name: str | None) -> str | None:
    """The id of the user that a command names, by username or id. Ids are used as they are: deleted users keep them."""
    if name is None or name == EVERYBODY or is_user_id(name):
        return name
    if name == SYSTEM_NAME:
        return ids.SYSTEM_USER
    refuse_address(name)
    users = await api.list(path("admin", "users"), {"username": name}, limit=1)
    if not users:
        raise no_such_user(name)
    return str(users[0]["id"])


async def owner_of(api: Api, name: str | None) -> dict[str, str]:
    """The parameter of a list for the owner that a command names: in this process the rows of all users by default."""
    return drop_none(user_id=await user_id_of(api, name) or api.everybody)


async def list_all(api: Api, path: str, params: Mapping[str, Any], *, limit: int) -> Sequence[Answer]:
    """A list of all users' rows in this process, of the caller's over the network."""
    return await api.list(path, {**params, **await owner_of(api, None)}, limit=limit)


def refuse_address(name: str) -> None:
    if "@" in name:  # no username has one; addresses need not be unique, and the trail does not hold them
        raise Invalid(f"{name} is an e-mail address, which several users may have: give the username, or the id: u_….")


def no_such_user(name: str) -> NotFound:
    return NotFound(f"There is no user {name}: give the username, or the id: u_….")


def is_user_id(name: str) -> bool:
    try:
        ids.check(name, "u")
    except ids.InvalidId:
        return False
    return True
