"""Where bytes lie: a folder, or a bucket of anything that speaks S3."""

import asyncio
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.errors import NotFound, Unavailable
from headrace.extras import load

_PROBE = "headrace-was-here"
_EXTRA = "archive"
_PIECE = 8 * 1024 * 1024


class StorageUnreachable(Unavailable):
    """The place where files are stored cannot be read or written."""

    code = "storage_unreachable"


class ObjectNotFound(NotFound):
    """There is no such file in storage."""

    code = "object_not_found"


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """``url`` is ``file:///folder`` or ``s3://bucket/prefix``; ``options`` tell the S3 client its endpoint and keys."""

    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: timedelta = timedelta(seconds=30)


class Storage:
    """Files under names. A file is there whole or not at all."""

    def __init__(self, config: StorageConfig) -> None:
        self._url = config.url
        self._obstore = load("obstore", extra=_EXTRA)
        stores = load("obstore.store", extra=_EXTRA)
        self._folder = Path(config.url.removeprefix("file://")) if config.url.startswith("file://") else None
        try:
            if self._folder is not None:
                # Addresses and names of people are in there; one that is there already is as somebody wanted it.
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._store: Any = stores.LocalStore(self._folder)
            else:
                self._store = stores.from_url(
                    config.url,
                    config=dict(config.options),
                    client_options={"timeout": config.timeout, "allow_http": True},
                )
        except Exception as exc:
            raise self._unreachable(exc) from exc

    async def probe(self) -> None:
        """Make sure that files can be written here, before a month is taken out of its table."""
        # It stays: a good archive lets nobody delete anything.
        await self._calling(self._obstore.put_async(self._store, _PROBE, b"Headrace can write here.\n"))

    async def put(self, name: str, file: Path) -> None:
        """Store the file; one of the same name is replaced."""
        await self._calling(self._obstore.put_async(self._store, name, file))
        if self._folder is not None:
            await asyncio.to_thread(_make_durable, self._folder / name, self._folder)

    async def put_bytes(self, name: str, content: bytes) -> None:
        await self._calling(self._obstore.put_async(self._store, name, content))

    async def read_bytes(self, name: str) -> bytes:
        reply = await self._calling(self._obstore.get_async(self._store, name), name)
        return bytes(await self._calling(reply.bytes_async(), name))

    async def list_names(self, folder: str) -> list[str]:
        """Everything in this folder and below."""
        names: list[str] = []
        try:
            async for batch in self._obstore.list(self._store, prefix=folder):
                names += [found["path"] for found in batch]
        except self._errors as exc:
            raise self._unreachable(exc) from exc
        return names

    async def fetch(self, name: str, file: Path) -> str:
        """Write what is stored under this name to ``file``, and give its SHA-256 as hex."""
        digest = hashlib.sha256()
        reply = await self._calling(self._obstore.get_async(self._store, name), name)
        try:
            with file.open("wb") as copy:
                async for piece in reply.stream(min_chunk_size=_PIECE):
                    await asyncio.to_thread(_take, digest, copy, bytes(piece))
        except self._errors as exc:
            raise self._unreachable(exc) from exc
        return digest.hexdigest()

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        return (load("obstore.exceptions", extra=_EXTRA).BaseError, OSError)

    async def _calling(self, call: Any, name: str = "") -> Any:
        try:
            return await call
        except FileNotFoundError as exc:
            raise ObjectNotFound(f"There is no file {name} under {self._url}.") from exc
        except self._errors as exc:
            raise self._unreachable(exc) from exc

    def _unreachable(self, exc: Exception) -> StorageUnreachable:
        # The first line only: the client's reports go on with every attempt and its headers.
        reason = str(exc).strip().partition("\n")[0][:200]
        return StorageUnreachable(f"{self._url} cannot be read or written: {reason}")


def _take(digest: Any, copy: Any, piece: bytes) -> None:
    digest.update(piece)
    copy.write(piece)


def _make_durable(file: Path, top: Path) -> None:
    """What is dropped from the database because it is here must be here after a power cut, too."""
    for path in (file, *(folder for folder in file.parents if folder.is_relative_to(top))):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
