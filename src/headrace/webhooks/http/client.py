"""Posting to strangers: one deadline over everything, a few kilobytes of the answer, no redirects, nothing unpacked.

Each host has a small pool of its own. One large pool would look through all its connections for every request, and one
host that hangs would fill it for the others.
"""

import asyncio
import ssl
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import httpcore
import httpx

from headrace import logs
from headrace.webhooks.http.addresses import AddressPolicy, Network
from headrace.webhooks.http.connecting import AddressRefused, GuardedBackend, Resolve, ThreadedResolver
from headrace.webhooks.http.targets import Target

log = logs.get(__name__)

LONGEST_BODY = 4096
_LONGEST_ERROR = 300


@dataclass(frozen=True, slots=True)
class HttpConfig:
    policy: AddressPolicy = field(default_factory=AddressPolicy)
    connections_per_host: int = 500  # at work: many endpoints may have one host, and none waits for another's
    kept_per_host: int = 32
    hosts: int = 1000  # with connections kept; the one unused for longest is closed for another
    keep_alive: timedelta = timedelta(seconds=30)
    http2: bool = True


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: a status, or the reason why none did (``error``)."""

    duration: timedelta
    status: int | None = None
    body: str | None = None
    retry_after: str | None = None
    error: str | None = None
    kind: str | None = None  # of the error: refused, timeout, tls, connection, protocol

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class HttpClient:
    """Reuses connections; ``close`` ends them."""

    def __init__(
        self,
        config: HttpConfig | None = None,
        *,
        resolve: Resolve | None = None,
        backend: httpcore.AsyncNetworkBackend | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._config = config or HttpConfig()
        self._own_resolver = None if resolve else ThreadedResolver()
        self._resolve: Resolve = resolve or self._own_resolver or ThreadedResolver()
        self._backend = backend
        self._tls = tls or httpx.create_ssl_context()
        self._pools: OrderedDict[tuple[object, ...], httpcore.AsyncConnectionPool] = OrderedDict()
        self._busy: dict[tuple[object, ...], int] = {}

    @property
    def policy(self) -> AddressPolicy:
        return self._config.policy

    async def close(self) -> None:
        for pool in self._pools.values():
            with suppress(Exception):  # a peer may be gone, and so shall we
                await pool.aclose()
        self._pools.clear()
        if self._own_resolver is not None:
            self._own_resolver.close()

    async def post(
        self,
        target: Target,
        body: bytes,
        headers: Mapping[str, str],
        *,
        timeout: timedelta,  # noqa: ASYNC109 - over all that is done, name look-up to last byte
        allow_ips: Sequence[Network] | None = None,
    ) -> Reply:
        """Send this, and give what came of it; whatever the other side does is no exception here."""
        started = time.monotonic()
        key = (target.scheme, target.host, target.port, None if allow_ips is None else tuple(allow_ips))
        self._busy[key] = self._busy.get(key, 0) + 1
        try:
            reading = _Reading()
            try:
                async with asyncio.timeout(timeout.total_seconds()):
                    await self._exchange(await self._pool(key, allow_ips), target, body, headers, reading)
            except TimeoutError:
                # The status is the answer. A body that does not end changes nothing about it.
                if reading.status is None:
                    return Reply(_since(started), error=f"no answer within {_seconds(timeout)}", kind="timeout")
            except AddressRefused as exc:
                return Reply(_since(started), error=str(exc)[:_LONGEST_ERROR], kind="refused")
            except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError) as exc:
                if reading.status is None:
                    return Reply(_since(started), error=_explain(exc), kind=_kind(exc))
            return reading.reply(_since(started))
        finally:
            self._busy[key] -= 1
            if not self._busy[key]:
                del self._busy[key]

    async def _exchange(
        self,
        pool: httpcore.AsyncConnectionPool,
        target: Target,
        body: bytes,
        headers: Mapping[str, str],
        reading: "_Reading",
    ) -> None:
        url = httpcore.URL(
            scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
        )
        # Whatever is packed is kept as it came: unpacking would let a few bytes become any number.
        sent = {"Host": target.authority, "Accept-Encoding": "identity", "Content-Length": str(len(body)), **headers}
        async with pool.stream("POST", url, headers=list(sent.items()), content=body) as response:
            reading.begin(response)
            async for part in response.aiter_stream():
                if reading.add(part):
                    break

    async def _pool(self, key: tuple[object, ...], allow_ips: Sequence[Network] | None) -> httpcore.AsyncConnectionPool:
        pool = self._pools.get(key)
        if pool is None:
            await self._make_room()
            pool = self._pools[key] = httpcore.AsyncConnectionPool(
                ssl_context=self._tls,
                max_connections=self._config.connections_per_host,
                max_keepalive_connections=self._config.kept_per_host,
                keepalive_expiry=self._config.keep_alive.total_seconds(),
                http2=self._config.http2,
                network_backend=GuardedBackend(
                    self._config.policy, self._resolve, allowed=allow_ips, inner=self._backend
                ),
            )
        self._pools.move_to_end(key)
        return pool

    async def _make_room(self) -> None:
        if len(self._pools) < self._config.hosts:
            return
        for key in list(self._pools):
            if key not in self._busy:
                with suppress(Exception):
                    await self._pools.pop(key).aclose()
                return


@dataclass(slots=True)
class _Reading:
    """An answer as far as it has come."""

    status: int | None = None
    retry_after: str | None = None
    content: bytes = b""

    def begin(self, response: httpcore.Response) -> None:
        self.status = response.status
        self.retry_after = next(
            (value.decode("latin-1") for name, value in response.headers if name.lower() == b"retry-after"), None
        )

    def add(self, part: bytes) -> bool:
        """Keep what fits; True when there is enough."""
        self.content = (self.content + part)[:LONGEST_BODY]
        return len(self.content) >= LONGEST_BODY

    def reply(self, duration: timedelta) -> Reply:
        # PostgreSQL keeps no U+0000, and strangers send any bytes.
        text = self.content.decode(errors="replace").replace("\0", "\ufffd")
        return Reply(duration, self.status, text or None, self.retry_after)


def _explain(exc: Exception) -> str:
    text = str(exc) or type(exc).__name__
    if isinstance(exc.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in text:
        cause = exc.__cause__
        why = getattr(cause, "verify_message", None) or text
        return f"the certificate is not valid: {why}"[:_LONGEST_ERROR]
    return f"{_KINDS.get(_kind(exc), 'the connection failed')}: {text}"[:_LONGEST_ERROR].replace("\0", "")


_KINDS = {"protocol": "the answer is not valid HTTP", "tls": "TLS failed", "connection": "the connection failed"}


def _kind(exc: Exception) -> str:
    if isinstance(exc, httpcore.ProtocolError):
        return "protocol"
    if isinstance(exc.__cause__, ssl.SSLError) or "SSL" in str(exc) or "CERTIFICATE" in str(exc):
        return "tls"
    return "connection"


def _since(started: float) -> timedelta:
    return timedelta(seconds=time.monotonic() - started)


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():g} s"
