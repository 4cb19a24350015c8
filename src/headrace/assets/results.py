"""The files that tasks make: stored before the end, written down with the end.

>>> made = await result_files.store(context.task_id, context.user_id, path, name="cat.png", mime_type="image/png")
>>> return made.as_json(metrics={"psnr": 41.2})            # of a task type with followers=("results",)

A handler stores its files and gives back what ``as_json`` makes. The follower ``results`` writes ``task_results`` in
the transaction that ends the task, however it ends: gathered with others, or by ``finish_in`` in the handler's own.
If that commit is lost, the bytes have no owner, and the sweep removes them when the task is over; a task that is not
over keeps everything under its name.
"""

import asyncio
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import orjson
from pydantic import TypeAdapter, ValidationError

from headrace import logs
from headrace.assets.config import FileConfig
from headrace.assets.content import is_mime_type, mime_type_of_name
from headrace.assets.limits import limits_for
from headrace.assets.model import Kind, clean_name
from headrace.assets.store import results as store
from headrace.database import Tx
from headrace.storage import Storage, StorageConfig, StorageUnreachable
from headrace.storage.folder import Folder, explain
from headrace.tasks.errors import BadResult
from headrace.tasks.model import Change, Transition

log = logs.get(__name__)

COMPARISON_MIME_TYPE = "image/jpeg"
FIELD = "result_file"  # of a task's result: what its handler made


class ResultInvalid(BadResult):
    """The task's result does not say which file it made: give back what `ResultFiles.store` gave."""

    code = "result_invalid"


@dataclass(frozen=True, slots=True)
class StoredFile:
    key: str
    mime_type: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Made:
    """The files of one result, in storage."""

    file: StoredFile
    sha256: str
    file_name: str
    preview: StoredFile | None = None
    comparison: StoredFile | None = None  # before and after, beside each other

    def as_json(self, *, metrics: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """What a handler gives back: ``more`` is its own, ``metrics`` is kept beside the files."""
        return {**more, FIELD: {**asdict(self), "metrics": dict(metrics) if metrics else None}}


_MADE = TypeAdapter(Made)


class ResultFiles:
    """Stores the files that handlers make."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def store(
        self,
        task_id: str,
        user_id: str,
        path: Path,
        *,
        name: str,
        mime_type: str,
        preview: Path | None = None,
        preview_mime_type: str = "image/webp",
        comparison: Path | None = None,
    ) -> Made:
        """Store a result, its preview and a comparison (JPEG); the files are gone from where they were."""
        digest = await asyncio.to_thread(_digest, path)
        # A name of its own for each try: a late worker never overwrites what a later attempt has made.
        stem = f"{user_id}/{task_id}/{secrets.token_hex(8)}"
        file = await self._put(Kind.RESULT, stem, path, mime_type)
        small = None if preview is None else await self._put(Kind.PREVIEW, stem, preview, preview_mime_type)
        compared = None
        if comparison is not None:
            compared = await self._put(Kind.PREVIEW, f"{stem}.comparison", comparison, COMPARISON_MIME_TYPE)
        return Made(file, digest, clean_name(name), small, compared)

    async def _put(self, kind: Kind, key: str, path: Path, mime_type: str) -> StoredFile:
        size = (await asyncio.to_thread(path.stat)).st_size
        await self._storage.move_in(f"{kind}/{key}", path)
        return StoredFile(key, mime_type, size)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def record(
    tx: Tx, task_id: str, made: Made, *, metrics: Mapping[str, Any] | None = None, keep: timedelta | None
) -> None:
    """Write down what a task made: in the transaction that ends it, and only there."""
    small, compared = made.preview, made.comparison
    values = (
        Kind.RESULT,
        made.file.key,
        made.file_name,
        made.file.mime_type,
        made.file.size_bytes,
        made.sha256,
        Kind.PREVIEW if small else None,
        small.key if small else None,
        small.mime_type if small else None,
        small.size_bytes if small else None,
        metrics,
        compared.key if compared else None,
        compared.size_bytes if compared else None,
    )
    await store.record(tx, task_id, values, keep)


class HandlerResults:
    """Keeps what handlers give to ``context.save_result``. The storage is opened with the first file: most workers save
    none, and need no right to write there."""

    def __init__(self, config: StorageConfig) -> None:
        self._config = config

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if "_storage" in self.__dict__:
            await self._storage.close()

    @cached_property
    def _storage(self) -> Storage:
        return Storage(self._config)

    async def save(
        self, task_id: str, user_id: str, file: int, *, name: str, mime_type: str | None
    ) -> Mapping[str, Any]:
        """Store a copy of an open file, and say in JSON where it is."""
        if mime_type is not None and not is_mime_type(mime_type):
            raise ResultInvalid(f"save_result was given {mime_type!r} as the file's type: write it as text/csv.")
        name = clean_name(name)
        try:
            return await self._store(task_id, user_id, file, name, mime_type or mime_type_of_name(name))
        except StorageUnreachable as exc:
            # The task's owner reads the traceback: where files are kept must not be in it.
            log.error("result.not_saved", task_id=task_id, code=exc.code, reason=exc.operator_message)
            raise type(exc) from None

    async def _store(self, task_id: str, user_id: str, file: int, name: str, mime_type: str) -> Mapping[str, Any]:
        draft = await asyncio.to_thread(_copy, file, self._storage.folder)
        try:
            made = await ResultFiles(self._storage).store(task_id, user_id, draft, name=name, mime_type=mime_type)
        finally:
            await asyncio.to_thread(draft.unlink, missing_ok=True)
        return asdict(made)

    async def discard(self, saved: Mapping[str, Any]) -> None:
        """Remove a file that was replaced before it was recorded. If that fails, the sweep removes it."""
        with suppress(StorageUnreachable):
            await self._storage.delete(f"{Kind.RESULT}/{saved['file']['key']}")


def _copy(file: int, folder: Folder | None) -> Path:
    # Beside the files, where the move to its place copies nothing.
    try:
        draft, path = tempfile.mkstemp(prefix="result.", dir=None if folder is None else folder.incoming)
        try:
            with os.fdopen(draft, "wb") as copy, os.fdopen(os.dup(file), "rb") as source:
                shutil.copyfileobj(source, copy, 1024 * 1024)
        except BaseException:
            Path(path).unlink()
            raise
    except OSError as exc:
        raise explain(exc, "The folder for result files") from exc
    return Path(path)


class ResultFollower:
    """Writes ``task_results`` with the end of every task that saved a file or whose result names one."""

    def __init__(self, config: FileConfig) -> None:
        self._config = config

    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:
        for each in transitions:
            if each.change is Change.SUCCEEDED and (named := _named(each)) is not None:
                limits = await limits_for(tx, self._config, each.user_id)
                await record(tx, each.task_id, named[0], metrics=named[1], keep=limits.keep_results)


def _named(moved: Transition) -> tuple[Made, Mapping[str, Any] | None] | None:
    # Encoded where a worker writes it; bytes of our own kind, which orjson does not take for bytes.
    if moved.saved is not None:
        return _MADE.validate_python(dict(moved.saved)), None
    result = orjson.loads(bytes(moved.result)) if isinstance(moved.result, bytes) else moved.result
    if not isinstance(result, dict) or FIELD not in result:
        return None
    try:
        made = _MADE.validate_python({name: value for name, value in result[FIELD].items() if name != "metrics"})
    except (ValidationError, AttributeError):
        raise ResultInvalid from None
    # A handler names its own task's files and no others.
    owned = f"{moved.user_id}/{moved.task_id}/"
    if not all(file.key.startswith(owned) for file in (made.file, made.preview, made.comparison) if file):
        raise ResultInvalid("The task's result names files that are not its own.")
    return made, result[FIELD].get("metrics")
