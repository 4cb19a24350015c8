"""How commands read and change things: as requests to the REST API, over the network or in this process.

A command is written once. ``remote`` sends its requests to a server; ``inprocess`` sends them to the same routes on the
database of the settings, as an operator.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

from headrace import ids
from headrace.cli import place
from headrace.cli.later import nothing_is_garbage
from headrace.errors import Invalid, NotFound

if TYPE_CHECKING:
    from headrace.client.connection import Connection

T = TypeVar("T")
Answer = dict[str, Any]

EVERYBODY = "*"
SYSTEM_NAME = "system"
_PAGE = 100
_REPEATABLE = frozenset({"GET", "PUT"})


class ActingFor(NamedTuple):
    """The user for whom an operator makes a request, and with which role."""

    user_id: str
    role: str


class Api:
    """Requests over one connection."""

    is_remote = True
    everybody: str | None = None
    """The owner in lists where none is named: None for the caller."""

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection

    async def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        key: str | None = None,
        version: int | None = None,
        acting_for: ActingFor | None = None,
    ) -> Any:
        """The answer to one request. ``key`` is an idempotency key, ``version`` the expected version of the resource;
        ``acting_for`` is the user whose resources an operator changes."""
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        if method == "POST" and body is not None and (key or self.is_remote):
            headers["Idempotency-Key"] = key or ids.new("key")
        with _fields_named():
            return await self.connection.request(
                method,
                path,
                json=body,
                params=params,
                headers={**headers, **self._identity(acting_for)},
                safe=method in _REPEATABLE or "Idempotency-Key" in headers,
            )

    async def list(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        *,
        limit: int | None,
        acting_for: ActingFor | None = None,
    ) -> Sequence[Answer]:
        """The first ``limit`` items of a list; None for a list without pages."""
        if limit is None:
            whole: Sequence[Answer] = (await self.ask("GET", path, params=params, acting_for=acting_for))["items"]
            return whole
        found: list[Answer] = []
        wanted = {**(params or {}), "limit": min(_PAGE, limit)}
        while True:
            page = await self.ask("GET", path, params=wanted, acting_for=acting_for)
            found += page["items"]
            if page.get("next_cursor") is None or len(found) >= limit:
                return found[:limit]
            wanted["cursor"] = page["next_cursor"]

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, Any] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        """A large answer in parts."""
        async with self.connection.stream_bytes(path, params=params, headers=self._identity(None)) as response:
            yield response.aiter_bytes()

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        """Requests in this block are one transaction in this process, and separate ones over the network."""
        yield

    def _identity(self, acting_for: ActingFor | None) -> dict[str, str]:
        assert acting_for is None, "a server knows its caller by the API key"
        return {}


@contextmanager
def _fields_named() -> Iterator[None]:
    """Say of a request that is not valid only what is wrong where."""
    try:
        yield
    except Invalid as exc:
        if fields := getattr(exc, "fields", None):
            exc.message = "; ".join(f"{name.partition('.')[2] or name}: {text}" for name, text in fields.items())
            exc.args = (exc.message,)
        raise


def perform(command: str, act: Callable[[Api], Awaitable[T]], *, needs_database: bool = True) -> T:
    """Do this where the command was sent to."""
    server = place.with_key()
    # httpx loads its own command line, and with it half of Rich, unless that is not there.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    if server is not None:
        with nothing_is_garbage():
            from headrace.cli import remote

        return remote.perform(server, act)
    with nothing_is_garbage():
        from headrace.cli import inprocess

    return inprocess.perform(command, act) if needs_database else inprocess.perform_without_database(command, act)


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


async def owner_of(api: Api, name: str | None) -> dict[str, str]:
    """The parameter of a list for the owner that a command names: in this process everybody's rows by default."""
    return given(user_id=await user_id_of(api, name) or api.everybody)


async def list_all(api: Api, path: str, params: Mapping[str, Any], *, limit: int) -> Sequence[Answer]:
    """A list of everybody's rows in this process, of the caller's over the network."""
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
