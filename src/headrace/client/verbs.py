"""Base class of the client's groups of verbs."""

from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from headrace import ids
from headrace.client.connection import Connection

_PAGE = 100


class Verbs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        return await self._connection.request("GET", path, params=params, safe=True)

    async def _pages(
        self, path: str, params: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        asked: dict[str, Any] = {"limit": _PAGE, **given(params or {})}
        while True:
            page = await self._get(path, asked)
            for item in page["items"]:
                yield item
            if page.get("next_cursor") is None:
                return
            asked["cursor"] = page["next_cursor"]

    async def _create(self, path: str, body: Any, key: str | None) -> Any:
        """POST with an idempotency key: retries are executed once; with the caller's ``key`` also after a restart."""
        headers = {"Idempotency-Key": key or ids.new("key")}
        return await self._connection.request("POST", path, json=body, headers=headers, safe=True)

    async def _change(
        self,
        path: str,
        version: int | None,
        *,
        safe: bool,
        method: str = "POST",
        body: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> Any:
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        return await self._connection.request(method, path, json=body, params=params, headers=headers, safe=safe)


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Query parameters in the API's format, without None."""
    return {name: _plain(name, value) for name, value in values.items() if value is not None}


def _plain(name: str, value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError(f"{name} needs a time zone")
    return value.isoformat()


def part(text: str) -> str:
    """One percent-encoded segment of a path."""
    if not text:
        raise ValueError("an id or a name is expected here")
    return quote(text, safe="")
