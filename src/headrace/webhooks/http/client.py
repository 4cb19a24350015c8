"""Posting to strangers: one deadline over everything, a few kilobytes of the answer, no redirects, nothing unpacked.

Connections are kept for each endpoint apart: two users may name one host, and the bytes that one user's receiver sends
must never be read as the answer to another user's request. The caller limits how many connections are in use at once.
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
    kept_per_endpoint: int = 32
    kept: int = 512  # idle connections of all endpoints; the one unused for longest is closed for another
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
        self._idle = _IdleConnections(self._config)

    @property
    def policy(self) -> AddressPolicy:
        return self._config.policy

    async def close(self) -> None:
        await self._idle.close()
        if self._own_resolver is not None:
            self._own_resolver.close()

    async def post(
        self,
        target: Target,
        body: bytes,
        headers: Mapping[str, str],
        *,
        endpoint_id: str,
        timeout: timedelta,  # noqa: ASYNC109 - over all that is done, name look-up to last byte
        allow_ips: Sequence[Network] | None = None,
    ) -> Reply:
        """Send this, and give what came of it; whatever the other side does is no exception here.

        Connections are reused by the same endpoint alone.
        """
        started = time.monotonic()
        reading = _Reading()
        key = (endpoint_id, target.scheme, target.host, target.port, None if allow_ips is None else tuple(allow_ips))
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self._exchange(key, target, body, headers, reading, allow_ips)
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
        self,
        key: "_Key",
        target: Target,
        body: bytes,
        headers: Mapping[str, str],
        reading: "_Reading",
        allow_ips: Sequence[Network] | None,
    ) -> None:
        url = httpcore.URL(
            scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
        )
        # Whatever is packed is kept as it came: unpacking would let a few bytes become any number.
        sent = {"Host": target.authority, "Accept-Encoding": "identity", "Content-Length": str(len(body)), **headers}
        request = httpcore.Request("POST", url, headers=list(sent.items()), content=body)
        connection = await self._idle.take(key)
        reused = connection is not None
        try:
            await self._send(key, connection or self._make(target, allow_ips), request, reading)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ConnectionNotAvailable):
            # A connection that was kept may be closed by the other side just as we use it.
            if not reused or reading.status is not None:
                raise
            await self._send(key, self._make(target, allow_ips), request, reading)

    def _make(self, target: Target, allow_ips: Sequence[Network] | None) -> httpcore.AsyncHTTPConnection:
        return httpcore.AsyncHTTPConnection(
            httpcore.Origin(target.scheme.encode(), target.host.encode(), target.port),
            ssl_context=self._tls,
            keepalive_expiry=self._config.keep_alive.total_seconds(),
            http2=self._config.http2,
            network_backend=GuardedBackend(self._config.policy, self._resolve, allowed=allow_ips, inner=self._backend),
        )

    async def _send(
        self, key: "_Key", connection: httpcore.AsyncHTTPConnection, request: httpcore.Request, reading: "_Reading"
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
            if connection.is_idle() and not _has_surplus(connection):
                await self._idle.keep(key, connection)
            else:
                await _close(connection)


_Key = tuple[object, ...]


class _IdleConnections:
    """Connections that wait for the next request of their endpoint, the last used first.

    Not httpcore's own pool: that one asks the system about each of its idle connections for every request.
    """

    def __init__(self, config: HttpConfig) -> None:
        self._config = config
        self._by_endpoint: dict[_Key, list[httpcore.AsyncHTTPConnection]] = {}
        self._by_age: OrderedDict[httpcore.AsyncHTTPConnection, _Key] = OrderedDict()
        self._is_closed = False

    async def take(self, key: _Key) -> httpcore.AsyncHTTPConnection | None:
        """One that is still open; None if a new one has to be made."""
        while idle := self._by_endpoint.get(key):
            connection = idle[-1]
            self._forget(connection)
            if connection.is_idle() and not connection.has_expired():
                return connection
            await _close(connection)
        return None

    async def keep(self, key: _Key, connection: httpcore.AsyncHTTPConnection) -> None:
        """Have it for the endpoint's next request, as far as there is room."""
        if self._is_closed or len(self._by_endpoint.get(key, ())) >= self._config.kept_per_endpoint:
            await _close(connection)
            return
        self._by_endpoint.setdefault(key, []).append(connection)
        self._by_age[connection] = key
        while len(self._by_age) > self._config.kept:
            oldest = next(iter(self._by_age))
            self._forget(oldest)
            await _close(oldest)

    async def close(self) -> None:
        """End all of them; those in use are closed when they are given back."""
        self._is_closed = True
        while self._by_age:
            connection = next(iter(self._by_age))
            self._forget(connection)
            await _close(connection)

    def _forget(self, connection: httpcore.AsyncHTTPConnection) -> None:
        key = self._by_age.pop(connection)
        idle = self._by_endpoint[key]
        idle.remove(connection)
        if not idle:
            del self._by_endpoint[key]


def _has_surplus(connection: httpcore.AsyncHTTPConnection) -> bool:
    """Whether more came than the answer: it would be read as the answer to the next request.

    httpcore has no public name for this. Where its inner names change, connections are closed, and a test fails.
    """
    inner = getattr(connection, "_connection", None)
    if type(inner).__name__ == "AsyncHTTP2Connection":
        return False  # answers carry the number of their request
    state = getattr(inner, "_h11_state", None)
    return state is None or bool(state.trailing_data[0])


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
