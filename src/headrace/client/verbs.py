"""What every group of the client's verbs is made of."""

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
        """Sent again, it happens once; with a ``key`` of the caller's own also when their program is started again."""
        headers = {"Idempotency-Key": key or ids.new("key")}
        return await self._connection.request("POST", path, json=body, headers=headers, safe=True)

    async def _change(
        self, path: str, version: int | None, *, safe: bool, method: str = "POST", body: Any = None
    ) -> Any:
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        return await self._connection.request(method, path, json=body, headers=headers, safe=safe)


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, as the API takes it."""
    return {name: _plain(name, value) for name, value in values.items() if value is not None}


def _plain(name: str, value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError(f"{name} needs a time zone")
    return value.isoformat()


def part(text: str) -> str:
    """One part of a path, whatever is in it."""
    if not text:
        raise ValueError("an id or a name is expected here")
    return quote(text, safe="")
