"""POST to untrusted receivers: one deadline for all steps, 4 KB of the answer, no redirects, no decompression.

Connections are pooled per endpoint: two users may name one host, and the bytes that one user's receiver sends
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

import httpcore2
import httpx2

from headrace import logs
from headrace.webhooks.http.addresses import AddressPolicy, Network
from headrace.webhooks.http.connecting import AddressRefused, GuardedBackend, Resolve, ThreadedResolver
from headrace.webhooks.http.targets import Target

log = logs.get(__name__)

MAX_BODY_BYTES = 4096
_MAX_ERROR_LENGTH = 300


@dataclass(frozen=True, slots=True)
class HttpConfig:
    policy: AddressPolicy = field(default_factory=AddressPolicy)
    kept_per_endpoint: int = 32
    kept: int = 512  # idle connections of all endpoints; beyond that the least recently used one is closed
    keep_alive: timedelta = timedelta(seconds=30)
    http2: bool = True


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer: a status, or the reason why there is none (``error``)."""

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
        backend: httpcore2.AsyncNetworkBackend | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._config = config or HttpConfig()
        self._own_resolver = None if resolve else ThreadedResolver()
        self._resolve: Resolve = resolve or self._own_resolver or ThreadedResolver()
        self._backend = backend
        self._tls = tls or httpx2.create_ssl_context()
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
        timeout: timedelta,  # noqa: ASYNC109 - of all steps, from name lookup to last byte
        allow_ips: Sequence[Network] | None = None,
    ) -> Reply:
        """Send the request and return the reply; a misbehaving receiver raises no exception.

        A connection is reused only by the same endpoint.
        """
        started = time.monotonic()
        reading = _Reading()
        key = (endpoint_id, target.scheme, target.host, target.port, None if allow_ips is None else tuple(allow_ips))
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self._exchange(key, target, body, headers, reading, allow_ips)
        except TimeoutError:
            # The status decides. A body that does not end does not change it.
            if reading.status is None:
                return Reply(_since(started), error=f"no answer within {_seconds(timeout)}", kind="timeout")
        except AddressRefused as exc:
            return Reply(_since(started), error=str(exc)[:_MAX_ERROR_LENGTH], kind="refused")
        except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, OSError) as exc:
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
        url = httpcore2.URL(
            scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
        )
        # A compressed body is kept as received: a few bytes could decompress into any number.
        sent = {"Host": target.authority, "Accept-Encoding": "identity", "Content-Length": str(len(body)), **headers}
        request = httpcore2.Request("POST", url, headers=list(sent.items()), content=body)
        connection = await self._idle.take(key)
        reused = connection is not None
        try:
            await self._send(key, connection or self._make(target, allow_ips), request, reading)
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ConnectionNotAvailable):
            # The peer may close an idle connection just as we use it.
            if not reused or reading.status is not None:
                raise
            await self._send(key, self._make(target, allow_ips), request, reading)

    def _make(self, target: Target, allow_ips: Sequence[Network] | None) -> httpcore2.AsyncHTTPConnection:
        return httpcore2.AsyncHTTPConnection(
            httpcore2.Origin(target.scheme.encode(), target.host.encode(), target.port),
            ssl_context=self._tls,
            keepalive_expiry=self._config.keep_alive.total_seconds(),
            http2=self._config.http2,
            network_backend=GuardedBackend(self._config.policy, self._resolve, allowed=allow_ips, inner=self._backend),
        )

    async def _send(
        self, key: "_Key", connection: httpcore2.AsyncHTTPConnection, request: httpcore2.Request, reading: "_Reading"
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
    """Idle connections by endpoint, the last used first.

    Not httpcore2's own pool, which polls each of its idle connections for every request.
    """

    def __init__(self, config: HttpConfig) -> None:
        self._config = config
        self._by_endpoint: dict[_Key, list[httpcore2.AsyncHTTPConnection]] = {}
        self._by_age: OrderedDict[httpcore2.AsyncHTTPConnection, _Key] = OrderedDict()
        self._is_closed = False

    async def take(self, key: _Key) -> httpcore2.AsyncHTTPConnection | None:
        """An idle connection that is still open; None if a new one is needed."""
        while idle := self._by_endpoint.get(key):
            connection = idle[-1]
            self._forget(connection)
            if connection.is_idle() and not connection.has_expired():
                return connection
            await _close(connection)
        return None

    async def keep(self, key: _Key, connection: httpcore2.AsyncHTTPConnection) -> None:
        """Keep it for the endpoint's next request, within the limit."""
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
        """Close all idle connections; those in use are closed when they are returned."""
        self._is_closed = True
        while self._by_age:
            connection = next(iter(self._by_age))
            self._forget(connection)
            await _close(connection)

    def _forget(self, connection: httpcore2.AsyncHTTPConnection) -> None:
        key = self._by_age.pop(connection)
        idle = self._by_endpoint[key]
        idle.remove(connection)
        if not idle:
            del self._by_endpoint[key]


def _has_surplus(connection: httpcore2.AsyncHTTPConnection) -> bool:
    """Whether bytes follow the answer: they would be read as the answer to the next request.

    httpcore2 has no public name for this. Where its inner names change, connections are closed, and a test fails.
    """
    inner = getattr(connection, "_connection", None)
    if type(inner).__name__ == "AsyncHTTP2Connection":
        return False  # answers carry the number of their request
    state = getattr(inner, "_h11_state", None)
    return state is None or bool(state.trailing_data[0])


async def _close(connection: httpcore2.AsyncHTTPConnection) -> None:
    with suppress(Exception):  # the peer may have closed it already
        await connection.aclose()


@dataclass(slots=True)
class _Reading:
    """The part of an answer that has arrived."""

    status: int | None = None
    retry_after: str | None = None
    content: bytes = b""

    def begin(self, response: httpcore2.Response) -> None:
        self.status = response.status
        self.retry_after = next(
            (value.decode("latin-1") for name, value in response.headers if name.lower() == b"retry-after"), None
        )

    def add(self, part: bytes) -> bool:
        """Keep what fits; True when the limit is reached."""
        self.content = (self.content + part)[:MAX_BODY_BYTES]
        return len(self.content) >= MAX_BODY_BYTES

    def reply(self, duration: timedelta) -> Reply:
        # PostgreSQL stores no U+0000, and receivers send any bytes.
        text = self.content.decode(errors="replace").replace("\0", "\ufffd")
        return Reply(duration, self.status, text or None, self.retry_after)


def _explain(exc: Exception) -> str:
    text = str(exc) or type(exc).__name__
    if isinstance(exc.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in text:
        cause = exc.__cause__
        why = getattr(cause, "verify_message", None) or text
        return f"the certificate is not valid: {why}"[:_MAX_ERROR_LENGTH]
    return f"{_KINDS.get(_kind(exc), 'the connection failed')}: {text}"[:_MAX_ERROR_LENGTH].replace("\0", "")


_KINDS = {"protocol": "the answer is not valid HTTP", "tls": "TLS failed", "connection": "the connection failed"}


def _kind(exc: Exception) -> str:
    if isinstance(exc, httpcore2.ProtocolError):
        return "protocol"
    if isinstance(exc.__cause__, ssl.SSLError) or "SSL" in str(exc) or "CERTIFICATE" in str(exc):
        return "tls"
    return "connection"


def _since(started: float) -> timedelta:
    return timedelta(seconds=time.monotonic() - started)


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():g} s"
