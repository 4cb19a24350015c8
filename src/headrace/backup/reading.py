"""Reading a backup: its manifest, and whether it is complete."""

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import orjson

from headrace.backup.errors import BackupDamaged, BackupTooNew
from headrace.backup.model import COMMENT, FORMAT, MANIFEST, Manifest
from headrace.migrations import available, definitions
from headrace.storage.folder import explain

_PIECE = 1024 * 1024
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, TypeError, NotImplementedError)


def _nothing(_done: int, _total: int) -> None:
    pass


@contextmanager
def opened(file: Path) -> Iterator[tuple[zipfile.ZipFile, Manifest]]:
    """The ZIP file and its manifest; ``BackupDamaged`` unless the manifest has its recorded digest."""
    try:
        archive = zipfile.ZipFile(file)
    except OSError as exc:
        raise explain(exc, str(file)) from exc
    except _BROKEN as exc:
        raise BackupDamaged(f"{file} is no backup of Headrace, or it was cut off: take another one.") from exc
    with archive:
        yield archive, _manifest(archive, file)


def _manifest(archive: zipfile.ZipFile, file: Path) -> Manifest:
    if not archive.comment.startswith(COMMENT):
        raise BackupDamaged(f"{file} is a ZIP file, but no backup of Headrace.")
    try:
        content = archive.read(MANIFEST)
        if hashlib.sha256(content).hexdigest().encode() != archive.comment.removeprefix(COMMENT):
            raise BackupDamaged(f"{file} is damaged: its manifest is not the one that was written.")
        if (file_format := _format(content)) > FORMAT:
            raise BackupTooNew(f"{file} has format {file_format}, and this program knows {FORMAT}: update the program.")
        return Manifest.from_bytes(content)
    except _BROKEN as exc:
        raise BackupDamaged(f"{file} is damaged: its manifest cannot be read.") from exc


def _format(content: bytes) -> int:
    return int(orjson.loads(content)["format"])


def check(file: Path, report: Callable[[int, int], None] = _nothing) -> Manifest:
    """Read all of it and compare every member with the manifest."""
    with opened(file) as (archive, manifest):
        names = {name for name in archive.namelist() if name != MANIFEST}
        if names != manifest.members.keys():
            raise BackupDamaged(f"{file} is damaged: it does not hold the members that its manifest names.")
        done, total = 0, sum(length for length, _ in manifest.members.values())
        for name, (length, digest) in manifest.members.items():
            try:
                with archive.open(name) as member:
                    actual = _digest(member)
            except _BROKEN as exc:
                raise BackupDamaged(f"{file} is damaged: {name} cannot be read.") from exc
            if actual != (length, digest):
                raise BackupDamaged(f"{file} is damaged: {name} has changed.")
            done += length
            report(done, total)
        return manifest


def _digest(member: IO[bytes]) -> tuple[int, str]:
    digest, length = hashlib.sha256(), 0
    while piece := member.read(_PIECE):
        digest.update(piece)
        length += len(piece)
    return length, digest.hexdigest()


def refuse_too_new(manifest: Manifest) -> None:
    newest = available()[-1]
    if manifest.migration > newest.number or manifest.revision > definitions.revision():
        raise BackupTooNew(
            f"The backup is of Headrace {manifest.version}, whose schema is at {manifest.migration:04} (revision "
            f"{manifest.revision}); this program knows {newest} (revision {definitions.revision()}): update it first."
        )
