"""Uploading in one request, reading, listing and deleting files."""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Query, Request, Response

from headrace.access import AdminOnly, Caller
from headrace.assets import handing_out, service
from headrace.assets.errors import (
    AssetNotFound,
    BytesMissing,
    DigestInvalid,
    DigestMismatch,
    DrawingBusy,
    FormInvalid,
    PageNotFound,
    PreviewNotFound,
    SizeMismatch,
    StorageQuotaExceeded,
    TooManyUploads,
)
from headrace.assets.expiry import purge_unless_in_use
from headrace.assets.inspection.errors import REFUSALS, InspectionBusy
from headrace.assets.inspection.model import MediaType
from headrace.assets.limits import limits_for
from headrace.assets.links import Target
from headrace.assets.model import LONGEST_NAME
from headrace.assets.multipart_form import Form
from headrace.assets.pages import serve_page
from headrace.assets.previews import preview
from headrace.assets.reading import serve
from headrace.assets.routes.dependencies import (
    BINARY,
    BYTES,
    PICTURE,
    AssetIdPath,
    Digest,
    FilesDep,
    Owner,
    PageNumber,
    Reader,
    Writer,
    owner_of,
    pieces_of,
)
from headrace.assets.schemas import AssetOut, LinkIn, LinkOut, StorageUseOut
from headrace.assets.service import Files
from headrace.assets.store import assets as store
from headrace.assets.store.assets import Filter
from headrace.assets.streaming import take
from headrace.assets.uploading import NewUpload
from headrace.database import Database
from headrace.edge.authorization import Again
from headrace.edge.errors import InvalidCursor, RequestTooSlow, TooManyOpenBodies
from headrace.edge.idempotency import ONCE, Once, idempotent
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.storage import StorageFull, StorageUnreachable

router = Router(prefix="/assets", tags=["Files"])

UploadOnce = Annotated[Once, Depends(idempotent("assets.upload"))]
_REFUSED = (
    *(DigestInvalid, DigestMismatch, SizeMismatch, FormInvalid, StorageQuotaExceeded),
    *(TooManyUploads, TooManyOpenBodies, RequestTooSlow, StorageFull, StorageUnreachable),
)
_FORM = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}, "required": ["file"]}


@router.post(
    "",
    status_code=201,
    response_model=AssetOut,
    summary="Upload a file in one request",
    responses=problems(*_REFUSED, *REFUSALS.values(), InspectionBusy, *ONCE),
    openapi_extra={"requestBody": {"content": {**BYTES, "multipart/form-data": {"schema": _FORM}}, "required": True}},
)
async def upload_asset(
    request: Request,
    caller: Writer,
    db: Db,
    files: FilesDep,
    once: UploadOnce,
    sha256: Digest,
    name: Annotated[
        str | None, Query(max_length=LONGEST_NAME, description="The file's name; a form's part brings its own.")
    ] = None,
    strip_location: Annotated[
        bool, Query(description="Remove the place where a picture was taken before it is kept.")
    ] = False,
) -> Response:
    """Send a file as the body, or as `multipart/form-data` with one file. Its content determines its kind: its name
    and `Content-Type` do not matter. A refused file is not kept.

    A file that you have already, byte for byte, takes no more room. Large files are better sent in parts, which can
    continue after an interruption: see *Begin an upload*.
    """
    with files.bodies.hold(user=caller.user_id, address=caller.who.client_ip):
        return await _take(request, caller, db, files, once, NewUpload(name or "", 0, sha256, strip_location))


async def _take(
    request: Request, caller: Caller, db: Database, files: Files, once: Once, wanted: NewUpload
) -> Response:
    body = pieces_of(request)
    kind = request.headers.get("content-type", "")
    size = int(request.headers.get("content-length", "0"))
    if kind.lower().startswith("multipart/form-data"):
        form = Form(body, kind)
        await form.open()
        # How large the file is without the form around it, is known at its end.
        new = replace(wanted, name=wanted.name or form.file_name)
        return await take(files, db, caller, new, form.pieces(), once)
    return await take(files, db, caller, replace(wanted, name=wanted.name or "file", size_bytes=size), body, once)


@router.get("", response_model=Page[AssetOut], summary="List files", responses=problems(InvalidCursor, AdminOnly))
async def list_assets(
    caller: Reader,
    db: Db,
    paging: Paging,
    media_type: MediaType | None = None,
    name: Annotated[str | None, Query(max_length=LONGEST_NAME, description="A part of the name, in any case.")] = None,
    sha256: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$", description="With exactly these bytes.")] = None,
    user_id: Owner = None,
) -> Page[AssetOut]:
    """Files, newest first.

    A page may be short, even empty, without being the last: continue until `next_cursor` is null.
    """
    owner = owner_of(caller, user_id)
    listing = paging.of("assets", owner=owner, everybody=owner is None, media_type=media_type, name=name, sha256=sha256)
    wanted = Filter(owner, media_type, name, sha256)
    async with db.transaction() as tx:
        found = await service.list_assets(tx, caller, wanted, older_than=listing.after, limit=listing.fetch)
    return listing.page(
        found.items, mark=lambda asset: (asset.created_at, asset.id), item=AssetOut.of, resume=found.resume
    )


@router.get("/usage", response_model=StorageUseOut, summary="See how much room is taken")
async def read_usage(caller: Reader, db: Db, files: FilesDep) -> StorageUseOut:
    """How many bytes you have stored, and how many you may."""
    async with db.transaction(readonly=True) as tx:
        limits = await limits_for(tx, files.config, caller.user_id)
        used = await store.stored_bytes(tx, caller.user_id)
    return StorageUseOut(stored_bytes=used, limit_bytes=limits.stored_bytes, largest_file_bytes=limits.file.max_bytes)


@router.get("/{asset_id}", response_model=AssetOut, summary="Read about a file", responses=problems(AssetNotFound))
async def get_asset(asset_id: AssetIdPath, caller: Reader, db: Db) -> AssetOut:
    """One file: its name, its facts, and its expiry."""
    async with db.transaction() as tx:
        return AssetOut.of(await service.get_asset(tx, caller, asset_id))


@router.get(
    "/{asset_id}/content",
    summary="Read a file",
    response_class=Response,
    responses={**BINARY, **problems(AssetNotFound, BytesMissing, StorageUnreachable)},
)
async def read_content(
    request: Request,
    asset_id: AssetIdPath,
    caller: Reader,
    again: Again,
    db: Db,
    files: FilesDep,
    inline: Annotated[bool, Query(description="Let a browser show it; pictures and videos only.")] = False,
) -> Response:
    """The bytes, or one range of them (`Range`); `ETag`, `If-None-Match` and `If-Range` work.

    A caller that loses the right to read it meanwhile receives no more of it: the connection breaks off.
    """
    async with db.transaction() as tx:
        asset = await service.get_asset(tx, caller, asset_id)
    is_allowed = handing_out.may_read_on(db, again, Target.CONTENT, asset.id)
    return await serve(request, files.storage, handing_out.content_of(asset, inline=inline), is_allowed=is_allowed)


@router.get(
    "/{asset_id}/preview",
    summary="Read a file's preview",
    response_class=Response,
    responses={
        200: {"description": "A picture.", "content": {"image/webp": {}}},
        **problems(AssetNotFound, PreviewNotFound, BytesMissing, StorageUnreachable, InspectionBusy),
    },
)
async def read_preview(
    request: Request, asset_id: AssetIdPath, caller: Reader, again: Again, db: Db, files: FilesDep
) -> Response:
    """A small picture of the file, as WebP. It is made when it is first asked for."""
    async with db.transaction() as tx:
        asset = await service.get_asset(tx, caller, asset_id)
    is_allowed = handing_out.may_read_on(db, again, Target.PREVIEW, asset.id)
    return await serve(request, files.storage, await preview(files, db, asset), is_allowed=is_allowed)


@router.get(
    "/{asset_id}/pages/{page}",
    summary="See a page of a file",
    response_class=Response,
    responses={
        **PICTURE,
        **problems(AssetNotFound, PageNotFound, BytesMissing, StorageUnreachable, DrawingBusy, InspectionBusy),
    },
)
async def read_page(
    request: Request, asset_id: AssetIdPath, page: PageNumber, caller: Reader, db: Db, files: FilesDep
) -> Response:
    """One page of a PDF as a WebP picture, 1600 pixels along its longer side; or one slide, where LibreOffice is
    installed: the first of a deck takes some seconds."""
    async with db.transaction() as tx:
        asset = await service.get_asset(tx, caller, asset_id)
    return await serve_page(request, files, handing_out.content_of(asset), page, slides_key=asset.slides_key)


@router.post(
    "/{asset_id}/links",
    status_code=201,
    response_model=LinkOut,
    summary="Make a link to a file",
    responses=problems(AssetNotFound, BytesMissing, StorageUnreachable),
)
async def create_link(asset_id: AssetIdPath, body: LinkIn, caller: Reader, db: Db, files: FilesDep) -> LinkOut:
    """A link that expires. It lets its holder read the file without a credential: it ends with the file, or when its
    time is over (a link of the storage itself only then). Its maker is in the audit trail."""
    async with db.transaction() as tx:
        asset = await service.get_asset(tx, caller, asset_id)
    target = Target.PREVIEW if body.preview else Target.CONTENT
    content = await preview(files, db, asset) if body.preview else handing_out.content_of(asset, inline=body.inline)
    lifetime = await handing_out.link_lifetime(files, body.lifetime)
    link = handing_out.grant(target, asset.id, lifetime=lifetime, inline=body.inline)
    async with db.transaction() as tx:
        await handing_out.record_link(tx, caller.who, service.resource_of(asset), link)
    return LinkOut(url=await handing_out.url_of(files, content, link), expires_at=link.expires_at)


@router.delete("/{asset_id}", status_code=204, summary="Delete a file", responses=problems(AssetNotFound))
async def delete_asset(asset_id: AssetIdPath, caller: Writer, db: Db, files: FilesDep) -> None:
    """Delete a file. It is unreachable from now on, and its bytes are removed. A task at work on it is left to end;
    then they are removed within minutes."""
    async with db.transaction() as tx:
        deleted = await service.delete_asset(tx, caller, asset_id)
    await purge_unless_in_use(files, db, deleted)
