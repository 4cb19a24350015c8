"""`/metrics` on a port of its own: for roles that serve nothing else, and for an API whose port is public."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headrace.figures import Figures, Meters
from headrace.web.health import read_patiently
from headrace.web.metrics import CONTENT_TYPE, Metrics


def create_metrics_app(meters: Meters, figures: Figures, *, counted: Metrics | None = None) -> Starlette:
    """The figures of a process and of the database, and nothing else. ``counted`` is what an API counts of itself."""
    process = counted or Metrics(http=False)

    async def metrics(_: Request) -> Response:
        found = [*meters.read(), *await read_patiently(figures)]
        return Response(process.render(found), headers={"Content-Type": CONTENT_TYPE})

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    return Starlette(routes=[Route("/metrics", metrics), Route("/healthz", health)])
