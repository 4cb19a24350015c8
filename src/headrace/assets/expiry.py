"""Expiry and purging of files: expired ones, deleted ones, abandoned uploads.

Every verb is one run: any number of processes may do it at once, any of them may be killed, and the next continues.
Bytes go before the row says that they are gone; a storage that does not answer leaves the row as it was.
"""

from dataclasses import dataclass
from datetime import datetime

from headrace import logs
from headrace.assets import uploading
from headrace.assets.inspection.model import SLIDES, MediaType
from headrace.assets.model import Asset, Kind, object_name, slides_key_of
from headrace.assets.previews import preview_name
from headrace.assets.service import Files, tell_deleted
from headrace.assets.store import assets, results, uploads
from headrace.audit import Who
from headrace.database import Database
from headrace.errors import HeadraceError, reason_of

log = logs.get(__name__)

_BATCH = 200


@dataclass(slots=True)
class LetGo:
    """What a run did."""

    expired: int = 0
    purged: int = 0
    results: int = 0
    uploads: int = 0
    failed: int = 0


async def let_go(files: Files, db: Database, *, now: datetime | None = None, user_id: str | None = None) -> LetGo:
    """Delete expired files, and remove the bytes of deleted ones. ``user_id``: only this user's."""
    done = LetGo()
    if user_id is None:
        await _expire(db, done, now)
    await _purge_assets(files, db, done, user_id)
    await _purge_results(files, db, done, user_id)
    await _purge_steps(files, db, done, user_id)
    await _clean_uploads(files, db, done, now, user_id)
    return done


async def _expire(db: Database, done: LetGo, now: datetime | None) -> None:
    while True:
        async with db.transaction() as tx:
            gone = await assets.expire(tx, _BATCH, now=now)
            for asset in gone:
                await tell_deleted(tx, Who.system(), asset, reason="expired")
            old = await results.expire(tx, _BATCH, now=now)
        done.expired += len(gone)
        done.results += old
        if not gone and not old:
            return


async def _purge_assets(files: Files, db: Database, done: LetGo, user_id: str | None) -> None:
    seen: set[str] = set()
    while True:
        async with db.transaction(readonly=True) as tx:
            batch = [
                asset
                for asset in await assets.list_to_purge(tx, _BATCH + len(seen), user_id=user_id)
                if asset.id not in seen
            ]
        for asset in batch:
            seen.add(asset.id)
            try:
                await purge(files, db, asset)
                seen.discard(asset.id)
                done.purged += 1
            except HeadraceError as exc:
                done.failed += 1
                log.warning("asset.not_purged", asset_id=asset.id, error=exc.code)
        if not batch or done.failed > _BATCH:
            return


async def purge(files: Files, db: Database, asset: Asset) -> None:
    """Remove the bytes of a deleted file, unless another row has them; then the row says so.

    Bytes are shared only with an existing file. So once no existing file has these bytes, and none is just joining
    them (the lock), none ever will, and they can be removed after the transaction.
    """
    async with db.transaction() as tx:
        await assets.lock_bytes(tx, asset.user_id, asset.sha256 or asset.id)
        shared = await assets.is_shared(tx, asset)
    if asset.preview_key is not None:
        await files.storage.delete(preview_name(asset.preview_key))
    if asset.media_type == MediaType.PPT:
        await files.storage.delete(preview_name(asset.slides_key))
    if not shared:
        await files.storage.delete(asset.object_name)
    async with db.transaction() as tx:
        await assets.mark_purged(tx, asset.id)


async def purge_unless_in_use(files: Files, db: Database, asset: Asset) -> None:
    """Remove the bytes of a file that was deleted just now, so that there is room at once. Never raises for the
    storage: the next run retries a failure."""
    try:
        async with db.transaction(readonly=True) as tx:
            in_use = await assets.is_read_by_task(tx, asset.id)
        if not in_use:
            await purge(files, db, asset)
    except (HeadraceError, OSError) as exc:
        log.warning("asset.not_purged", asset_id=asset.id, error=reason_of(exc))


async def _purge_results(files: Files, db: Database, done: LetGo, user_id: str | None) -> None:
    while True:
        async with db.transaction(readonly=True) as tx:
            batch = await results.list_to_purge(tx, _BATCH, user_id=user_id)
        failed = 0
        for row in batch:
            try:
                await files.storage.delete(object_name(row["result_bucket"], row["result_key"]))
                if row["preview_key"] is not None:
                    await files.storage.delete(object_name(row["preview_bucket"], row["preview_key"]))
                if row["comparison_key"] is not None:
                    await files.storage.delete(preview_name(row["comparison_key"]))
                if row["mime_type"] in SLIDES:
                    await files.storage.delete(preview_name(slides_key_of(row["result_key"])))
                async with db.transaction() as tx:
                    await results.mark_purged(tx, row["id"], row["result_key"])
            except HeadraceError as exc:
                failed += 1
                log.warning("result.not_purged", id=row["id"], error=exc.code)
        done.failed += failed
        if len(batch) < _BATCH or failed:
            return


async def _purge_steps(files: Files, db: Database, done: LetGo, user_id: str | None) -> None:
    """Remove what the steps of deleted tasks have kept for another attempt."""
    while True:
        async with db.transaction(readonly=True) as tx:
            batch = await results.list_with_step_files(tx, _BATCH, user_id=user_id)
        failed = 0
        for row in batch:
            try:
                for name in await files.storage.list_names(f"{Kind.STEP}/{row['user_id']}/{row['id']}/"):
                    await files.storage.delete(name)
                async with db.transaction() as tx:
                    await results.forget_step_files(tx, row["id"])
            except HeadraceError as exc:
                failed += 1
                log.warning("steps.not_purged", task_id=row["id"], error=exc.code)
        done.failed += failed
        if len(batch) < _BATCH or failed:
            return


async def _clean_uploads(files: Files, db: Database, done: LetGo, now: datetime | None, user_id: str | None) -> None:
    async with db.transaction() as tx:
        if user_id is None:
            await uploads.abort_expired(tx, _BATCH, now=now)
            await uploads.forget_completed(tx, _BATCH)
    async with db.transaction(readonly=True) as tx:
        aborted = await uploads.list_to_clean(tx, _BATCH, user_id=user_id)
    for upload in aborted:
        try:
            await uploading.clean(files, db, upload)
            done.uploads += 1
        except HeadraceError as exc:
            done.failed += 1
            log.warning("upload.not_cleaned", upload_id=upload.id, error=exc.code)
