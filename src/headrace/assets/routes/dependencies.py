"""What these routes are given."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request
from starlette.requests import ClientDisconnect

from headrace.access import Caller, Scope
from headrace.assets import digests
from headrace.assets.errors import UploadBroken
from headrace.assets.schemas import ASSET_ID, UPLOAD_ID
from headrace.assets.service import EVERYBODY, Files
from headrace.edge.authorization import scoped

Reader = Annotated[Caller, Depends(scoped(Scope.FILES_READ))]
Writer = Annotated[Caller, Depends(scoped(Scope.FILES_WRITE))]
AssetIdPath = Annotated[str, Path(max_length=64, examples=[ASSET_ID])]
PageNumber = Annotated[int, Path(ge=1, le=100_000, description="Counted from 1.", examples=[1])]
UploadIdPath = Annotated[str, Path(max_length=64, examples=[UPLOAD_ID])]
Owner = Annotated[
    str | None, Query(max_length=64, description="Whose, for administrators: a user's id, or `*` for everybody's.")
]

BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
BINARY: dict[int | str, dict[str, Any]] = {
    200: {"description": "The bytes.", "content": BYTES},
    206: {"description": "The range that was asked for.", "content": BYTES},
    304: {"description": "It is still what `If-None-Match` names."},
    416: {"description": "`range_not_satisfiable`: The file has no bytes in this range."},
}

PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"description": "A picture.", "content": {"image/webp": {}}},
    304: {"description": "It is still what `If-None-Match` names."},
}


async def _files(request: Request) -> Files:
    files = request.state.files
    assert isinstance(files, Files)
    return files


FilesDep = Annotated[Files, Depends(_files)]


async def _digest(
    content_digest: Annotated[
        str | None,
        Header(
            alias="Content-Digest",
            max_length=1024,
            description="RFC 9530: `sha-256=:<base64>:`. What arrives must have it.",
        ),
    ] = None,
    sha256: Annotated[str | None, Query(max_length=64, description="The same as 64 hexadecimal digits.")] = None,
) -> str | None:
    return digests.announced(content_digest, sha256)


Digest = Annotated[str | None, Depends(_digest)]


async def pieces_of(request: Request) -> AsyncIterator[bytes]:
    """The body as it comes. A client that hangs up is no error of ours."""
    try:
        async for piece in request.stream():
            yield piece
    except ClientDisconnect:
        raise UploadBroken from None


def owner_of(caller: Caller, user_id: str | None) -> str | None:
    if user_id is None:
        return caller.user_id
    return None if user_id == EVERYBODY else user_id
