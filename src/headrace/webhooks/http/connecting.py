"""Connections to checked addresses only. A name is resolved once, every address is checked, and the connection goes to
the checked address: there is no second lookup that could give another one (DNS rebinding).

httpcore2 asks its network backend for each connection by name, and does TLS with that name itself; so SNI, the check of
the certificate and the Host header stay as they are.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpcore2

from headrace.webhooks.http.addresses import Address, AddressPolicy, Network, parse, plain, within

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""(host, port) → its addresses, best first; raises ``OSError`` when there are none."""

_MAX_CONCURRENT_LOOKUPS = 64


class AddressRefused(Exception):
    """The name resolves to a forbidden address."""


class ThreadedResolver:
    """The system's resolver, in threads of its own: the event loop shares only four, and a DNS server that does not
    answer would block them all."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_MAX_CONCURRENT_LOOKUPS, thread_name_prefix="headrace-dns")

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        found = await asyncio.get_running_loop().run_in_executor(self._threads, _lookup, host, port)
        return list(dict.fromkeys(parse(str(entry[4][0])) for entry in found))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _lookup(host: str, port: int) -> list[Any]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects only to addresses that the policy and the endpoint's own ``allow_ips`` permit."""

    def __init__(
        self,
        policy: AddressPolicy,
        resolve: Resolve,
        *,
        allowed: Sequence[Network] | None = None,
        inner: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._policy = policy
        self._resolve = resolve
        self._allowed = allowed
        self._inner = inner or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            addresses = await self._resolve(host, port)
        except OSError as exc:
            raise httpcore2.ConnectError(f"the name {host} is not found") from exc
        failure: Exception = httpcore2.ConnectError(f"the name {host} has no address")
        for address in self._checked(host, addresses):
            try:
                return await self._inner.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as exc:
                failure = exc
        raise failure

    def _checked(self, host: str, addresses: Sequence[Address]) -> Sequence[Address]:
        """The addresses to try. One forbidden address refuses the name: honest names do not mix the two."""
        for address in addresses:
            if (kind := self._policy.obstacle(address)) is not None:
                raise AddressRefused(f"{host} leads to {address}, which is {kind}")
        if self._allowed is None:
            return addresses
        chosen = [address for address in addresses if within(plain(address), self._allowed)]
        if addresses and not chosen:
            raise AddressRefused(f"{host} leads to {addresses[0]}, which is not one of the endpoint's allow_ips")
        return chosen

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109 - httpcore2's interface
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        raise AddressRefused(f"{path} is a file of this machine")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
