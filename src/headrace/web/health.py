"""For those who watch over the process: is it alive, may it be sent requests, what does it count."""

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter, Request, Response

from headrace import __version__, logs
from headrace.edge.facts import facts_of
from headrace.edge.problem_details import answer_to
from headrace.edge.services import services_of
from headrace.errors import Unavailable
from headrace.web.metrics import CONTENT_TYPE, Metrics

log = logs.get(__name__)
router = APIRouter(include_in_schema=False)

_PATIENCE = 3.0  # less than the second or five that probes commonly wait, or they only see a timeout


class NotReady(Unavailable):
    """This process cannot serve requests yet."""

    code = "not_ready"


@router.api_route("/healthz", methods=["GET", "HEAD"])
async def health() -> dict[str, str]:
    """Alive: the event loop turns. Asks nobody else, so that a slow database does not get every process killed."""
    return {"status": "ok", "version": __version__}


@router.api_route("/readyz", methods=["GET", "HEAD"])
async def readiness(request: Request) -> Response:
    """Ready: the database answers and has the schema of this program."""
    reasons = await _reasons(request)
    if reasons:
        return answer_to(NotReady(reasons=list(reasons)), facts_of(request))
    return Response('{"status":"ready"}', media_type="application/json")


async def _reasons(request: Request) -> Sequence[str]:
    try:
        async with asyncio.timeout(_PATIENCE):
            return await services_of(request).readiness()
    except TimeoutError:
        return ["The database took too long to answer."]


@router.api_route("/metrics", methods=["GET", "HEAD"])
async def metrics(request: Request) -> Response:
    counted = request.app.state.metrics
    assert isinstance(counted, Metrics)
    return Response(counted.render(), headers={"Content-Type": CONTENT_TYPE})
