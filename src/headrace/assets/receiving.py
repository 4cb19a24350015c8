"""Bytes as they arrive: into a file, hashed on the way, never more than a few in memory.

The client is read no faster than the disk writes: while one piece is written, at most one more is gathered.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from headrace.assets.errors import SizeMismatch
from headrace.assets.inspection.errors import FileTooLarge
from headrace.assets.model import Received
from headrace.edge.errors import RequestTooSlow
from headrace.storage.folder import explain

_PIECE = 1024 * 1024
_ALIVE_EVERY_S = 60.0

OnAlive = Callable[[], Awaitable[None]]


async def receive(
    body: AsyncIterator[bytes],
    path: Path,
    *,
    most: int | None,
    stalled_for: timedelta,
    on_alive: OnAlive | None = None,
) -> Received:
    """Write a body to a new file. The file is gone again if anything goes wrong.

    ``FileTooLarge`` as soon as there is one byte too many; ``RequestTooSlow`` when nothing comes for ``stalled_for``.
    ``on_alive`` is called every minute: a request that waits for this upload learns that it continues.
    """
    writer = _Writer(path)
    try:
        size = 0
        loop = asyncio.get_running_loop()
        reported_at = loop.time()
        pieces = aiter(body)
        while (piece := await _next(pieces, stalled_for)) is not None:
            size += len(piece)
            if most is not None and size > most:
                raise FileTooLarge(max_bytes=most)
            await writer.add(piece)
            if on_alive is not None and loop.time() - reported_at > _ALIVE_EVERY_S:
                reported_at = loop.time()
                await on_alive()
        return Received(path, size, await writer.finish())
    except BaseException:
        await writer.drop()
        raise


async def _next(pieces: AsyncIterator[bytes], stalled_for: timedelta) -> bytes | None:
    try:
        async with asyncio.timeout(stalled_for.total_seconds()):
            return await anext(pieces, None)
    except TimeoutError:
        raise RequestTooSlow("No byte of the file came for too long. An upload in parts can continue later.") from None


class _Writer:
    """Writes and hashes in a thread, a piece behind the one that is being gathered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise explain(exc, "The folder for uploads") from exc
        self._digest = hashlib.sha256()
        self._gathered: list[bytes] = []
        self._size = 0
        self._writing: asyncio.Future[None] | None = None

    async def add(self, piece: bytes) -> None:
        self._gathered.append(piece)
        self._size += len(piece)
        if self._size >= _PIECE:
            await self._flush()

    async def _flush(self) -> None:
        await self._written()
        gathered, self._gathered, self._size = self._gathered, [], 0
        loop = asyncio.get_running_loop()
        self._writing = loop.run_in_executor(None, self._write, gathered)

    async def _written(self) -> None:
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        try:
            await asyncio.shield(writing)
        except OSError as exc:
            raise explain(exc, "The folder for uploads") from exc
        except asyncio.CancelledError:
            await asyncio.wait([writing])  # the descriptor is the thread's until it is done
            raise

    def _write(self, pieces: list[bytes]) -> None:
        for piece in pieces:
            self._digest.update(piece)
            view = memoryview(piece)
            while view:
                view = view[os.write(self._file, view) :]

    async def finish(self) -> str:
        await self._flush()
        await self._written()
        os.close(self._file)
        self._file = -1
        return self._digest.hexdigest()

    async def drop(self) -> None:
        if self._writing is not None:
            await asyncio.wait([self._writing])
            self._writing.exception()
        if self._file >= 0:
            os.close(self._file)
        self._path.unlink(missing_ok=True)


def check_size(received: Received, announced: int) -> None:
    if received.size != announced:
        raise SizeMismatch(received=received.size, announced=announced)
