"""Keyset paging of lists, newest first, stable while rows are added.

>>> async def list_tasks(caller: SignedIn, db: Db, paging: Paging, status: Status | None = None) -> Page[TaskOut]:
...     listing = paging.of("tasks", owner=caller.user_id, status=status)
...     async with db.transaction(readonly=True) as tx:
...         tasks = await store.list_tasks(tx, caller.user_id, status, older_than=listing.after, limit=listing.fetch)
...     return listing.page(tasks, mark=lambda task: (task.created_at, task.id), item=TaskOut.of)

A cursor is the position where a page ended, not an offset. It is signed and bound to its list and filters: a client can
neither forge one nor use it for another list.
"""

import base64
import binascii
import hashlib
import hmac
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Generic, TypeVar

import orjson
from fastapi import Depends, Query, Request
from pydantic import BaseModel, Field

from headrace.edge.errors import InvalidCursor
from headrace.edge.services import services_of
from headrace.sql import Mark

DEFAULT_LIMIT = 20
MAX_LIMIT = 100

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAC_LENGTH = 16
_LIST_LENGTH = 8
_MAX_CURSOR = 512

Row = TypeVar("Row")
Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    next_cursor: str | None = Field(
        default=None, description="Send it as `cursor` for the next page; null when this was the last."
    )


@dataclass(frozen=True, slots=True)
class Listing:
    """One request for a page of one list."""

    limit: int
    after: Mark | None
    key: bytes = field(repr=False)
    list_id: bytes = field(repr=False)

    @property
    def fetch(self) -> int:
        """The number of rows to read: one more than shown, to detect a next page."""
        return self.limit + 1

    def page(
        self,
        rows: Sequence[Row],
        *,
        mark: Callable[[Row], Mark],
        item: Callable[[Row], Item],
        resume: Mark | None = None,
    ) -> Page[Item]:
        """The page of these rows. ``resume`` is where reading ended before the page was full."""
        shown = rows[: self.limit]
        end = mark(shown[-1]) if len(rows) > self.limit else resume
        cursor = None if end is None else seal(self.key, self.list_id, end)
        return Page(items=[item(row) for row in shown], next_cursor=cursor)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """``limit`` and ``cursor`` of a request, before the list is known."""

    limit: int
    cursor: str | None
    key: bytes = field(repr=False)

    def of(self, name: str, /, **filters: object) -> Listing:
        """This page of this list; ``InvalidCursor`` when the cursor comes from another list or other filters.

        Pass every filter that changes the rows of the list, including the owner.
        """
        list_id = _list_id(name, filters)
        after = unseal(self.key, list_id, self.cursor) if self.cursor is not None else None
        return Listing(self.limit, after, self.key, list_id)


async def _page_request(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="The maximum number of items.")] = DEFAULT_LIMIT,
    cursor: Annotated[
        str | None,
        Query(
            max_length=_MAX_CURSOR,
            description="`next_cursor` of the previous page.",
            json_schema_extra={"pattern": "^[A-Za-z0-9_-]+$"},
        ),
    ] = None,
) -> PageRequest:
    return PageRequest(limit, cursor, services_of(request).key("cursor"))


Paging = Annotated[PageRequest, Depends(_page_request)]
"""``limit`` and ``cursor`` of the query."""


def seal(key: bytes, list_id: bytes, mark: Mark) -> str:
    at, row_id = mark
    payload = list_id + struct.pack(">q", (at - _EPOCH) // timedelta(microseconds=1)) + row_id.encode()
    return base64.urlsafe_b64encode(_mac(key, payload) + payload).rstrip(b"=").decode()


def unseal(key: bytes, list_id: bytes, cursor: str) -> Mark:
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidCursor from None
    mac, payload = raw[:_MAC_LENGTH], raw[_MAC_LENGTH:]
    if not hmac.compare_digest(mac, _mac(key, payload)):
        raise InvalidCursor
    if payload[:_LIST_LENGTH] != list_id:
        raise InvalidCursor("This cursor belongs to another list, or to other filters: start again without one.")
    micros: int = struct.unpack_from(">q", payload, _LIST_LENGTH)[0]
    return _EPOCH + timedelta(microseconds=micros), payload[_LIST_LENGTH + 8 :].decode()


def _mac(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, payload, "sha256")[:_MAC_LENGTH]


def _list_id(name: str, filters: dict[str, object]) -> bytes:
    used_filters = {field: value for field, value in filters.items() if value is not None}
    canonical = orjson.dumps([name, used_filters], default=str, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).digest()[:_LIST_LENGTH]
