"""For those who watch over the process: is it alive, may it be sent requests, what does it count.

There is no rate limit here: a probe that were told "too many requests" would take a healthy process away from
everybody. Instead no answer costs more than a flood of requests itself: only ``/readyz`` and ``/metrics``
ask the database, the one once a second at the most and the other four times a minute.
"""

import asyncio
import time
from collections.abc import Sequence

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from headrace import __version__, logs
from headrace.edge.facts import facts_of
from headrace.edge.problem_details import answer_to
from headrace.edge.routing import Router
from headrace.edge.services import Readiness, services_of
from headrace.errors import HeadraceError, Unavailable
from headrace.figures import Figure, Figures
from headrace.web.metrics import CONTENT_TYPE, Metrics

log = logs.get(__name__)
router = Router(include_in_schema=False)
metrics_router = Router(include_in_schema=False)

_PATIENCE = 0.8  # less than the second or five that probes commonly wait, or they only see a timeout
_FIGURES_PATIENCE = 3.0
_FRESH = 1.0


class NotReady(Unavailable):
    """This process cannot serve requests yet."""

    code = "not_ready"


@router.get("/healthz")
async def health() -> dict[str, str]:
    """Alive: the event loop turns. Asks nobody else, so that a slow database does not get every process killed."""
    return {"status": "ok", "version": __version__}


@router.get("/readyz")
async def readiness(request: Request) -> Response:
    """Ready: the database answers and has the schema of this program.

    Without file storage it is ready as well, and names it under ``degraded``: all processes share one storage, and
    taking every one of them away would end everything else, too.
    """
    if reasons := await _reasons(request):
        return answer_to(NotReady(reasons=list(reasons)), facts_of(request))
    degraded = services_of(request).degraded()
    return JSONResponse({"status": "ready", **({"degraded": list(degraded)} if degraded else {})})


class Probe:
    """Whether this process is ready, as it was a moment ago."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness
        self._asking: asyncio.Task[Sequence[str]] | None = None
        self._said: Sequence[str] = ()
        self._fresh_until = 0.0

    async def reasons(self) -> Sequence[str]:
        """Why it is not ready, within a second: a question that takes longer goes on, and later probes share it."""
        if time.monotonic() < self._fresh_until:
            return self._said
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        # Not canceled at the limit: taking a statement back may take longer than the probe waits.
        await asyncio.wait({asking := self._asking}, timeout=_PATIENCE)
        return asking.result() if asking.done() else ["The database took too long to answer."]

    async def _ask(self) -> Sequence[str]:
        try:
            self._said = await self._readiness()
            self._fresh_until = time.monotonic() + _FRESH
            return self._said
        finally:
            self._asking = None


async def _reasons(request: Request) -> Sequence[str]:
    probe = request.app.state.probe
    assert isinstance(probe, Probe)
    return await probe.reasons()


@metrics_router.get("/metrics")
async def metrics(request: Request) -> Response:
    counted, services = request.app.state.metrics, services_of(request)
    assert isinstance(counted, Metrics)
    figures = [*services.meters.read(), *await read_patiently(services.figures)]
    return Response(counted.render(figures), headers={"Content-Type": CONTENT_TYPE})


async def read_patiently(figures: Figures) -> Sequence[Figure]:
    """None when the database does not answer: what this process counted itself is wanted all the more then."""
    try:
        async with asyncio.timeout(_FIGURES_PATIENCE):
            return await figures()
    except (TimeoutError, HeadraceError) as exc:
        log.warning("metrics.incomplete", error=type(exc).__name__)
        return ()
