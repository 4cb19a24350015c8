"""A file in parts: begun, sent in any order, by several at once and again after hours, and completed.

The parts go to the API, or straight to the storage by signed links. Completing joins them, checks size and digest of
the whole, inspects it and registers it. The completing process holds a lease: if it dies another takes over, and one
that was only slow finds that the file is no longer its to register.
"""

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from headrace.access import Caller
from headrace.assets.errors import (
    AssetNotFound,
    DigestMismatch,
    DirectUnavailable,
    PartInvalid,
    PartsMissing,
    SizeMismatch,
    UploadBeingCompleted,
    UploadNotFound,
    UploadOver,
)
from headrace.assets.limits import limits_for
from headrace.assets.model import Asset, Part, Received, Upload, UploadMethod, UploadStatus
from headrace.assets.receiving import receive
from headrace.assets.service import Files
from headrace.assets.store import assets, uploads
from headrace.assets.uploading import (
    Arrived,
    EqualGone,
    NewUpload,
    begin,
    clean,
    give_up,
    inspect,
    place,
    register,
    tidy,
)
from headrace.database import Database, Tx
from headrace.errors import HeadraceError, Invalid
from headrace.storage.bucket import Bucket
from headrace.storage.errors import PartsLost
from headrace.storage.folder import explain
from headrace.storage.model import StoredPart

_LEASE = timedelta(seconds=20)  # renewed four times in it; a killed process blocks its upload for no longer
_MAX_NAMED = 100


async def check_direct(files: Files) -> None:
    """``DirectUnavailable`` unless the storage is a bucket whose links can be signed here. Before any transaction: the
    keys of a role are asked for over the network."""
    if files.storage.bucket is None or await files.storage.bucket.signer() is None:
        raise DirectUnavailable


async def begin_parts(tx: Tx, files: Files, caller: Caller, new: NewUpload, *, direct: bool) -> Upload:
    """Begin an upload in parts; ``direct`` ones, after ``check_direct``, are sent to the storage itself."""
    limits = await limits_for(tx, files.config, caller.user_id)
    method = UploadMethod.DIRECT if direct else UploadMethod.PARTS
    return await begin(tx, files, caller, new, method=method, limits=limits)


async def get_upload(tx: Tx, caller: Caller, upload_id: str) -> Upload:
    upload = await uploads.find(tx, upload_id, caller.user_id)
    if upload is None or upload.method is UploadMethod.STREAM:
        raise UploadNotFound
    return upload


async def list_stored(files: Files, db: Database, upload: Upload) -> Sequence[Part]:
    """The parts that are there: what need not be sent again."""
    if upload.method is UploadMethod.DIRECT and upload.status is UploadStatus.OPEN:
        if upload.storage_upload_id is None:
            return []
        return await _list_direct(files, db, upload, upload.storage_upload_id)
    async with db.transaction(readonly=True) as tx:
        return await uploads.list_parts(tx, upload.id)


async def _list_direct(files: Files, db: Database, upload: Upload, storage_upload_id: str) -> Sequence[Part]:
    """The parts in storage. ``SizeMismatch``, and the upload is aborted, if one is larger than announced:
    the announced size was taken from the quota."""
    stored = await _bucket(files).list_parts(upload.multipart_name, storage_upload_id)
    if any(each.number > upload.parts or each.size > upload.size_of_part(each.number) for each in stored):
        await give_up(files, db, upload, code=SizeMismatch.code)
        raise SizeMismatch("A part is larger than announced: the upload was given up.")
    return [Part(each.number, each.size, "", each.etag) for each in stored]


# -- parts


async def put_part(
    files: Files, db: Database, upload: Upload, number: int, body: AsyncIterator[bytes], *, sha256: str | None
) -> Part:
    """Store one part. Sent again, the same happens; the upload is not open: ``UploadOver``."""
    _check_open(upload)
    if upload.method is not UploadMethod.PARTS or not 1 <= number <= upload.parts:
        raise PartInvalid(number=number, parts=upload.parts)
    size = upload.size_of_part(number)
    folder = files.spool / upload.id
    draft = folder / f"draft.{number}.{secrets.token_hex(4)}"
    try:
        received = await _receive_part(files, body, draft, size=size, sha256=sha256)
        part = Part(number, received.size, received.sha256, await _store_part(files, db, upload, number, draft))
    finally:
        await asyncio.to_thread(draft.unlink, missing_ok=True)
    async with db.transaction() as tx:
        if not await uploads.put_part(tx, upload.id, part, lifetime=files.config.upload_lifetime):
            raise UploadOver
    return part


async def _receive_part(
    files: Files, body: AsyncIterator[bytes], draft: Path, *, size: int, sha256: str | None
) -> Received:
    received = await receive(body, draft, most=size, stalled_for=files.config.stalled_for)
    if received.size != size:
        raise PartInvalid(f"This part must have {size} bytes and has {received.size}.", expected=size)
    if sha256 is not None and sha256 != received.sha256:
        raise DigestMismatch(received=received.sha256, announced=sha256)
    return received


async def _store_part(files: Files, db: Database, upload: Upload, number: int, draft: Path) -> str | None:
    if files.storage.bucket is not None:
        name = await storage_upload(files, db, upload)
        return await files.storage.bucket.put_part(upload.multipart_name, name, number, draft)
    try:
        await asyncio.to_thread(_keep, draft, part_file(files, upload, number))
    except OSError as exc:
        raise explain(exc, "The folder for uploads") from exc
    return None


def part_file(files: Files, upload: Upload, number: int) -> Path:
    return files.spool / upload.id / f"part.{number:05}"


def _keep(draft: Path, target: Path) -> None:
    descriptor = os.open(draft, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # what the row says is here must be here after a power cut
    finally:
        os.close(descriptor)
    draft.replace(target)


async def storage_upload(files: Files, db: Database, upload: Upload) -> str:
    """The storage's own name for this upload; begun there with the first part."""
    if upload.storage_upload_id is not None:
        return upload.storage_upload_id
    bucket = _bucket(files)
    begun = await bucket.begin(upload.multipart_name)
    async with db.transaction() as tx:
        if await uploads.set_storage_upload(tx, upload.id, begun):
            return begun
        current = await uploads.find(tx, upload.id, upload.user_id)
    await bucket.abort(upload.multipart_name, begun)  # another part was faster
    if current is None or current.storage_upload_id is None:
        raise UploadOver
    return current.storage_upload_id


async def sign_parts(
    files: Files, db: Database, upload: Upload, numbers: Sequence[int], *, expires_in: timedelta
) -> tuple[dict[int, str], datetime]:
    """Links to send these parts of a direct upload to."""
    _check_open(upload)
    if upload.method is not UploadMethod.DIRECT:
        raise DirectUnavailable("This upload was not begun with `direct`: send its parts to the API.")
    if any(not 1 <= number <= upload.parts for number in numbers):
        raise PartInvalid(parts=upload.parts)
    if upload.storage_upload_id is not None:
        await _list_direct(files, db, upload, upload.storage_upload_id)
    name = await storage_upload(files, db, upload)
    bucket = _bucket(files)
    if (longest := await bucket.max_link_lifetime()) is not None:
        expires_in = min(expires_in, longest)
    async with db.transaction() as tx:
        if not await uploads.renew(tx, upload.id, max(files.config.upload_lifetime, expires_in)):
            raise UploadOver
        # A link must not outlive its upload: bytes that are sent after that have no owner.
        until: datetime = await tx.fetchval(LINK_UNTIL, upload.id, expires_in)
        left: timedelta = await tx.fetchval("SELECT $1::timestamptz - now()", until)
    sizes = {each: upload.size_of_part(each) for each in numbers}
    left = max(left, timedelta(seconds=1))
    return await bucket.part_links(upload.multipart_name, name, sizes, expires_in=left), until


LINK_UNTIL = "SELECT least(now() + $2::interval, expire_at) FROM headrace.uploads WHERE id = $1"


def _check_open(upload: Upload) -> None:
    if upload.status is UploadStatus.COMPLETING:
        raise UploadBeingCompleted
    if upload.status is not UploadStatus.OPEN:
        raise UploadOver


def _bucket(files: Files) -> Bucket:
    if files.storage.bucket is None:
        raise DirectUnavailable
    return files.storage.bucket


async def abort(files: Files, db: Database, caller: Caller, upload_id: str) -> None:
    """Give an upload up: its parts go."""
    async with db.transaction() as tx:
        upload = await get_upload(tx, caller, upload_id)
        aborted = await uploads.abort(tx, upload.id, error_code="aborted")
    if aborted is None:
        raise UploadBeingCompleted if upload.status is UploadStatus.COMPLETING else UploadOver
    await clean(files, db, aborted)


# -- completing


async def complete(files: Files, db: Database, caller: Caller, upload_id: str) -> Asset:
    """Make a file of the parts; repeated, it gives the same file.

    ``PartsMissing`` names the missing ones. A file that is refused takes its upload along; a storage that does not
    answer leaves it as it was.
    """
    token = secrets.token_hex(16)
    async with db.transaction() as tx:
        existing = await get_upload(tx, caller, upload_id)
        if existing.status is UploadStatus.COMPLETED:
            return await _completed(tx, existing)
        upload = await uploads.begin_completing(tx, upload_id, caller.user_id, token=token, lease=_LEASE)
    if upload is None:
        raise UploadOver if existing.status is UploadStatus.ABORTED else UploadBeingCompleted
    try:
        async with _held(db, upload, token):
            return await _complete(files, db, caller, upload, token)
    except Invalid as exc:
        await give_up(files, db, upload, token=token, code=exc.code)
        raise
    except BaseException as exc:
        await _let_go(db, upload, token, exc)
        raise


async def _completed(tx: Tx, upload: Upload) -> Asset:
    asset = await assets.find(tx, upload.asset_id)
    if asset is None:
        raise AssetNotFound
    return asset


@asynccontextmanager
async def _held(db: Database, upload: Upload, token: str) -> AsyncIterator[None]:
    """Renew the lease while the block runs: a large file takes its time."""

    async def renew() -> None:
        while True:
            await asyncio.sleep(_LEASE.total_seconds() / 4)
            async with db.transaction() as tx:
                await uploads.renew_lease(tx, upload.id, token=token, lease=_LEASE)

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.wait([renewing])


async def _let_go(db: Database, upload: Upload, token: str, exc: BaseException) -> None:
    code = exc.code if isinstance(exc, HeadraceError) else "completing_failed"
    try:
        async with db.transaction() as tx:
            await uploads.reopen(tx, upload.id, token=token, error_code=code)
    except HeadraceError:
        pass  # the lease ends by itself


async def _complete(files: Files, db: Database, caller: Caller, upload: Upload, token: str) -> Asset:
    whole = files.spool / upload.id / f"whole.{token}"
    try:
        await asyncio.to_thread(whole.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise explain(exc, "The folder for uploads") from exc
    try:
        joined_by_storage = files.storage.bucket is not None
        received = await (_join_stored if joined_by_storage else _join_files)(files, db, upload, whole)
        # The inspected bytes are the stored ones: of a direct upload the bytes here, whatever is sent there by now.
        in_storage = joined_by_storage and upload.method is not UploadMethod.DIRECT
        async with db.transaction(readonly=True) as tx:
            limits = await limits_for(tx, files.config, upload.user_id)
        arrived = await inspect(files, db, upload, received, limits=limits, stored=in_storage)
        arrived.token = token
        asset = await _register(files, db, caller, arrived)
        await tidy(files, arrived)
        return asset
    finally:
        await asyncio.to_thread(whole.unlink, missing_ok=True)


async def _register(files: Files, db: Database, caller: Caller, arrived: Arrived) -> Asset:
    while True:
        await place(files, arrived)
        try:
            async with db.transaction() as tx:
                return await register(tx, files, caller, arrived)
        except EqualGone:
            continue


async def _join_files(files: Files, db: Database, upload: Upload, whole: Path) -> Received:
    """Write the parts one after the other, each checked against its record."""
    async with db.transaction(readonly=True) as tx:
        there = {part.number: part for part in await uploads.list_parts(tx, upload.id)}
    _check_all(upload, there)
    try:
        size, digest, broken = await asyncio.to_thread(_join, files, upload, there, whole)
    except OSError as exc:
        raise explain(exc, "The folder for uploads") from exc
    if broken:
        async with db.transaction() as tx:
            await tx.execute(FORGET_PARTS, upload.id, broken)
        raise PartsMissing(missing=broken[:_MAX_NAMED])
    return Received(whole, size, digest)


FORGET_PARTS = "DELETE FROM headrace.upload_parts WHERE upload_id = $1 AND number = ANY ($2)"


def _join(files: Files, upload: Upload, there: dict[int, Part], whole: Path) -> tuple[int, str, list[int]]:
    size, digest, broken = 0, hashlib.sha256(), []
    with whole.open("xb") as target:
        for number, part in sorted(there.items()):
            own = hashlib.sha256()
            try:
                with part_file(files, upload, number).open("rb") as source:
                    while piece := source.read(1024 * 1024):
                        own.update(piece)
                        digest.update(piece)
                        size += target.write(piece)
            except FileNotFoundError:
                pass
            if own.hexdigest() != part.sha256:
                broken.append(number)
    return size, digest.hexdigest(), broken


async def _join_stored(files: Files, db: Database, upload: Upload, whole: Path) -> Received:
    """Have the storage join the parts, and read the whole back: the inspected bytes are the stored ones."""
    bucket, name = _bucket(files), upload.multipart_name
    if upload.storage_upload_id is None:
        raise PartsMissing(missing=list(range(1, min(upload.parts, _MAX_NAMED) + 1)))
    if upload.method is UploadMethod.DIRECT:
        try:
            stored = await bucket.list_parts(name, upload.storage_upload_id)
        except PartsLost:
            parts = []  # put together by an earlier try, or lost
        else:
            if any(part.number > upload.parts or part.size > upload.size_of_part(part.number) for part in stored):
                raise SizeMismatch("A part is larger than announced.")
            parts = list(stored)
            _check_all(upload, {part.number: Part(part.number, part.size, "", part.etag) for part in parts})
    else:
        async with db.transaction(readonly=True) as tx:
            noted = await uploads.list_parts(tx, upload.id)
        _check_all(upload, {part.number: part for part in noted})
        parts = [StoredPart(part.number, part.size_bytes, part.etag or "") for part in noted]
    await bucket.complete(name, upload.storage_upload_id, parts)
    digest = await files.storage.fetch(name, whole)
    return Received(whole, (await asyncio.to_thread(whole.stat)).st_size, digest)


def _check_all(upload: Upload, there: dict[int, Part]) -> None:
    missing = [
        number
        for number in range(1, upload.parts + 1)
        if number not in there or there[number].size_bytes != upload.size_of_part(number)
    ]
    if missing:
        raise PartsMissing(f"{len(missing)} of {upload.parts} parts are missing.", missing=missing[:_MAX_NAMED])
