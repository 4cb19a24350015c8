"""Files over HTTP."""

from fastapi import Depends, Request

from headrace.assets.routes import assets, content, results, uploads
from headrace.assets.service import Files
from headrace.edge.routing import Router

# What these routes read piece by piece, and limit themselves.
STREAMED = (r"POST /v1/assets", r"PUT /v1/uploads/[^/]+/parts/[^/]+")


def create_router(files: Files) -> Router:
    """The routes of this package, with these files."""

    async def give(request: Request) -> None:
        request.state.files = files

    router = Router(prefix="/v1", dependencies=[Depends(give)])
    router.include(assets.router, uploads.router, content.router, results.router, results.compared, results.archive)
    return router
