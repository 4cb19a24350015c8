"""Commands' requests to a server elsewhere."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

from headrace import ids
from headrace.cli.calls import Answer, Api
from headrace.cli.place import Server

# httpx loads its own command line, and with it half of Rich, unless that is not there.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]

from headrace.client.connection import Connection  # noqa: E402
from headrace.client.retrying import RetryPolicy  # noqa: E402

T = TypeVar("T")

_PAGE = 100
_TIMEOUT = timedelta(seconds=30)
_RETRY = RetryPolicy(retries=2)  # somebody sits there and waits
_REPEATABLE = frozenset({"GET", "PUT"})


class Remote:
    is_remote = True

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

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
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        if method == "POST" and body is not None:
            headers["Idempotency-Key"] = key or ids.new("key")
        return await self._connection.request(
            method,
            path,
            json=body,
            params=params,
            headers=headers,
            safe=method in _REPEATABLE or "Idempotency-Key" in headers,
        )

    async def list(self, path: str, params: Mapping[str, Any] | None = None, *, limit: int | None) -> Sequence[Answer]:
        if limit is None:
            whole: Sequence[Answer] = (await self.ask("GET", path, params=params))["items"]
            return whole
        found: list[Answer] = []
        asked = {**(params or {}), "limit": min(_PAGE, limit)}
        while True:
            page = await self._connection.request("GET", path, params=asked, safe=True)
            found += page["items"]
            if page.get("next_cursor") is None or len(found) >= limit:
                return found[:limit]
            asked["cursor"] = page["next_cursor"]

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        yield


def perform(server: Server, act: Callable[[Api], Awaitable[T]]) -> T:
    return asyncio.run(_perform(server, act))


async def _perform(server: Server, act: Callable[[Api], Awaitable[T]]) -> T:
    async with connected(server) as api:
        return await act(api)


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Remote]:
    connection = Connection(server.url, server.key, timeout=_TIMEOUT, retry=_RETRY, transport=None)
    try:
        yield Remote(connection)
    finally:
        await connection.close()


def perform_as_person(server: Server, username: str, password: str, act: Callable[[Api], Awaitable[T]]) -> T:
    """Do this in a session of its own, for what a server lets only people do."""
    return asyncio.run(_perform_as_person(server, username, password, act))


async def _perform_as_person(server: Server, username: str, password: str, act: Callable[[Api], Awaitable[T]]) -> T:
    async with connected(Server(server.url, "")) as nobody:
        session = await nobody.ask("POST", "/v1/auth/login", body={"username": username, "password": password})
    async with connected(Server(server.url, session["token"])) as person:
        try:
            return await act(person)
        finally:
            await person.ask("POST", "/v1/auth/logout")
