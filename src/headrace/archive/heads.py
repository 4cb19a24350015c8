"""Heads of the audit trail, beside the archives: a small file for each round of sealing.

``audit_heads/2026-03-20/000000000123-<chain in hex>.json``

The name holds all that is compared, so that listing is reading. It is never used for another seal: a trail that was
cut off and sealed again writes other names, and the contradicting files stay. A bucket that forbids deleting and
replacing is the best place for them.
"""

import asyncio
import os
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import orjson

from headrace.audit.heads import Head, KeptHeads, Signature
from headrace.audit.seals import Seal
from headrace.embedded_postgres import files
from headrace.storage import ObjectNotFound, Storage, StorageConfig, StorageUnreachable
from headrace.storage.folder import explain

FOLDER = "audit_heads"
_MAX_DAYS_LISTED_ALONE = 40
_NAME = re.compile(rf"{FOLDER}/\d{{4}}-\d\d-\d\d/(\d{{12}})-([0-9a-f]{{64}})\.json")


def number_in(name: str) -> int:
    """The number of the seal whose head has this name; 0 for other names."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else 0


def heads_in(config: StorageConfig) -> KeptHeads:
    """Where this deployment keeps its heads. A folder needs none of the archive's libraries."""
    if config.url.startswith("file://"):
        return FolderHeads(Path(config.url.removeprefix("file://")))
    return BucketHeads(config)


class FolderHeads:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def place(self) -> str:
        return str(self._folder)

    async def keep(self, seal: Seal) -> None:
        try:
            await asyncio.to_thread(self._write, self._folder / _name(seal), _content(seal))
        except OSError as exc:
            raise self._unreachable(exc) from exc

    async def list_heads(self) -> Sequence[Head]:
        try:
            return _heads(await asyncio.to_thread(self._list))
        except OSError as exc:
            raise self._unreachable(exc) from exc

    async def list_since(self, day: date) -> Sequence[Head]:
        try:
            return _heads(await asyncio.to_thread(self._list_since, day.isoformat()))
        except OSError as exc:
            raise self._unreachable(exc) from exc

    async def list_first(self) -> Sequence[Head]:
        try:
            return _heads(await asyncio.to_thread(self._list_first_day))
        except OSError as exc:
            raise self._unreachable(exc) from exc

    async def read_signature(self, head: Head) -> Signature | None:
        try:
            return _signature(head, await asyncio.to_thread((self._folder / head.name).read_bytes))
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise self._unreachable(exc) from exc

    def _write(self, file: Path, content: bytes) -> None:
        if file.exists():
            return
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_name(f".{secrets.token_hex(8)}")
        try:
            files.write(draft, content.decode(), durable=True)
            with suppress(FileExistsError):  # another process was faster: the name says that it wrote the same
                os.link(draft, file)
        finally:
            draft.unlink(missing_ok=True)
        files.sync_folder(file.parent)

    def _list(self, day: str = "*") -> list[str]:
        return [file.relative_to(self._folder).as_posix() for file in (self._folder / FOLDER).glob(f"{day}/*.json")]

    def _list_since(self, day: str) -> list[str]:
        days = [folder.name for folder in (self._folder / FOLDER).glob("*")]
        return [head for each in days if each >= day for head in self._list(each)]

    def _list_first_day(self) -> list[str]:
        days = sorted(folder.name for folder in (self._folder / FOLDER).glob("*"))
        return next((heads for day in days if (heads := self._list(day))), [])

    def _unreachable(self, exc: OSError) -> StorageUnreachable:
        return explain(exc, str(self._folder))


class BucketHeads:
    def __init__(self, config: StorageConfig) -> None:
        self._config = config
        self._opened: Storage | None = None

    @property
    def place(self) -> str:
        return self._config.url

    async def keep(self, seal: Seal) -> None:
        await (await self._storage()).put_bytes(_name(seal), _content(seal))

    async def list_heads(self) -> Sequence[Head]:
        return _heads(await (await self._storage()).list_names(FOLDER))

    async def list_since(self, day: date) -> Sequence[Head]:
        """A day at a time; of a long time all, whose names then tell."""
        storage = await self._storage()
        days = (datetime.now(UTC).date() - day).days + 1
        if days > _MAX_DAYS_LISTED_ALONE:
            names = await storage.list_names(FOLDER)
        else:
            # A day more: the seals' clock is the database's.
            dates = (day + timedelta(days=number) for number in range(days + 1))
            names = [name for each in dates for name in await storage.list_names(f"{FOLDER}/{each.isoformat()}")]
        return _heads([name for name in names if name.removeprefix(f"{FOLDER}/")[:10] >= day.isoformat()])

    async def list_first(self) -> Sequence[Head]:
        """A bucket lists by name, which begins with the day."""
        async for batch in (await self._storage()).list_objects(FOLDER):
            return _heads([each.name for each in batch])
        return ()

    async def read_signature(self, head: Head) -> Signature | None:
        try:
            return _signature(head, await (await self._storage()).read_bytes(head.name))
        except ObjectNotFound:
            return None

    async def _storage(self) -> Storage:
        """When it is first needed: loading its library takes a while, and it may not be there."""
        if self._opened is None:
            self._opened = await asyncio.to_thread(Storage, self._config)
        return self._opened


def _name(seal: Seal) -> str:
    return f"{FOLDER}/{seal.sealed_at:%Y-%m-%d}/{seal.number:012}-{seal.chain.hex()}.json"


def _content(seal: Seal) -> bytes:
    return orjson.dumps(seal.as_json(), option=orjson.OPT_APPEND_NEWLINE)


def _heads(names: Sequence[str]) -> list[Head]:
    matches = ((_NAME.fullmatch(name), name) for name in names)
    return [Head(int(match[1]), bytes.fromhex(match[2]), name) for match, name in matches if match]


def _signature(head: Head, content: bytes) -> Signature | None:
    """The signature, if the file holds the seal that its name says: a copy under another number proves nothing."""
    try:
        seal = Seal.from_json(orjson.loads(content))
    except (ValueError, KeyError, TypeError):
        return None
    if (seal.number, seal.expected_chain()) != (head.number, head.chain):
        return None
    return None if seal.signed_by is None or seal.signature is None else Signature(seal.signed_by, seal.signature)
