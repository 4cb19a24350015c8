"""Requests to the REST API, the same over the network and in this process."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace import ids
from headrace.errors import Invalid

if TYPE_CHECKING:
    from headrace.client.connection import Connection

Answer = dict[str, Any]

EVERYBODY = "*"
_PAGE = 100
_REPEATABLE = frozenset({"GET", "PUT"})


class ActingFor(NamedTuple):
    """The user for whom an operator makes a request, and the role."""

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
        rows: list[Answer] = []
        wanted = {**(params or {}), "limit": min(_PAGE, limit)}
        while True:
            page = await self.ask("GET", path, params=wanted, acting_for=acting_for)
            rows += page["items"]
            if page.get("next_cursor") is None or len(rows) >= limit:
                return rows[:limit]
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
    """Reduce the answer to an invalid request to the faults and their places."""
    try:
        yield
    except Invalid as exc:
        if fields := getattr(exc, "fields", None):
            exc.message = "; ".join(f"{name.partition('.')[2] or name}: {text}" for name, text in fields.items())
            exc.args = (exc.message,)
        raise
