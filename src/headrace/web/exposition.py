"""`/metrics` and `/readyz` on a separate port: for roles without an API, and for an API with a public port."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headrace.figures import Figures, Meters, Reasons, no_reasons
from headrace.web.health import read_patiently
from headrace.web.metrics import CONTENT_TYPE, Metrics


def create_metrics_app(
    meters: Meters, figures: Figures, *, counted: Metrics | None = None, reasons: Reasons = no_reasons
) -> Starlette:
    """Serve the figures of a process and of the database, and its readiness. ``counted`` are an API's own figures,
    ``reasons`` why the process is not ready."""
    process = counted or Metrics(http=False)

    async def metrics(_: Request) -> Response:
        found = [*meters.read(), *await read_patiently(figures)]
        return Response(process.render(found), headers={"Content-Type": CONTENT_TYPE})

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readiness(_: Request) -> Response:
        if found := reasons():
            return JSONResponse({"status": "not ready", "reasons": list(found)}, status_code=503)
        return JSONResponse({"status": "ready"})

    routes = [Route("/metrics", metrics), Route("/healthz", health), Route("/readyz", readiness)]
    return Starlette(routes=routes)
