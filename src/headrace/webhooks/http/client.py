"""Posting to strangers: one deadline over everything, a few kilobytes of the answer, no redirects, nothing unpacked.

Connections are kept for each host apart. How many are in use at once is the caller's to limit: many endpoints may have
one host, and none waits here for another's.
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
        self._hosts: OrderedDict[tuple[object, ...], _Host] = OrderedDict()

    @property
    def policy(self) -> AddressPolicy:
        return self._config.policy

    async def close(self) -> None:
        for host in self._hosts.values():
            await host.close()
        self._hosts.clear()
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
        reading = _Reading()
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self._exchange(await self._host(target, allow_ips), target, body, headers, reading)
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

    async def _exchange(
        self, host: "_Host", target: Target, body: bytes, headers: Mapping[str, str], reading: "_Reading"
    ) -> None:
        url = httpcore.URL(
            scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
        )
        # Whatever is packed is kept as it came: unpacking would let a few bytes become any number.
        sent = {"Host": target.authority, "Accept-Encoding": "identity", "Content-Length": str(len(body)), **headers}
        request = httpcore.Request("POST", url, headers=list(sent.items()), content=body)
        connection = await host.take()
        reused = connection is not None
        try:
            await host.send(connection or host.make(), request, reading)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ConnectionNotAvailable):
            # A connection that was kept may be closed by the other side just as we use it.
            if not reused or reading.status is not None:
                raise
            await host.send(host.make(), request, reading)

    async def _host(self, target: Target, allow_ips: Sequence[Network] | None) -> "_Host":
        key = (target.scheme, target.host, target.port, None if allow_ips is None else tuple(allow_ips))
        host = self._hosts.get(key)
        if host is None:
            await self._make_room()
            backend = GuardedBackend(self._config.policy, self._resolve, allowed=allow_ips, inner=self._backend)
            origin = httpcore.Origin(target.scheme.encode(), target.host.encode(), target.port)
            host = self._hosts[key] = _Host(origin, backend, self._tls, self._config)
        self._hosts.move_to_end(key)
        return host

    async def _make_room(self) -> None:
        if len(self._hosts) >= self._config.hosts:
            _, oldest = self._hosts.popitem(last=False)
            await oldest.close()  # what is under way there goes on, and is closed when it ends


class _Host:
    """Connections to one host by one policy: those that wait for the next request, the last used first.

    Not httpcore's own pool: that one asks the system about each of its idle connections for every request.
    """

    def __init__(
        self, origin: httpcore.Origin, backend: GuardedBackend, tls: ssl.SSLContext, config: HttpConfig
    ) -> None:
        self._origin = origin
        self._backend = backend
        self._tls = tls
        self._config = config
        self._idle: list[httpcore.AsyncHTTPConnection] = []
        self._is_closed = False

    def make(self) -> httpcore.AsyncHTTPConnection:
        return httpcore.AsyncHTTPConnection(
            self._origin,
            ssl_context=self._tls,
            keepalive_expiry=self._config.keep_alive.total_seconds(),
            http2=self._config.http2,
            network_backend=self._backend,
        )

    async def take(self) -> httpcore.AsyncHTTPConnection | None:
        """One that is still open; None if a new one has to be made."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_idle() and not connection.has_expired():
                return connection
            await _close(connection)
        return None

    async def send(
        self, connection: httpcore.AsyncHTTPConnection, request: httpcore.Request, reading: "_Reading"
    ) -> None:
        try:
            response = await connection.handle_async_request(request)
            try:
                reading.begin(response)
                async for part in response.aiter_stream():
                    if reading.add(part):
                        break
            finally:
                await response.aclose()
        finally:
            if connection.is_idle() and not self._is_closed and len(self._idle) < self._config.kept_per_host:
                self._idle.append(connection)
            else:
                await _close(connection)

    async def close(self) -> None:
        self._is_closed = True
        while self._idle:
            await _close(self._idle.pop())


async def _close(connection: httpcore.AsyncHTTPConnection) -> None:
    with suppress(Exception):  # the peer may be gone, and so shall we
        await connection.aclose()


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
