"""Several files as one archive that is written while it is sent: stored, not packed, for media do not shrink.

No more than a piece is in memory, and nothing is written to a disk here.
"""

import zipfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from headrace.assets.content import Content, disposition
from headrace.assets.errors import ReadingEnded
from headrace.assets.reading import IsAllowed, Span, opened
from headrace.storage import Storage

_LOCAL, _DESCRIPTOR, _CENTRAL, _END = 30, 16, 46, 22  # bytes of an archive's records, besides names
_PLAIN_UNTIL = 2**31 - 1  # beyond, records are longer, and the whole length is not announced


class _Sink:
    """What ``zipfile`` writes to, and from where it is taken away at once; it cannot go back in it."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take(self) -> bytes:
        taken, self._pieces = b"".join(self._pieces), []
        return taken


@dataclass(frozen=True, slots=True)
class Entry:
    content: Content
    is_allowed: IsAllowed


async def serve_archive(
    request: Request, storage: Storage, entries: Sequence[Entry], *, name: str, made_at: datetime
) -> Response:
    """All of them as one ZIP file. It breaks off soon after its reader is no longer allowed to read the one at hand."""
    names = unique_names([entry.content.file_name for entry in entries])
    headers = {
        "Content-Disposition": disposition(name, inline=False),
        "Cache-Control": "private, no-store",
        "Cross-Origin-Resource-Policy": "same-site",
    }
    if (length := length_of(names, [entry.content.size for entry in entries])) is not None:
        headers["Content-Length"] = str(length)
    if request.scope.get("headrace.head"):
        return Response(headers=headers, media_type="application/zip")
    pieces = _written(storage, list(zip(names, entries, strict=True)), made_at)
    first = await anext(pieces)  # that the first file is not there is known before the answer begins
    return StreamingResponse(_rest(first, pieces), headers=headers, media_type="application/zip")


async def _rest(first: bytes, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(pieces):
        yield first
        async for piece in pieces:
            yield piece


async def _written(
    storage: Storage, entries: Sequence[tuple[str, Entry]], made_at: datetime
) -> AsyncGenerator[bytes, None]:
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for number, (name, entry) in enumerate(entries):
            # While one is read, its reader is asked for now and then; many small ones together take as long.
            if number > 0 and not await entry.is_allowed():
                raise ReadingEnded
            about = zipfile.ZipInfo(name, made_at.timetuple()[:6])
            about.external_attr = 0o644 << 16
            size = entry.content.size
            pieces = await opened(storage, entry.content, Span(0, size), entry.is_allowed)
            async with aclosing(pieces):
                with archive.open(about, "w", force_zip64=size > _PLAIN_UNTIL) as inside:
                    async for piece in pieces:
                        inside.write(piece)
                        yield sink.take()
    yield sink.take()


def length_of(names: Sequence[str], sizes: Sequence[int]) -> int | None:
    """The length of the archive, so that browsers can show progress; None for one of several gigabytes."""
    around = sum(_LOCAL + _DESCRIPTOR + _CENTRAL + 2 * len(name.encode()) for name in names) + _END
    whole = around + sum(sizes)
    return whole if whole <= _PLAIN_UNTIL else None


def unique_names(names: Sequence[str]) -> list[str]:
    """The same names, numbered where one occurs twice: no file of an archive hides another."""
    taken: set[str] = set()
    unique = []
    for name in names:
        stem, dot, ending = name.rpartition(".") if "." in name[1:] else (name, "", "")
        number, one = 1, name
        while one.casefold() in taken:  # some systems do not tell a from A
            number += 1
            one = f"{stem} ({number}){dot}{ending}"
        taken.add(one.casefold())
        unique.append(one)
    return unique
