"""Storage in a folder. A file appears under its name only when it is completely on disk.

Not through obstore, whose local store does not fsync, so that a file could be empty after a power cut. Files are
written to ``.incoming``, in the same file system, and then renamed.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from headrace.storage.errors import ObjectNotFound, StorageFull, StorageRefused, StorageUnreachable
from headrace.storage.model import StoredObject

INCOMING = ".incoming"
_ATTEMPTS = 100
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# Retries do not help: permissions, a read-only file system, a missing folder, a file in its place.
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOENT})


class Folder:
    """Blocking verbs: ``Storage`` calls them in threads."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.top = Path(url.removeprefix("file://"))
        with self._explained():
            # Private, because files hold personal data; the mode of an existing folder is not changed.
            self.top.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def incoming(self) -> Path:
        """The folder for files before they are moved in: renaming works only within one file system."""
        folder = self.top / INCOMING
        with self._explained():
            folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def path(self, name: str) -> Path:
        parts = name.split("/")
        # Names come from this program; this refuses any other.
        if not name or any(part in ("", ".", "..") or "\0" in part for part in parts) or parts[0] == INCOMING:
            raise ObjectNotFound(f"There is no file {name!r} under {self.url}.")
        return self.top.joinpath(*parts)

    def put(self, name: str, file: Path) -> None:
        """Store a copy."""
        with self._explained():
            draft = self._draft()
            try:
                with draft.open("xb") as copy, file.open("rb") as source:
                    shutil.copyfileobj(source, copy, 1024 * 1024)
                self._settle(draft, name)
            finally:
                draft.unlink(missing_ok=True)

    def put_bytes(self, name: str, content: bytes) -> None:
        with self._explained():
            draft = self._draft()
            try:
                draft.write_bytes(content)
                self._settle(draft, name)
            finally:
                draft.unlink(missing_ok=True)

    def move_in(self, name: str, file: Path) -> None:
        """Move a file into storage."""
        with self._explained():
            if file.stat().st_dev != self.top.stat().st_dev:
                self.put(name, file)
                file.unlink()
            else:
                self._settle(file, name)

    def _draft(self) -> Path:
        return self.incoming / f"draft.{secrets.token_hex(8)}"

    def _settle(self, draft: Path, name: str) -> None:
        target = self.path(name)
        _sync(draft)
        made = self._rename(draft, target)
        # A new folder is durable only after an fsync of its parent.
        for folder in {target.parent, *(each.parent for each in made)}:
            _sync(folder)

    def _rename(self, draft: Path, target: Path) -> Sequence[Path]:
        """Rename it to its name; returns the folders that were created.

        Deleting the last file of a folder removes the folder, maybe concurrently: then it is retried.
        """
        for _ in range(_ATTEMPTS):
            made = [folder for folder in target.parents if folder.is_relative_to(self.top) and not folder.exists()]
            with suppress(FileNotFoundError, FileExistsError):
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                draft.replace(target)
                return made
        raise StorageUnreachable(f"{self.url} cannot be written: {target.parent} is removed again and again.")

    def open(self, name: str) -> int:
        """A descriptor for reading, which stays readable after the file is deleted."""
        with self._reading(name):
            return os.open(self.path(name), os.O_RDONLY | os.O_CLOEXEC)

    def size(self, name: str) -> int:
        with self._reading(name):
            return self.path(name).stat().st_size

    def delete(self, name: str) -> None:
        """Delete it. Idempotent."""
        with self._explained():
            path = self.path(name)
            path.unlink(missing_ok=True)
            for folder in path.parents:
                if folder == self.top or not folder.is_relative_to(self.top):
                    break
                try:
                    folder.rmdir()
                except OSError:
                    break  # not empty

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """All objects in this folder and below."""
        start = self.top / prefix if prefix else self.top
        for folder, names, files in os.walk(start):
            if Path(folder) == self.top and INCOMING in names:
                names.remove(INCOMING)
            for file in files:
                path = Path(folder, file)
                try:
                    facts = path.stat()
                except FileNotFoundError:
                    continue  # deleted meanwhile
                modified = datetime.fromtimestamp(facts.st_mtime, tz=UTC)
                yield StoredObject(path.relative_to(self.top).as_posix(), facts.st_size, modified)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise explain(exc, self.url) from exc

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        with self._explained():
            try:
                yield
            except FileNotFoundError as exc:
                if not self.top.is_dir():  # an unmounted volume has not lost the file
                    raise
                raise ObjectNotFound(f"There is no file {name} under {self.url}.") from exc


def explain(exc: OSError, place: str) -> StorageUnreachable:
    """The storage error for an error of a system call on ``place``."""
    reason = f"{place} cannot be read or written: {exc.strerror or exc}."
    if exc.errno in _FULL:
        return StorageFull(reason)
    return (StorageRefused if exc.errno in _REFUSED else StorageUnreachable)(reason)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
