"""Links of ours: they need no credential."""

from typing import Annotated

from fastapi import Path, Request, Response

from headrace.assets.errors import BytesMissing, LinkInvalid
from headrace.assets.handing_out import is_there, redeem
from headrace.assets.reading import serve
from headrace.assets.routes.dependencies import BINARY, FilesDep
from headrace.edge.authorization import Anyone
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.storage import StorageUnreachable

router = Router(prefix="/content", tags=["Files"])


@router.get(
    "/{token}",
    summary="Read a file by a link",
    response_class=Response,
    responses={**BINARY, **problems(LinkInvalid, BytesMissing, StorageUnreachable)},
)
async def read_link(
    request: Request, token: Annotated[str, Path(max_length=255)], who: Anyone, db: Db, files: FilesDep
) -> Response:
    """The bytes, or one range of them. Expired, forged and deleted links look the
    same."""
    link, content = await redeem(files, db, who, token)
    return await serve(request, files.storage, content, is_allowed=is_there(db, link.target, link.id))
