"""The files of one removal on this machine, and what of them is kept in storage from one step to the next.

A step's files have names of their own for each try, so that a late worker never overwrites what a later attempt has
made; the step's ``detail`` names them. The next attempt, here or on another machine, fetches what it needs. The sweep
takes them a day after the task is over.
"""

import asyncio
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.assets.model import Kind
from headrace.storage import ObjectNotFound, Storage


class NotMade(Exception):
    """A child names what it cannot have made: a place elsewhere, or a link to one."""


class Workspace:
    """A folder under ``root`` for as long as it is open."""

    def __init__(self, root: Path, storage: Storage, *, task_id: str, user_id: str) -> None:
        # Children that work here cannot list it: they find the files of their order, and no others.
        self.folder = root / secrets.token_hex(16)
        self._storage = storage
        self._user_id = user_id
        self._prefix = self._prefix_of(task_id)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.folder.mkdir, mode=0o700, parents=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not awaited in a thread: a canceled task must not leave it behind. Few files, and removing is quick.
        shutil.rmtree(self.folder, ignore_errors=True)

    def _prefix_of(self, task_id: str) -> str:
        return f"{Kind.STEP}/{self._user_id}/{task_id}"

    def path(self, name: str) -> Path:
        return self.folder / name

    def has(self, name: str) -> bool:
        return self.path(name).exists()

    def made(self, name: str) -> Path:
        """A file that a child says it has made here; ``NotMade`` if it is none. One that was taken over may name the
        worker's own files, and what is stored is handed out."""
        path = self.path(name)
        if "/" in name or not stat.S_ISREG(path.lstat().st_mode):
            raise NotMade(name)
        return path

    async def fetch(self, name: str, stored: str) -> str:
        """Bring a file here from storage, and give its SHA-256; ``ObjectNotFound`` if it is not there."""
        return await self._storage.fetch(stored, self.path(name))

    async def keep(self, names: Iterable[str]) -> dict[str, str]:
        """Store these for the next attempt; gives the names for the step's detail."""
        stored: dict[str, str] = {}
        for name in names:
            path = self.made(name)
            stored[name] = f"{self._prefix}/{secrets.token_hex(8)}.{name}"
            await self._storage.put(stored[name], path)
        return stored

    async def forget_kept(self, *, but: str | None = None) -> None:
        """Remove what all steps of this task have stored for those that follow, ``but`` the file of this name."""
        for name in await self._storage.list_names(f"{self._prefix}/"):
            if but is None or not name.endswith(f".{but}"):
                await self._storage.delete(name)

    async def restore(self, files: Mapping[str, str], *, of: str | None = None) -> bool:
        """Bring back what an earlier attempt kept, of this task or of another of the same user (``of``); False if it is
        gone or not that task's: then it is made again."""
        prefix = self._prefix if of is None else self._prefix_of(of)
        for name, stored in files.items():
            if not stored.startswith(f"{prefix}/") or "/" in name:
                return False
            try:
                await self.fetch(name, stored)
            except ObjectNotFound:
                return False
        return True


def forget_leftovers(root: Path, *, older_than: timedelta) -> None:
    """Remove the folders of workers that were killed: they hold people's files. Others may work under ``root``, too."""
    for folder in root.iterdir():
        try:
            left = time.time() - folder.stat().st_mtime > older_than.total_seconds()
        except FileNotFoundError:
            continue
        if left:
            shutil.rmtree(folder, ignore_errors=True)
