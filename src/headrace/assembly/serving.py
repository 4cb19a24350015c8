"""The API as a running server: its socket, its connections, and an orderly end."""

import asyncio
import errno
import math
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import uvicorn
from fastapi import FastAPI

from headrace.errors import Invalid, Unavailable
from headrace.settings import Settings
from headrace.web.connections import ConnectionLimits, Connections
from headrace.web.protocol import GuardedProtocol

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


def connection_limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        connections=settings.api_max_connections,
        per_address=settings.api_max_connections_per_address,
        requests=settings.api_max_requests,
        head_timeout=settings.api_head_timeout,
        keep_alive=settings.api_keep_alive_timeout,
        trusted_proxies=settings.api_trusted_proxies,
    )


def allow_descriptors(number: int) -> int:
    """Raise this process's limit of open files as far as permitted; gives the new limit. Never lowers it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= number:
        return number
    allowed = number if hard == resource.RLIM_INFINITY else min(number, hard)
    # The usual 1024 is meant for programs that use select(); uvloop does not.
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
