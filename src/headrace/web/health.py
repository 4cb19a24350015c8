"""Probes and metrics: liveness, readiness, and figures for Prometheus.

There is no rate limit here: a probe that got 429 would remove a healthy process from service. Instead the answers are
cheap: only ``/readyz`` and ``/metrics`` query the database, the one at most once a second, the other at most four times
a minute.
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

_READINESS_TIMEOUT_S = 0.8  # seconds; less than the usual timeouts of probes, one or five seconds
_FIGURES_TIMEOUT_S = 3.0
_CACHE_SECONDS = 1.0


class NotReady(Unavailable):
    """This process cannot serve requests yet."""

    code = "not_ready"


@router.get("/healthz")
async def health() -> dict[str, str]:
    """Liveness: the event loop runs. Queries nothing else, so that a slow database does not get processes killed."""
    return {"status": "ok", "version": __version__}


@router.get("/readyz")
async def readiness(request: Request) -> Response:
    """Readiness: the database answers and has this program's schema.

    Without file storage it is ready as well, and lists it under ``degraded``: all processes share one storage, and
    removing all of them would stop everything else as well.
    """
    if reasons := await _reasons(request):
        return answer_to(NotReady(reasons=list(reasons)), facts_of(request))
    degraded = services_of(request).degraded()
    return JSONResponse({"status": "ready", **({"degraded": list(degraded)} if degraded else {})})


class Probe:
    """The readiness of this process, cached for a moment."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness
        self._asking: asyncio.Task[Sequence[str]] | None = None
        self._said: Sequence[str] = ()
        self._fresh_until = 0.0

    async def reasons(self) -> Sequence[str]:
        """Why it is not ready, within a second: a slower check continues, and later probes share it."""
        if time.monotonic() < self._fresh_until:
            return self._said
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        # Not canceled at the limit: canceling a statement may take longer than the probe waits.
        await asyncio.wait({asking := self._asking}, timeout=_READINESS_TIMEOUT_S)
        return asking.result() if asking.done() else ["The database took too long to answer."]

    async def _ask(self) -> Sequence[str]:
        try:
            self._said = await self._readiness()
            self._fresh_until = time.monotonic() + _CACHE_SECONDS
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
    """The database's figures; none when it does not answer, so that the process's own figures are still served."""
    try:
        async with asyncio.timeout(_FIGURES_TIMEOUT_S):
            return await figures()
    except (TimeoutError, HeadraceError) as exc:
        log.warning("metrics.incomplete", error=type(exc).__name__)
        return ()
