"""How commands ask and change things: as requests of the API, answered by a server elsewhere or from the database.

A command is written once. ``remote`` sends its requests to a server; ``direct`` answers them from the database of the
settings, as an operator, with the same verbs and in the same form as the API does.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from headrace import ids
from headrace.cli import place
from headrace.cli.later import nothing_is_garbage
from headrace.errors import Invalid, NotFound

T = TypeVar("T")
Answer = dict[str, Any]

EVERYBODY = "*"
SYSTEM_NAME = "system"


class Api(Protocol):
    @property
    def is_remote(self) -> bool: ...

    async def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        key: str | None = None,
        version: int | None = None,
    ) -> Any:
        """The answer to one request. ``key`` is an idempotency key, ``version`` what must still be so."""
        ...

    async def list(self, path: str, params: Mapping[str, Any] | None = None, *, limit: int | None) -> Sequence[Answer]:
        """The first so many of a list; None for one that comes as a whole."""
        ...

    def together(self) -> AbstractAsyncContextManager[None]:
        """What is asked in this block happens as one, where that is possible: not over a server's API."""
        ...


def perform(command: str, act: Callable[[Api], Awaitable[T]]) -> T:
    """Do this where the command was sent to."""
    server = place.with_key()
    if server is not None:
        with nothing_is_garbage():
            from headrace.cli import remote

        return remote.perform(server, act)
    with nothing_is_garbage():
        from headrace.cli import direct

    return direct.perform(command, act)


def path(*parts: str) -> str:
    """``path("tasks", task_id)`` is ``/v1/tasks/…``, whatever is in the id."""
    return "/".join(("/v1", *(quote(part, safe="") for part in parts)))


def given(**values: Any) -> dict[str, Any]:
    """What was said."""
    return {name: value for name, value in values.items() if value is not None}


async def user_id_of(api: Api, name: str | None) -> str | None:
    """Whom a command means, by username or id. An id stands for itself: what is left of a deleted user has it still."""
    if name is None or name == EVERYBODY or is_user_id(name):
        return name
    if name == SYSTEM_NAME:
        return ids.SYSTEM_USER
    refuse_address(name)
    found = await api.list(path("admin", "users"), {"username": name}, limit=1)
    if not found:
        raise no_such_user(name)
    return str(found[0]["id"])


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
