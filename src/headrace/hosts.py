"""Connections to the first usable one of several PostgreSQL hosts.

asyncpg has one timeout for all hosts of a URL together. A host that silently drops packets, such as one without power,
would use all of it at each attempt, and no failover would complete. Here each host has its own timeout, and the next
attempt begins with the host that answered last.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

# As libpq does with connect_timeout: for each host, not for all of them.
HOST_TIMEOUT_SECONDS = 3.0

# A peer that vanished is noticed after ten seconds, with or without traffic.
_KEEPALIVE_IDLE_SECONDS, _KEEPALIVE_INTERVAL_SECONDS, _KEEPALIVE_COUNT = 5, 2, 3
_USER_TIMEOUT_MS = 10_000

# The same on the server's side, which frees the locks of a vanished client.
SERVER_SETTINGS = {
    "tcp_keepalives_idle": str(_KEEPALIVE_IDLE_SECONDS),
    "tcp_keepalives_interval": str(_KEEPALIVE_INTERVAL_SECONDS),
    "tcp_keepalives_count": str(_KEEPALIVE_COUNT),
    "tcp_user_timeout": str(_USER_TIMEOUT_MS),
}

Host = tuple[str, int | None]

# Which host of a URL to try first: the one that answered last, or the one after those that did not.
_next: dict[str, int] = {}


async def connect(
    dsn: str,
    *,
    timeout: float,  # noqa: ASYNC109 - the driver's own, which its pool passes as well
    host_timeout: float = HOST_TIMEOUT_SECONDS,
    **arguments: Any,
) -> "asyncpg.Connection[Any]":
    """``asyncpg.connect`` with a timeout for each host, and keepalive on the connection."""
    hosts = hosts_of(dsn)
    if len(hosts) < 2:
        return keep_alive(await asyncpg.connect(dsn, timeout=timeout, **arguments))
    async with asyncio.timeout(timeout):
        return keep_alive(await _connect_to_any(dsn, hosts, host_timeout, arguments))


async def _connect_to_any(
    dsn: str, hosts: list[Host], host_timeout: float, arguments: dict[str, Any]
) -> "asyncpg.Connection[Any]":
    wanted = _target(dsn)
    failure: Exception | None = None
    # "prefer-standby" takes any host if none of them is a standby.
    for attributes in ("standby", "any") if wanted == "prefer-standby" else (wanted,):
        for _ in hosts:
            index = _next.get(dsn, 0) % len(hosts)
            host, port = hosts[index]
            here: dict[str, Any] = {
                "host": host,
                "port": port,
                "timeout": host_timeout,
                "target_session_attrs": attributes,
            }
            # Also after a cancellation: the next attempt must not begin with the same dead host.
            _next[dsn] = index + 1
            try:
                connection: asyncpg.Connection[Any] = await asyncpg.connect(dsn, **here, **arguments)
            except (
                OSError,
                TimeoutError,
                asyncpg.CannotConnectNowError,
                asyncpg.TargetServerAttributeNotMatched,
                asyncpg.PostgresConnectionError,
            ) as exc:
                failure = exc
            else:
                _next[dsn] = index
                return connection
    assert failure is not None
    if isinstance(failure, asyncpg.TargetServerAttributeNotMatched):  # hosts answer, but a failover is under way
        raise ConnectionError(f"no host of this address is {wanted}") from failure
    raise failure


def hosts_of(dsn: str) -> list[Host]:
    """The hosts that a URL names, in its order."""
    parts = urlsplit(dsn)
    query = parse_qs(parts.query)
    ports = query["port"][-1].split(",") if "port" in query else []
    places = parts.netloc.rpartition("@")[2] or (query["host"][-1] if "host" in query else "")
    found: list[Host] = []
    for number, place in enumerate(places.split(",") if places else ()):
        host, port = place, ""
        if place.startswith("["):  # an IPv6 address
            host, _, port = place[1:].partition("]")
            port = port.removeprefix(":")
        elif not place.startswith("/"):
            host, _, port = place.partition(":")
        if not port and ports:
            port = ports[number] if len(ports) > 1 and number < len(ports) else ports[0]
        found.append((unquote(host), int(port) if port else None))
    return found


def _target(dsn: str) -> str:
    return parse_qs(urlsplit(dsn).query).get("target_session_attrs", ["any"])[-1]


def keep_alive(connection: "asyncpg.Connection[Any]") -> "asyncpg.Connection[Any]":
    """Let the kernel notice a peer that vanished, instead of waiting for a statement's limit."""
    transport = getattr(connection, "_transport", None)
    found = transport.get_extra_info("socket") if transport is not None else None
    if found is None or found.family not in (socket.AF_INET, socket.AF_INET6):
        return connection
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _KEEPALIVE_IDLE_SECONDS),
        ("TCP_KEEPINTVL", _KEEPALIVE_INTERVAL_SECONDS),
        ("TCP_KEEPCNT", _KEEPALIVE_COUNT),
        ("TCP_USER_TIMEOUT", _USER_TIMEOUT_MS),
    ):
        if (option := getattr(socket, name, None)) is not None:  # not on every system
            with suppress(OSError):
                found.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection
