"""From arrived bytes to a file: inspected, stored, and recorded in one transaction.

The order makes every crash harmless. The upload's row exists before its first byte, and goes (or is
completed) in the transaction that inserts the file. Aborting an upload first moves its row to ABORTED, which
only one process can do, and only then removes bytes: so the bytes of an existing file are never removed.
"""

import asyncio
import hashlib
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from headrace import ids, logs
from headrace.access import Caller
from headrace.assets import other_types
from headrace.assets.errors import DigestMismatch, StorageQuotaExceeded, TooManyUploads, UploadNotFound
from headrace.assets.inspection.errors import FileTooLarge, FileUnknown
from headrace.assets.inspection.model import Facts
from headrace.assets.limits import UserLimits
from headrace.assets.model import (
    Asset,
    AssetId,
    Received,
    Upload,
    UploadId,
    UploadMethod,
    clean_name,
    media_key,
    shared_key,
)
from headrace.assets.receiving import check_size
from headrace.assets.service import STREAM_LIFETIME, Files, tell_uploaded
from headrace.assets.store import assets, uploads
from headrace.database import Database, Tx
from headrace.errors import HeadraceError, reason_of
from headrace.storage import ObjectNotFound

log = logs.get(__name__)

MAX_OPEN_UPLOADS = 500  # of one user


class EqualGone(Exception):
    """The file whose bytes were to be shared was deleted meanwhile: they must be stored after all."""


@dataclass(frozen=True, slots=True)
class NewUpload:
    """What a client says before it sends."""

    name: str
    size_bytes: int  # 0: not announced
    sha256: str | None = None
    strip_location: bool = False


async def begin(
    tx: Tx, files: Files, caller: Caller, new: NewUpload, *, method: UploadMethod, limits: UserLimits
) -> Upload:
    """Take room for an upload; ``StorageQuotaExceeded`` or ``FileTooLarge`` before a byte was sent."""
    if limits.file.max_bytes is not None and new.size_bytes > limits.file.max_bytes:
        raise FileTooLarge(size_bytes=new.size_bytes, max_bytes=limits.file.max_bytes)
    await check_quota(tx, limits, caller.user_id, new.size_bytes)
    if await uploads.count_open(tx, caller.user_id) >= MAX_OPEN_UPLOADS:
        raise TooManyUploads
    asset_id = AssetId(ids.new("ast"))
    streamed = method is UploadMethod.STREAM
    if streamed:
        # If PostgreSQL dies and forgets it, the request that waits for it fails at its end: no disk needed here.
        await tx.execute("SET LOCAL synchronous_commit TO off")
    return await uploads.insert(
        tx,
        upload_id=UploadId(ids.new("upl")),
        user_id=caller.user_id,
        asset_id=asset_id,
        method=method,
        origin_name=clean_name(new.name),
        size_bytes=new.size_bytes,
        sha256=new.sha256,
        part_bytes=None if streamed else part_bytes(files, new.size_bytes),
        key=media_key(caller.user_id, asset_id),
        strip_location=new.strip_location,
        lifetime=STREAM_LIFETIME if streamed else files.config.upload_lifetime,
    )


def part_bytes(files: Files, size: int) -> int:
    """The configured size, or more where the file would have too many parts; in whole mebibytes."""
    mebibyte = 1024 * 1024
    smallest = -(-size // (9_000 * mebibyte)) * mebibyte
    return max(files.config.part_bytes, smallest)


async def check_quota(tx: Tx, limits: UserLimits, user_id: str, size: int) -> None:
    limit = limits.stored_bytes
    if limit is None:
        return
    await assets.lock_quota(tx, user_id)
    used = await assets.stored_bytes(tx, user_id)
    if used + size > limit:
        raise StorageQuotaExceeded(stored_bytes=used, limit_bytes=limit, size_bytes=size)


@dataclass(slots=True)
class Arrived:
    """An upload whose bytes are here, on its way to being a file."""

    upload: Upload
    received: Received
    facts: Facts
    limits: UserLimits
    stored: bool = False  # whether its bytes lie under its own name in storage
    shared: bool = False  # whether the user has an equal file, so that they need not be stored
    lost: str | None = None  # the object of an equal file whose bytes are missing: it is not joined
    token: str | None = None  # of the process that completes it
    asset: Asset | None = None


async def inspect(
    files: Files, db: Database, upload: Upload, received: Received, *, limits: UserLimits, stored: bool = False
) -> Arrived:
    """Inspect the received bytes; a refusal is a ``FileRefused``, ``DigestMismatch`` or ``SizeMismatch``."""
    if upload.size_bytes:
        check_size(received, upload.size_bytes)
    if upload.sha256 is not None and upload.sha256 != received.sha256:
        raise DigestMismatch(received=received.sha256, announced=upload.sha256)
    equal = await assets.find_equal_alone(db, upload.user_id, received.sha256, received.size)
    facts = await _facts(files, upload, received, limits)
    limits.check(facts.media_type, received.size)
    if upload.strip_location:
        freed = received.path.with_name(f"{received.path.name}.freed")
        if await files.inspector.strip_location(received.path, freed, tenant=upload.user_id):
            await asyncio.to_thread(freed.replace, received.path)
            received, stored, equal = await asyncio.to_thread(_measure, received), False, None
    arrived = Arrived(upload, received, facts, limits, stored)
    if equal is not None:
        await _check_equal(files, arrived, equal)
    return arrived


async def _facts(files: Files, upload: Upload, received: Received, limits: UserLimits) -> Facts:
    """The facts of the file. Other files than media are accepted where the settings name their type."""
    try:
        return await files.inspector.inspect(received.path, limits=limits.file, tenant=upload.user_id)
    except FileUnknown:
        if upload.strip_location or not files.config.other_types:
            raise
        facts = await asyncio.to_thread(other_types.facts_of, received.path)
        if not other_types.takes(files.config.other_types, facts.mime_type):
            raise
        return facts


async def _check_equal(files: Files, arrived: Arrived, equal: Asset) -> None:
    """Share the bytes of an equal file only if they are there: who sends a lost file again must get it back."""
    try:
        arrived.shared = await files.storage.size_of(equal.object_name) == equal.size_bytes
    except ObjectNotFound:
        arrived.shared = False
    arrived.lost = None if arrived.shared else equal.object_name


def _measure(received: Received) -> Received:
    with received.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return replace(received, size=received.path.stat().st_size, sha256=digest)


async def place(files: Files, arrived: Arrived) -> None:
    """Store the bytes, unless an equal file of the user has them already."""
    if not arrived.shared and not arrived.stored:
        await files.storage.move_in(arrived.upload.object_name, arrived.received.path)
        arrived.stored = True


async def register(tx: Tx, files: Files, caller: Caller, arrived: Arrived) -> Asset:
    """Write the file down and end the upload, in one transaction; ``EqualGone``: ``place`` it again.

    ``UploadNotFound`` when the upload was aborted meanwhile: then this must not become a file.
    """
    upload, received = arrived.upload, arrived.received
    await assets.lock_bytes(tx, upload.user_id, received.sha256)
    equal = await assets.find_equal(tx, upload.user_id, received.sha256, received.size)
    if equal is not None and equal.object_name == arrived.lost:
        equal = None
    if equal is None and not arrived.stored:
        arrived.shared = False
        raise EqualGone
    ended = (
        await uploads.finish_stream(tx, upload.id)
        if arrived.token is None
        else await uploads.complete(tx, upload.id, token=arrived.token, remember=files.config.upload_lifetime)
    )
    if not ended:
        raise UploadNotFound
    if equal is None and received.size > upload.size_bytes:
        await check_quota(tx, arrived.limits, upload.user_id, received.size)
    asset = await assets.insert(
        tx,
        asset_id=upload.asset_id,
        user_id=upload.user_id,
        media_type=arrived.facts.media_type,
        origin_name=upload.origin_name,
        mime_type=arrived.facts.mime_type,
        size_bytes=received.size,
        sha256=received.sha256,
        bucket=upload.storage_bucket,
        key=upload.storage_key if equal is None else shared_key(equal.storage_key, upload.asset_id),
        meta=meta_of(arrived.facts),
        keep=arrived.limits.keep_originals,
    )
    await tell_uploaded(tx, caller.who, asset)
    arrived.asset = asset
    return asset


def meta_of(facts: Facts) -> dict[str, Any]:
    """The facts of the inspection that are stored with the file."""
    values = asdict(facts)
    del values["media_type"], values["mime_type"]
    return {name: value for name, value in values.items() if value is not None}


async def tidy(files: Files, arrived: Arrived) -> None:
    """After the commit: what this upload has left that is not part of a file."""
    with suppress(HeadraceError):  # the sweep finds it
        if arrived.stored and arrived.asset is not None and arrived.asset.storage_key != arrived.upload.storage_key:
            await files.storage.delete(arrived.upload.object_name)
        if arrived.upload.multipart_name != arrived.upload.object_name:
            await files.storage.delete(arrived.upload.multipart_name)
    if arrived.upload.method is UploadMethod.STREAM and arrived.stored:
        return  # the spooled bytes are the file now
    await forget_spooled(files, arrived.upload)


async def give_up(files: Files, db: Database, upload: Upload, *, token: str | None = None, code: str) -> None:
    """Remove an upload and its bytes, unless it has become a file or is claimed by another process. Never raises: the
    sweep does what fails here."""
    try:
        async with db.transaction() as tx:
            aborted = await uploads.abort(tx, upload.id, token=token, error_code=code)
        if aborted is not None:
            await clean(files, db, aborted)
    except (HeadraceError, OSError) as exc:
        log.warning("upload.left_to_the_sweep", upload_id=upload.id, error=reason_of(exc))


async def clean(files: Files, db: Database, upload: Upload) -> None:
    """Remove the bytes of an aborted upload, then its row."""
    await forget_spooled(files, upload)
    bucket = files.storage.bucket
    if bucket is not None and upload.storage_upload_id is not None:
        await bucket.abort(upload.multipart_name, upload.storage_upload_id)
    for name in {upload.object_name, upload.multipart_name}:
        await files.storage.delete(name)
    async with db.transaction() as tx:
        await uploads.forget(tx, upload.id)


async def forget_spooled(files: Files, upload: Upload) -> None:
    """Parts that lie on this machine, and whatever was written on the way."""
    spooled = files.spool / upload.id  # a file of one request, or a folder of parts

    def remove() -> None:
        if spooled.is_dir():
            shutil.rmtree(spooled, ignore_errors=True)
        else:
            spooled.unlink(missing_ok=True)

    await asyncio.to_thread(remove)
