"""The API as a running server: its socket, its app, and an orderly end."""

import asyncio
import errno
import math
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI

from headrace import logs, migrations
from headrace.accounts import service
from headrace.assembly.config_registry import config_keys, offer
from headrace.assembly.newcomers import newcomers
from headrace.assembly.routers import RouteDeps, routers
from headrace.assembly.webhooks import webhooks
from headrace.assets.routes import STREAMED
from headrace.billing.payments.service import open_payments
from headrace.cli.console_wiring import operators
from headrace.cli.descriptors import allow_descriptors
from headrace.cli.files_wiring import open_files
from headrace.cli.metrics import served
from headrace.cli.paying import order_config, wechatpay_config
from headrace.cli.storage_check import watched
from headrace.cli.waiting import connected
from headrace.cli.wiring import Deployment, accounts_config, open_tasks
from headrace.configs import cache
from headrace.database import Database
from headrace.edge.cookies import CookieConfig
from headrace.edge.limits import LimitConfig
from headrace.edge.services import Services
from headrace.edge.turns import UserTurns
from headrace.errors import HeadraceError, Invalid, Unavailable
from headrace.figures import Meters
from headrace.notifications.live import open_inbox
from headrace.operations.changes.live import open_changes
from headrace.operations.figures import HealthFigures
from headrace.settings import Settings
from headrace.tasks import live
from headrace.vault import derive_key
from headrace.web import console
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from headrace.web.connections import ConnectionLimits, Connections
from headrace.web.protocol import GuardedProtocol

log = logs.get(__name__)

_PORTS_TRIED = 20
# Descriptors for everything but clients: the database, files, children.
_OTHER_FILES = 256


class PortTaken(Unavailable):
    """Another program listens on this port."""

    code = "port_taken"


class AddressUnknown(Invalid):
    """This machine does not have the address to listen on."""

    code = "address_unknown"


@dataclass(frozen=True, slots=True)
class Listening:
    socket: socket.socket
    url: str


@contextmanager
def listen(settings: Settings) -> Iterator[Listening]:
    """Hold the API's port. A default port may move up: two clones on one machine do not conflict."""
    chosen = "api_port" in settings.model_fields_set
    ports = range(settings.api_port, settings.api_port + (1 if chosen else _PORTS_TRIED))
    for port in ports:
        try:
            bound = _bind(settings.api_host, port)
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                continue
            if exc.errno == errno.EACCES:
                raise AddressUnknown(
                    f"Port {port} is reserved for root: choose one from 1024 on as HEADRACE_API_PORT."
                ) from exc
            raise AddressUnknown(
                f"Cannot listen on {settings.api_host}: {exc.strerror}. Check HEADRACE_API_HOST."
            ) from exc
        with bound:
            yield Listening(bound, _url(settings, port))
        return
    raise PortTaken(
        f"Port {settings.api_port} is taken by another program: stop it, or choose another as HEADRACE_API_PORT."
        if chosen
        else f"Ports {ports.start} to {ports.stop - 1} are all taken: choose one as HEADRACE_API_PORT."
    )


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        # Without it a restart would have to wait for the last one's connections to be forgotten.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(1024)
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


def _url(settings: Settings, port: int) -> str:
    if settings.api_public_url is not None:
        return str(settings.api_public_url).rstrip("/")
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.api_host, settings.api_host)  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}"


@asynccontextmanager
async def application(
    settings: Settings, deployment: Deployment, secret: bytes, *, url: str = "", meters: Meters | None = None
) -> AsyncIterator[FastAPI]:
    """The app on an open database; ``url`` is how clients reach it, ``meters`` what else this process counts."""
    https = settings.api_public_url is not None and settings.api_public_url.scheme == "https"
    # One that is frozen while it changes a schedule must not make others miss its due times.
    patience = min(deployment.app.idle_in_transaction_timeout, settings.scheduler_misfire_after / 2)
    connection = replace(deployment.app.for_role("api"), idle_in_transaction_timeout=patience)
    async with (
        await connected(connection) as db,
        service.open_accounts(accounts_config(settings), secret=secret, welcomes=newcomers()) as known,
        open_payments(wechatpay_config(settings), order_config(settings)) as payments,
        live.open_watch(db) as watch,
        cache.open_configs(db) as held,
        open_inbox(db) as inbox,
        open_changes(db) as changes,
        open_files(settings, link_key=derive_key(secret, "files.links"), public_url=url) as files,
        watched(files.storage) as storage_watch,
    ):
        counted = meters or Meters()
        counted.add(storage_watch.read_figures)
        services = Services(
            db=db,
            authenticate=known.authenticate,
            secret=secret,
            cookies=CookieConfig(secure=https),
            limits=LimitConfig(per_minute=settings.api_rate_limit, burst=settings.api_rate_burst),
            idempotency_lifetime=settings.idempotency_lifetime,
            turns=UserTurns(at_once=max(1, connection.pool_max // 3)),
            readiness=lambda: _reasons_not_ready(db),
            degraded=storage_watch.degraded,
            figures=HealthFigures(db),
            meters=counted,
        )
        ours = open_tasks(settings)
        hooks = webhooks(settings, secret)
        deps = RouteDeps(
            *(known, ours, watch, payments, config_keys(), held, offer(settings), hooks, inbox, files, changes),
            operators=operators(settings),
        )
        app = create_app(services, web_config(settings, https=https), routers=routers(deps))

        def end_streams() -> None:
            watch.stop()
            inbox.stop()
            changes.stop()

        app.state.before_stop = end_streams  # those that never end by themselves would hold the shutdown up
        async with served(settings, services.meters, services.figures, counted=app.state.metrics):
            yield app


def web_config(settings: Settings, *, https: bool) -> WebConfig:
    return WebConfig(
        trusted_proxies=settings.api_trusted_proxies,
        cors_origins=settings.api_cors_origins,
        body_limit=settings.api_body_limit,
        https=https,
        metrics=settings.metrics_port is None,
        streamed_paths=STREAMED,
        console=console.BUILT,
        file_origins=_file_origins(settings),
    )


def _file_origins(settings: Settings) -> tuple[str, ...]:
    """Where links to files lead beside ourselves."""
    if settings.files_links == "api" or not (settings.files_url or "").startswith("s3://"):
        return ()
    if settings.files_s3_endpoint is None:
        return ("https://*.amazonaws.com",)
    parts = urlsplit(str(settings.files_s3_endpoint))
    return (f"{parts.scheme}://{parts.netloc}",)


def connection_limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        connections=settings.api_max_connections,
        per_address=settings.api_max_connections_per_address,
        requests=settings.api_max_requests,
        head_timeout=settings.api_head_timeout,
        keep_alive=settings.api_keep_alive_timeout,
        trusted_proxies=settings.api_trusted_proxies,
    )


async def _reasons_not_ready(db: Database) -> Sequence[str]:
    try:
        async with db.transaction(readonly=True) as tx:
            result = await migrations.read_status(tx)
    except HeadraceError as exc:
        return [exc.message]
    # A newer schema is no reason: while a new release comes in, the old one continues to work on it.
    return [f"{len(result.pending)} migrations are missing: run `headrace migrate`."] if result.pending else []


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the process has more to stop than the API."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(app: FastAPI, listening: Listening, settings: Settings, *, stop: asyncio.Event) -> None:
    """Answer requests until ``stop``; then let those under way end, up to the limit of the settings."""
    limits = connection_limits(settings)
    allowed = allow_descriptors(limits.connections + _OTHER_FILES)
    connections = Connections(limits.within(allowed - min(_OTHER_FILES, allowed // 2)))
    app.state.metrics.watch(connections)
    server = _Server(_uvicorn_config(app, settings, connections))
    serving = asyncio.create_task(server.serve(sockets=[listening.socket]))
    closing = asyncio.create_task(_close_overdue(connections))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, closing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    app.state.before_stop()
    server.should_exit = True
    stopping.cancel()
    await serving
    closing.cancel()
    await asyncio.wait({closing})
    if not closing.cancelled():
        closing.result()  # it has no other end than an error, which must be seen


def _uvicorn_config(app: FastAPI, settings: Settings, connections: Connections) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=partial(GuardedProtocol, connections=connections),  # type: ignore[arg-type]
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # our own middleware decides which proxies to trust
        # Its timer starts again with every byte, so it is left to ours, which comes before it.
        timeout_keep_alive=math.ceil(settings.api_keep_alive_timeout.total_seconds()) + 60,
        timeout_graceful_shutdown=max(1, round(settings.api_shutdown_timeout.total_seconds())),
    )


async def _close_overdue(connections: Connections) -> None:
    while True:
        await asyncio.sleep(connections.period)
        while connections.tick():  # noqa: ASYNC110 - a turn for the others, not a wait
            await asyncio.sleep(0)
