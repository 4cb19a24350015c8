"""Uploading in parts."""

from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Path, Request, Response

from headrace.assets import parts
from headrace.assets.errors import (
    DigestInvalid,
    DigestMismatch,
    DirectUnavailable,
    PartInvalid,
    PartsMissing,
    SizeMismatch,
    StorageQuotaExceeded,
    TooManyUploads,
    UploadBeingCompleted,
    UploadNotFound,
    UploadOver,
)
from headrace.assets.inspection.errors import REFUSALS, FileTooLarge, InspectionBusy
from headrace.assets.routes.dependencies import BYTES, Digest, FilesDep, Reader, UploadIdPath, Writer, pieces_of
from headrace.assets.schemas import (
    AssetOut,
    PartLinkOut,
    PartLinksIn,
    PartLinksOut,
    PartOut,
    UploadIn,
    UploadItemOut,
    UploadOut,
)
from headrace.assets.store import uploads as store
from headrace.assets.uploading import NewUpload
from headrace.database import Tx
from headrace.edge.errors import InvalidCursor, RequestTooSlow, TooManyOpenBodies
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.storage import StorageFull, StorageUnreachable

router = Router(prefix="/uploads", tags=["Files"])

BeginOnce = Annotated[Once, Depends(idempotent("uploads.create"))]
PartNumber = Annotated[int, Path(ge=1, le=10_000, description="From 1 on.", examples=[1])]
_OPEN = (UploadNotFound, UploadOver, UploadBeingCompleted)


@router.post(
    "",
    status_code=201,
    response_model=UploadOut,
    summary="Begin an upload",
    responses=problems(StorageQuotaExceeded, TooManyUploads, FileTooLarge, DirectUnavailable, *ONCE),
)
async def begin_upload(body: UploadIn, caller: Writer, db: Db, files: FilesDep, once: BeginOnce) -> Response:
    """Begin an upload in parts: for large files, and for lines that break. Send each part to `…/parts/{number}`, in any
    order, several at once and again if need be; then complete it. `GET` tells after an interruption which parts are
    there. An upload that received nothing for `HEADRACE_FILES_UPLOAD_LIFETIME` is aborted.

    With `direct` the parts go straight to the storage: ask for `…/links` and PUT each part there.
    """
    sha256 = body.sha256.lower() if body.sha256 else None
    new = NewUpload(body.name, body.size_bytes, sha256, body.strip_location)

    if body.direct:
        await parts.check_direct(files)

    async def act(tx: Tx) -> Answer:
        upload = await parts.begin_parts(tx, files, caller, new, direct=body.direct)
        return Answer(UploadOut.with_parts(upload, ()), status=201, headers={"Location": f"/v1/uploads/{upload.id}"})

    return await once.run(db, act)


@router.get("", response_model=Page[UploadItemOut], summary="List uploads under way", responses=problems(InvalidCursor))
async def list_uploads(caller: Reader, db: Db, paging: Paging) -> Page[UploadItemOut]:
    """Your uploads in parts that are not completed, newest first."""
    listing = paging.of("uploads", owner=caller.user_id)
    async with db.transaction(readonly=True) as tx:
        uploads = await store.list_uploads(tx, caller.user_id, older_than=listing.after, limit=listing.fetch)
    return listing.page(uploads, mark=lambda upload: (upload.created_at, upload.id), item=UploadItemOut.of)


@router.get(
    "/{upload_id}",
    response_model=UploadOut,
    summary="Read an upload",
    responses=problems(UploadNotFound, SizeMismatch, StorageUnreachable),
)
async def get_upload(upload_id: UploadIdPath, caller: Reader, db: Db, files: FilesDep) -> UploadOut:
    """An upload, and which of its parts are there."""
    async with db.transaction(readonly=True) as tx:
        upload = await parts.get_upload(tx, caller, upload_id)
    return UploadOut.with_parts(upload, await parts.list_stored(files, db, upload))


@router.put(
    "/{upload_id}/parts/{number}",
    response_model=PartOut,
    summary="Send a part",
    responses=problems(
        *_OPEN,
        PartInvalid,
        DigestInvalid,
        DigestMismatch,
        RequestTooSlow,
        StorageFull,
        StorageUnreachable,
        TooManyOpenBodies,
    ),
    openapi_extra={"requestBody": {"content": BYTES, "required": True}},
)
async def put_part(
    request: Request,
    upload_id: UploadIdPath,
    number: PartNumber,
    caller: Writer,
    db: Db,
    files: FilesDep,
    sha256: Digest,
) -> PartOut:
    """Send one part as the body: `part_bytes` bytes, the last one the rest. Sent again, it is replaced."""
    async with db.transaction(readonly=True) as tx:
        upload = await parts.get_upload(tx, caller, upload_id)
    with files.bodies.hold(user=caller.user_id, address=caller.who.client_ip):
        return PartOut.of(await parts.put_part(files, db, upload, number, pieces_of(request), sha256=sha256))


@router.post(
    "/{upload_id}/links",
    status_code=201,
    response_model=PartLinksOut,
    summary="Sign links for parts",
    responses=problems(*_OPEN, PartInvalid, SizeMismatch, DirectUnavailable, StorageUnreachable),
)
async def sign_parts(
    upload_id: UploadIdPath, body: PartLinksIn, caller: Writer, db: Db, files: FilesDep
) -> PartLinksOut:
    """Links of the storage to PUT parts of a direct upload to, each for exactly the bytes of its part
    (`Content-Length` is signed). They can be asked for again, for seven days from the beginning of the upload."""
    async with db.transaction(readonly=True) as tx:
        upload = await parts.get_upload(tx, caller, upload_id)
    lifetime = files.config.link_lifetime if body.expires_in is None else timedelta(seconds=body.expires_in)
    links, until = await parts.sign_parts(files, db, upload, body.numbers, expires_in=lifetime)
    return PartLinksOut(links=[PartLinkOut(number=each, url=url) for each, url in links.items()], expires_at=until)


@router.post(
    "/{upload_id}/complete",
    response_model=AssetOut,
    summary="Complete an upload",
    responses=problems(
        *_OPEN,
        PartsMissing,
        SizeMismatch,
        DigestMismatch,
        StorageQuotaExceeded,
        *REFUSALS.values(),
        InspectionBusy,
        StorageFull,
        StorageUnreachable,
    ),
)
async def complete_upload(upload_id: UploadIdPath, caller: Writer, db: Db, files: FilesDep) -> AssetOut:
    """Make a file of the parts: size and digest are checked, and its content is looked into. Asked again, the answer is
    the same file. A file that is refused takes its upload along."""
    return AssetOut.of(await parts.complete(files, db, caller, upload_id))


@router.delete(
    "/{upload_id}", status_code=204, summary="Abort an upload", responses=problems(*_OPEN, StorageUnreachable)
)
async def abort_upload(upload_id: UploadIdPath, caller: Writer, db: Db, files: FilesDep) -> None:
    """Give an upload up; its parts are removed."""
    await parts.abort(files, db, caller, upload_id)
