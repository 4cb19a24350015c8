"""Single pages of PDFs and slides, large enough to see a mark and to draw a box around it; drawn for each request.

Slides are drawn by LibreOffice where it is installed: once into a PDF, which is kept beside the previews.
"""

import asyncio

from fastapi import Request, Response

from headrace.assets.content import Content
from headrace.assets.drawing import owner_of
from headrace.assets.errors import PageNotFound
from headrace.assets.inspection.errors import FileRefused
from headrace.assets.inspection.model import SLIDES
from headrace.assets.previews import MIME_TYPE, local_copy, preview_name, scratch
from headrace.assets.reading import matches
from headrace.assets.service import Files
from headrace.storage import ObjectNotFound

PDF = "application/pdf"
_MAX_SIDE_PX = 1600
_MAX_BYTES = 256 * 1024**2  # of slides that are kept as a PDF


async def serve_page(request: Request, files: Files, content: Content, number: int, *, slides_key: str) -> Response:
    """Page ``number`` as a picture. A browser that has it already gets 304, and nothing is drawn. ``slides_key`` is
    where slides are kept once they are drawn."""
    if content.mime_type != PDF and content.mime_type not in SLIDES:
        raise PageNotFound
    etag = f"{content.etag}-{number}"
    headers = {"ETag": f'"{etag}"', "Cache-Control": "private, no-cache", "Cross-Origin-Resource-Policy": "same-site"}
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    name = content.name if content.mime_type == PDF else await _slides(files, content, preview_name(slides_key))
    async with scratch(files) as folder:
        source, target = await local_copy(files, name, folder), folder / "page.webp"
        tenant = content.name  # a child that draws a file's pages opens no other file
        try:
            async with files.drawing.attempt(etag):
                drawn = await files.inspector.draw_page(
                    source, number, target, longest_side=_MAX_SIDE_PX, tenant=tenant, owner=owner_of(content.name)
                )
        except FileRefused:  # damaged, or locked: it was accepted, but cannot be shown
            drawn = False
        if not drawn:
            raise PageNotFound
        return Response(await asyncio.to_thread(target.read_bytes), headers=headers, media_type=MIME_TYPE)


async def _slides(files: Files, content: Content, kept: str) -> str:
    """The place of the slides' PDF: made now if missing. Viewers of a deck with a PDF wait for no others."""
    if not await _is_kept(files, content, kept):
        async with files.drawing.deck(kept):
            if not await _is_kept(files, content, kept):
                async with files.drawing.turn(kept):
                    await _draw_slides(files, content, kept)
    return kept


async def _is_kept(files: Files, content: Content, kept: str) -> bool:
    try:
        await files.storage.size_of(kept)
    except ObjectNotFound:
        if files.drawing.has_failed(content.etag):
            raise PageNotFound(_NOT_DRAWN) from None
        return False
    return True


async def _draw_slides(files: Files, content: Content, kept: str) -> None:
    async with scratch(files) as folder:
        source, target = await local_copy(files, content.name, folder), folder / "slides.pdf"
        kind = SLIDES[content.mime_type]
        try:
            made = await files.inspector.as_pdf(source, kind, target, folder=folder, tenant=content.name)
        except FileRefused:
            files.drawing.note_failed(content.etag)
            raise PageNotFound(_NOT_DRAWN) from None
        if not made:
            raise PageNotFound(_NO_OFFICE)
        if target.stat().st_size > _MAX_BYTES:  # its storage is charged to no user
            files.drawing.note_failed(content.etag)
            raise PageNotFound(_NOT_DRAWN)
        await files.storage.move_in(kept, target)


_NOT_DRAWN = "These slides cannot be drawn."
_NO_OFFICE = "Slides are drawn where LibreOffice is installed, and it is not here."
