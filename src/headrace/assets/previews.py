"""Small pictures of files, each made once, at the first request."""

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import TypeAdapter

from headrace.assets.content import Content
from headrace.assets.errors import AssetNotFound, BytesMissing, PreviewNotFound
from headrace.assets.inspection.model import Facts, MediaType
from headrace.assets.model import Asset, Kind
from headrace.assets.service import Files
from headrace.assets.store import assets
from headrace.database import Database
from headrace.storage import ObjectNotFound
from headrace.storage.folder import explain

MIME_TYPE = "image/webp"
_FACTS = TypeAdapter(Facts)


def preview_name(key: str) -> str:
    return f"{Kind.PREVIEW}/{key}"


async def preview(files: Files, db: Database, asset: Asset) -> Content:
    """The preview of a file, made now if it is not there; ``PreviewNotFound`` for a file that is no media."""
    if asset.media_type == MediaType.OTHER:
        raise PreviewNotFound
    key = asset.preview_key or await _make(files, db, asset)
    size = await _size(files, key)
    if size is None:  # swept, or lost: it can be made again
        key = await _make(files, db, asset)
        size = await files.storage.size_of(preview_name(key))
    return Content(preview_name(key), size, MIME_TYPE, f"{asset.sha256}-p", f"{asset.origin_name}.webp", inline=True)


async def _size(files: Files, key: str) -> int | None:
    try:
        return await files.storage.size_of(preview_name(key))
    except ObjectNotFound:
        return None


async def _make(files: Files, db: Database, asset: Asset) -> str:
    key = f"{asset.user_id}/{asset.id}.webp"
    facts = _FACTS.validate_python(
        {**(asset.meta_json or {}), "media_type": asset.media_type, "mime_type": asset.mime_type}
    )
    async with scratch(files) as folder, files.drawing.attempt(f"{asset.sha256} preview"):
        target = folder / "preview.webp"
        source = await local_copy(files, asset.object_name, folder)
        await files.inspector.preview(
            source, facts, target, longest_side=files.config.preview_side, tenant=asset.user_id
        )
        await files.storage.move_in(preview_name(key), target)
    # Two simultaneous requests make the same picture under the same name.
    async with db.transaction() as tx:
        if not await assets.set_preview(tx, asset.id, key):
            raise AssetNotFound  # deleted meanwhile: the sweep takes the picture
    return key


@asynccontextmanager
async def at_hand(files: Files, asset: Asset) -> AsyncIterator[Path]:
    """The file on this machine, to be read and not changed."""
    async with scratch(files) as folder:
        yield await local_copy(files, asset.object_name, folder)


async def local_copy(files: Files, name: str, folder: Path) -> Path:
    """Where an object can be read as a file: where it lies, or a copy of it in ``folder``."""
    if files.storage.folder is not None:
        try:
            await files.storage.size_of(name)
        except ObjectNotFound as exc:
            raise BytesMissing from exc
        return files.storage.folder.path(name)
    copy = folder / "original"
    try:
        await files.storage.fetch(name, copy)
    except ObjectNotFound as exc:
        raise BytesMissing from exc
    return copy


@asynccontextmanager
async def scratch(files: Files) -> AsyncIterator[Path]:
    """A folder for one picture in the making."""
    folder = files.spool / f"preview.{secrets.token_hex(8)}"
    try:
        await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True)
    except OSError as exc:
        raise explain(exc, "The folder for uploads") from exc
    try:
        yield folder
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
