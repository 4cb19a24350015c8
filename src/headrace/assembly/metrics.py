"""Figures of a process for Prometheus: on a port of their own, where one is chosen."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from headrace import logs
from headrace.admin.figures import TaskFigures
from headrace.assembly.connections import METRICS_POOL
from headrace.assembly.deployment import Deployment
from headrace.errors import Invalid, Unavailable
from headrace.figures import Figures, Meters, Reasons, no_reasons
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.web.metrics import Metrics

log = logs.get(__name__)

_PORTS = 64
_AT_ONCE = 20  # more scrapers than anybody has


class MetricsPortTaken(Unavailable):
    """Other programs have the port for metrics and those that follow it."""

    code = "metrics_port_taken"


class MetricsAddressUnknown(Invalid):
    """This machine does not have the address for metrics."""

    code = "metrics_address_unknown"


@asynccontextmanager
async def metrics_served(
    settings: Settings, deployment: Deployment, meters: Meters, *, reasons: Reasons = no_reasons
) -> AsyncIterator[int | None]:
    """Answer `/metrics` while this lasts, if a port was chosen, with what this process counts and what the database
    says; that is asked on a connection of its own, made at the first request. `/readyz` answers 503 with the
    reasons why the process is not ready. Gives the port."""
    if settings.metrics_port is None:
        yield None
        return
    config = replace(deployment.app.for_role("metrics"), pool_min=0, pool_max=METRICS_POOL)
    async with (
        await deployment.connect(config) as db,
        served(settings, meters, TaskFigures(db), reasons=reasons) as port,
    ):
        yield port


@asynccontextmanager
async def served(
    settings: Settings,
    meters: Meters,
    figures: Figures,
    *,
    counted: "Metrics | None" = None,
    reasons: Reasons = no_reasons,
) -> AsyncIterator[int | None]:
    """The same with figures from elsewhere, and with what an API counts of itself."""
    if settings.metrics_port is None:
        yield None
        return
    # Only here: a worker that shows no figures needs nothing of the web.
    import uvicorn

    from headrace.web.exposition import create_metrics_app

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:  # the process has more to stop than this
            yield

    config = uvicorn.Config(
        create_metrics_app(meters, figures, counted=counted, reasons=reasons),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_AT_ONCE,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=1,
    )
    with _bound(settings.metrics_host, settings.metrics_port) as bound:
        server = Server(config)
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        port: int = bound.getsockname()[1]
        log.info("metrics.served", host=settings.metrics_host, port=port)
        try:
            yield port
        finally:
            server.should_exit = True
            await asyncio.wait([serving])


def _bound(host: str, first: int) -> socket.socket:
    """The first free port from here on: several workers on one machine have the same settings."""
    for port in range(first, min(first + _PORTS, 65_536)):
        try:
            return socket.create_server((host, port), family=_family(host), backlog=64)
        except OSError as exc:
            if exc.errno != errno.EADDRINUSE:
                raise MetricsAddressUnknown(
                    f"Cannot listen on {host}, port {port}: {exc.strerror}. Check HEADRACE_METRICS_HOST and "
                    "HEADRACE_METRICS_PORT."
                ) from exc
    raise MetricsPortTaken(
        f"Ports {first} to {first + _PORTS - 1} are all taken: choose another HEADRACE_METRICS_PORT."
    )


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
