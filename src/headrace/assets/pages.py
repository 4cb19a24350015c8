"""Single pages of PDFs, large enough to see a mark and to draw a box around it; drawn anew each time, and not kept."""

import asyncio

from fastapi import Request, Response

from headrace.assets.content import Content
from headrace.assets.errors import PageNotFound
from headrace.assets.inspection.errors import FileRefused
from headrace.assets.previews import MIME_TYPE, local_copy, scratch
from headrace.assets.reading import matches
from headrace.assets.service import Files

PDF = "application/pdf"
_LONGEST_SIDE = 1600


async def serve_page(request: Request, files: Files, content: Content, number: int) -> Response:
    """Page ``number`` of a PDF as a picture. A browser that has it already is told so, and nothing is drawn."""
    if content.mime_type != PDF:
        raise PageNotFound
    etag = f"{content.etag}-{number}"
    headers = {"ETag": f'"{etag}"', "Cache-Control": "private, no-cache", "Cross-Origin-Resource-Policy": "same-site"}
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    async with scratch(files) as folder:
        source, target = await local_copy(files, content.name, folder), folder / "page.webp"
        tenant = content.name  # a child that draws a file's pages opens no other file
        try:
            drawn = await files.inspector.draw_page(source, number, target, longest_side=_LONGEST_SIDE, tenant=tenant)
        except FileRefused:  # damaged, or locked: it was taken, but nothing of it can be shown
            drawn = False
        if not drawn:
            raise PageNotFound
        return Response(await asyncio.to_thread(target.read_bytes), headers=headers, media_type=MIME_TYPE)
