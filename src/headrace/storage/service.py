"""The common interface of folder and bucket."""

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from headrace.storage.errors import ObjectNotFound, StorageRefused, StorageUnreachable
from headrace.storage.folder import Folder, explain
from headrace.storage.model import StorageConfig, StoredObject

if TYPE_CHECKING:
    from headrace.storage.bucket import Bucket

_PROBE_NAME = "headrace-was-here"
_CHECK_WITHIN_S = 10
_PIECE = 1024 * 1024
_LIST_BATCH = 1000


class Storage:
    """Files under names. Writes are atomic and durable."""

    def __init__(self, config: StorageConfig) -> None:
        self.url = config.url
        self.folder = Folder(config.url) if config.url.startswith("file://") else None
        if self.folder is None and not config.url.startswith(("s3://", "s3a://")):
            raise StorageRefused(f"{config.url} is neither a folder nor s3://bucket/prefix.")
        self._bucket = None if self.folder is not None else _open_bucket(config)

    @property
    def bucket(self) -> "Bucket | None":
        """The bucket, for multipart uploads and links; None for a folder."""
        return self._bucket

    async def close(self) -> None:
        if self._bucket is not None:
            await self._bucket.close()

    async def probe(self) -> None:
        """Check that files can be written, before any use."""
        # Not deleted: a write-once archive does not allow it.
        await self.put_bytes(_PROBE_NAME, b"Headrace can write here.\n")

    async def check(self) -> None:
        """Write, read and delete a probe object within ten seconds.

        ``StorageRefused`` says what to correct; any other ``StorageUnreachable`` may be temporary.
        """
        try:
            async with asyncio.timeout(_CHECK_WITHIN_S):
                await self._check()
        except TimeoutError:
            reason = f"{self.url} took longer than {_CHECK_WITHIN_S} s to store a probe object."
            raise StorageUnreachable(reason) from None

    async def _check(self) -> None:
        name = f"headrace-check-{secrets.token_hex(8)}"
        await self.put_bytes(name, name.encode())
        try:
            found = await self.read_bytes(name)
        except ObjectNotFound as exc:
            raise StorageUnreachable(f"{self.url} does not return what was written.") from exc
        finally:
            await self.delete(name)
        if found != name.encode():
            raise StorageUnreachable(f"{self.url} returns other bytes than were written.")

    # -- writing

    async def put(self, name: str, file: Path) -> None:
        """Store a copy of the file; one of the same name is replaced."""
        if self.folder is not None:
            await asyncio.to_thread(self.folder.put, name, file)
        else:
            assert self._bucket is not None
            await self._bucket.put(name, file)

    async def put_bytes(self, name: str, content: bytes) -> None:
        if self.folder is not None:
            await asyncio.to_thread(self.folder.put_bytes, name, content)
        else:
            assert self._bucket is not None
            await self._bucket.put(name, content)

    async def move_in(self, name: str, file: Path) -> None:
        """Move the file into storage. In a folder without a copy."""
        if self.folder is not None:
            await asyncio.to_thread(self.folder.move_in, name, file)
        else:
            await self.put(name, file)
            await asyncio.to_thread(file.unlink)

    async def delete(self, name: str) -> None:
        """Delete it. Idempotent."""
        if self.folder is not None:
            await asyncio.to_thread(self.folder.delete, name)
        else:
            assert self._bucket is not None
            await self._bucket.delete(name)

    # -- reading

    async def size_of(self, name: str) -> int:
        if self.folder is not None:
            return await asyncio.to_thread(self.folder.size, name)
        assert self._bucket is not None
        return await self._bucket.size(name)

    async def read(self, name: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        """Stream the bytes from ``start`` to before ``end``. ``ObjectNotFound`` is raised with the first piece."""
        pieces = self._read_folder(name, start, end) if self.folder else self._read_bucket(name, start, end)
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    async def _read_folder(self, name: str, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        assert self.folder is not None
        descriptor = await asyncio.to_thread(self.folder.open, name)
        try:
            while end is None or start < end:
                wanted = _PIECE if end is None else min(_PIECE, end - start)
                try:
                    piece = await asyncio.to_thread(os.pread, descriptor, wanted, start)
                except OSError as exc:
                    raise explain(exc, self.url) from exc
                if not piece:
                    return
                start += len(piece)
                yield piece
        finally:
            os.close(descriptor)

    async def _read_bucket(self, name: str, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        assert self._bucket is not None
        async with aclosing(self._bucket.read(name, start, end)) as pieces:
            async for piece in pieces:
                yield piece

    async def read_bytes(self, name: str) -> bytes:
        async with aclosing(self.read(name)) as pieces:
            return b"".join([piece async for piece in pieces])

    async def fetch(self, name: str, file: Path) -> str:
        """Copy a stored object to ``file``; returns its SHA-256 as hex."""
        digest = hashlib.sha256()
        try:
            with file.open("wb") as copy:
                async with aclosing(self.read(name)) as pieces:
                    async for piece in pieces:
                        await asyncio.to_thread(_take, digest, copy, piece)
        except OSError as exc:
            raise explain(exc, str(file)) from exc
        return digest.hexdigest()

    async def list_objects(self, prefix: str = "") -> AsyncIterator[Sequence[StoredObject]]:
        """All objects in this folder and below, in batches."""
        if self._bucket is not None:
            async for batch in self._bucket.list(prefix):
                yield batch
            return
        assert self.folder is not None
        found = self.folder.list(prefix)
        while batch := await asyncio.to_thread(_some, found):
            yield batch

    async def list_names(self, folder: str) -> list[str]:
        """The names of all objects in this folder and below."""
        return [each.name async for batch in self.list_objects(folder) for each in batch]

    async def link(self, name: str, *, expires_in: timedelta, headers: Mapping[str, str]) -> str | None:
        """A link of the bucket for reading, with these headers in the answer; None for a folder."""
        if self._bucket is None:
            return None
        query = {f"response-{header.lower()}": value for header, value in headers.items()}
        return await self._bucket.link(name, expires_in=expires_in, query=query)


def _open_bucket(config: StorageConfig) -> "Bucket":
    from headrace.storage.bucket import Bucket  # slow to import, and not needed for a folder

    return Bucket(config)


def _take(digest: Any, copy: IO[bytes], piece: bytes) -> None:
    digest.update(piece)
    copy.write(piece)


def _some(found: Iterator[StoredObject]) -> list[StoredObject]:
    return list(islice(found, _LIST_BATCH))
