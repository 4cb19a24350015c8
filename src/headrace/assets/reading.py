"""Handing bytes out: ranges, validators, names (RFC 9110, 6266, 8187), and what keeps a browser from running them."""

import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from headrace.assets.content import Content
from headrace.assets.errors import BytesMissing, ReadingEnded
from headrace.edge.facts import facts_of
from headrace.edge.problem_details import answer, plain
from headrace.storage import ObjectNotFound, Storage

_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.IGNORECASE)
# Nothing in a file is ever run in our name, whatever a browser makes of its type: a PDF's or an SVG's script neither.
_SANDBOX = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src 'self'; sandbox"
# A large file takes hours on a slow line: a read may last this long after its reader lost access.
_ASK_EVERY_S = 10.0

IsAllowed = Callable[[], Awaitable[bool]]
"""Whether the reader may continue: the file still exists, and the reader still has access."""


@dataclass(frozen=True, slots=True)
class Span:
    """From ``start`` to before ``end``."""

    start: int
    end: int
    partial: bool = True


async def serve(request: Request, storage: Storage, content: Content, *, is_allowed: IsAllowed) -> Response:
    """The object or the part of it that was asked for. It breaks off soon after its reader is no longer allowed."""
    headers = {
        **content.headers(),
        "ETag": f'"{content.etag}"',
        "Accept-Ranges": "bytes",
        "Content-Security-Policy": _SANDBOX,
        "Cross-Origin-Resource-Policy": "same-site",
        "Cache-Control": "private, no-cache",
    }
    if matches(request.headers.get("if-none-match"), content.etag):
        return Response(status_code=304, headers=headers)
    span = _requested_span(request, content)
    if span is None:
        refusal = answer(
            plain(416, code="range_not_satisfiable", detail="The file has no bytes in this range."), facts_of(request)
        )
        refusal.headers["Content-Range"] = f"bytes */{content.size}"
        return refusal
    status = 200
    if span.partial:
        status = 206
        headers["Content-Range"] = f"bytes {span.start}-{span.end - 1}/{content.size}"
    headers["Content-Length"] = str(span.end - span.start)
    if request.scope.get("headrace.head"):
        return Response(status_code=status, headers=headers)
    pieces = await opened(storage, content, span, is_allowed)
    return StreamingResponse(pieces, status_code=status, headers=headers)


async def opened(storage: Storage, content: Content, span: Span, is_allowed: IsAllowed) -> AsyncGenerator[bytes, None]:
    """The bytes; that they are not there is known before the answer begins."""
    pieces = storage.read(content.name, start=span.start, end=span.end)
    try:
        first = await anext(pieces, b"")
    except ObjectNotFound as exc:
        await pieces.aclose()
        raise BytesMissing from exc

    async def rest() -> AsyncGenerator[bytes, None]:
        ask_at = time.monotonic() + _ASK_EVERY_S
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                if time.monotonic() >= ask_at:
                    if not await is_allowed():
                        raise ReadingEnded
                    ask_at = time.monotonic() + _ASK_EVERY_S
                yield piece

    return rest()


def _requested_span(request: Request, content: Content) -> Span | None:
    """The requested range: everything if it was no single range; None if the file has no such range."""
    everything = Span(0, content.size, partial=False)
    header = request.headers.get("range")
    if header is None or request.method not in ("GET", "HEAD"):
        return everything
    # Another version than the client has a part of: it gets the whole of this one.
    if (valid := request.headers.get("if-range")) is not None and valid.strip() != f'"{content.etag}"':
        return everything
    match = _RANGE.fullmatch(header.strip())
    # Several at once, or something we do not know: a server may answer with the whole (RFC 9110, 14.2).
    if match is None or match[1] == match[2] == "":
        return everything
    if match[1] == "":
        length = min(int(match[2]), content.size)
        return Span(content.size - length, content.size) if length else None
    start = int(match[1])
    end = min(int(match[2]) + 1, content.size) if match[2] else content.size
    if match[2] and int(match[2]) < start:
        return everything
    return Span(start, end) if start < content.size else None


def matches(header: str | None, etag: str) -> bool:
    """Whether ``If-None-Match`` names this version."""
    if header is None:
        return False
    return any(each.strip().removeprefix("W/") in (f'"{etag}"', "*") for each in header.split(","))
