"""Orphans in both directions: bytes that no row names, and rows whose bytes are not there.

Bytes have an owner as long as a row names them, and that row always comes first: an upload's before its first byte,
a task's before its result. So bytes that are listed and then found without such a row, in one query, have no owner,
however the two were timed; names are never used twice. The minimum age is for files that operators copy into the
storage by hand.
"""

import asyncio
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from headrace import clock, logs
from headrace.assets.errors import SweepRefused
from headrace.assets.model import Asset, Kind
from headrace.assets.service import Files, tell_deleted
from headrace.assets.store import assets
from headrace.assets.store import sweep as store
from headrace.audit import Who
from headrace.database import Database
from headrace.storage import ObjectNotFound

log = logs.get(__name__)

_ROWS = 1000  # that are looked at in one run: those that were not for longest
_AT_ONCE = 16
_SUSPICIOUS = 10  # more missing, and more than half, or all of several: that is not the storage we know
_DRAFT_AGE_S = 24 * 3600.0


@dataclass(slots=True)
class Swept:
    """What a sweep found."""

    orphans: int = 0
    orphan_bytes: int = 0
    checked: int = 0
    missing: int = 0
    drafts: int = 0


async def sweep(files: Files, db: Database, *, older_than: timedelta = timedelta(hours=1)) -> Swept:
    """One pass over everything stored, and over the rows that were not checked for longest."""
    swept = Swept()
    await _check_rows(files, db, swept)  # first: where rows and bytes do not fit at all, nothing is removed
    line = clock.now() - older_than
    for kind in Kind:
        async for batch in files.storage.list_objects(kind):
            old = {each.name.removeprefix(f"{kind}/"): each.size for each in batch if each.modified_at <= line}
            async with db.transaction(readonly=True) as tx:
                orphans = await store.list_orphans(tx, kind, list(old))
            if swept.checked == 0 and kind is Kind.MEDIA and len(orphans) > _SUSPICIOUS:
                raise SweepRefused(orphans=len(orphans))  # a database that knows no file, and a storage full of them
            for key in orphans:
                await files.storage.delete(f"{kind}/{key}")
                swept.orphans += 1
                swept.orphan_bytes += old[key]
                log.info("orphan.removed", kind=kind, key=key, bytes=old[key])
    swept.drafts = await sweep_spool(files, db)
    return swept


async def sweep_spool(files: Files, db: Database) -> int:
    """What uploads have left behind on this machine that no upload needs any more."""
    names = await asyncio.to_thread(_entries, files.spool)
    uploads = {name: name.partition(".")[0] for name in names if name.startswith("upl_")}
    async with db.transaction(readonly=True) as tx:
        alive = await store.list_alive_uploads(tx, [*uploads.values()])
    line = time.time() - _DRAFT_AGE_S
    gone = [name for name, upload_id in uploads.items() if upload_id not in alive]
    gone += [name for name, changed in names.items() if not name.startswith("upl_") and changed < line]
    for name in gone:
        await asyncio.to_thread(_remove, files.spool / name)
    return len(gone)


def _entries(folder: Path) -> dict[str, float]:
    modified: dict[str, float] = {}
    if folder.is_dir():
        for each in folder.iterdir():
            try:
                modified[each.name] = each.stat().st_mtime
            except FileNotFoundError:
                continue
    return modified


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


async def _check_rows(files: Files, db: Database, swept: Swept) -> None:
    async with db.transaction(readonly=True) as tx:
        rows = await store.list_to_check(tx, _ROWS)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def is_missing(asset: Asset) -> bool:
        async with gate:
            try:
                return await files.storage.size_of(asset.object_name) != asset.size_bytes
            except ObjectNotFound:
                return True

    lost_flags = await asyncio.gather(*(is_missing(asset) for asset in rows))
    missing = [asset for asset, lost in zip(rows, lost_flags, strict=True) if lost]
    # A missing file is reported as long as this refuses: that loses nothing, but a wrong answer would lose much.
    if (len(missing) > _SUSPICIOUS and len(missing) * 2 > len(rows)) or 1 < len(missing) == len(rows):
        raise SweepRefused(missing=len(missing), checked=len(rows))
    async with db.transaction() as tx:
        await store.mark_checked(tx, [asset.id for asset in rows])
    swept.checked, swept.missing = len(rows), await _delete_lost(db, missing)


async def _delete_lost(db: Database, missing: Sequence[Asset]) -> int:
    """Delete assets without bytes, and return their number. One that its owner deleted meanwhile was not lost."""
    lost = 0
    for asset in missing:
        async with db.transaction() as tx:
            deleted = await assets.delete(tx, asset.id, user_id=None)
            if deleted is not None:
                await tell_deleted(tx, Who.system(), deleted, reason="lost")
                log.error("asset.lost", asset_id=asset.id, user_id=asset.user_id, key=asset.storage_key)
                lost += 1
    return lost
