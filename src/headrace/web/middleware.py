"""Middleware of every request. Plain ASGI, from the outside in:

``RequestFacts``     sets the request id and client address, and records the end (log, metrics)
``ResponseHeaders``  adds security headers and rate limit headers
``BodyLimit``        reads the body, up to the limit
``LastResort``       turns an unexpected error into an answer without details
``Head``             answers HEAD like GET, without the body
"""

import asyncio
import hashlib
import random
import re
import time
from collections.abc import Callable, Mapping

import structlog
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace import ids, logs
from headrace.edge.errors import BodyTooLarge, InvalidJson, RequestTooSlow
from headrace.edge.facts import Facts, attach
from headrace.edge.open_bodies import OpenBodies
from headrace.edge.problem_details import INTERNAL, answer, answer_to
from headrace.errors import HeadraceError
from headrace.web.address import client_address
from headrace.web.config import WebConfig
from headrace.web.metrics import Metrics

log = logs.get(__name__)

REQUEST_ID = "X-Request-Id"

# Fields of answers as they are sent: encoding them for each answer took longer than adding them.
_REQUEST_ID_FIELD = REQUEST_ID.lower().encode()
_POLICY = b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"
_NOT_KEPT = b"cache-control", b"no-store"

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
# Any version but ff; later versions may add fields after the flags.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_MAX_USER_AGENT = 512
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
_CLIENT_GONE = 499  # nginx's status for it, only for logs and metrics

RouteName = Callable[[Scope], str]


class RequestFacts:
    """Gathers the facts of a request, and logs and counts it at its end."""

    def __init__(self, app: ASGIApp, *, config: WebConfig, metrics: Metrics, route_name: RouteName) -> None:
        self._app = app
        self._config = config
        self._metrics = metrics
        self._route_name = route_name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        facts = self._gather(scope)
        attach(scope, facts)
        started = time.perf_counter()
        status = _CLIENT_GONE

        async def note_and_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (_REQUEST_ID_FIELD, facts.request_id.encode())]
            await send(message)

        with (
            structlog.contextvars.bound_contextvars(request_id=facts.request_id),
            self._metrics.in_flight.track_inprogress(),
        ):
            try:
                await self._app(scope, receive, note_and_send)
            finally:
                self._record_end(scope, facts, status, time.perf_counter() - started)

    def _gather(self, scope: Scope) -> Facts:
        headers = Headers(scope=scope)
        sent_id = headers.get(REQUEST_ID, "")
        trace = _TRACEPARENT.fullmatch(headers.get("traceparent", "").strip())
        peer = scope.get("client")
        return Facts(
            method=scope["method"],
            path=scope["path"],
            request_id=sent_id if _REQUEST_ID.fullmatch(sent_id) else ids.new("req"),
            client_ip=client_address(
                peer[0] if peer else None, headers.getlist("x-forwarded-for"), self._config.trusted_proxies
            ),
            user_agent=headers.get("user-agent", "")[:_MAX_USER_AGENT] or None,
            trace_id=trace[1] if trace else None,
        )

    def _record_end(self, scope: Scope, facts: Facts, status: int, seconds: float) -> None:
        route = self._route_name(scope)
        self._metrics.served(facts.method, route, status, seconds)
        note = log.debug if route in _QUIET else log.info
        note(
            "request.served",
            method=facts.method,
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            user_id=facts.caller.user_id if facts.caller else None,
        )


class ResponseHeaders:
    """Adds security headers for browsers, and rate limit headers for clients."""

    def __init__(self, app: ASGIApp, *, config: WebConfig) -> None:
        self._app = app
        always: Mapping[str, str] = {
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "X-Frame-Options": "DENY",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
            **({"Strict-Transport-Security": "max-age=31536000"} if config.https else {}),
        }
        self._always = [(name.lower().encode(), value.encode()) for name, value in always.items()]
        self._forced = frozenset(name for name, _ in self._always)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [each for each in message["headers"] if each[0].lower() not in self._forced]
                there = {name for name, _ in own}
                more = list(self._always)
                # Pages set their own policy; all other answers are data, which must load and run nothing.
                if _POLICY[0] not in there:
                    more.append(_POLICY)
                if scope["path"].startswith("/v1") and _NOT_KEPT[0] not in there:
                    more.append(_NOT_KEPT)
                facts: Facts = scope["state"]["facts"]
                if facts.allowance is not None:
                    more += [(name.lower().encode(), each.encode()) for name, each in facts.allowance.headers().items()]
                message["headers"] = [*own, *more]
            await send(message)

        await self._app(scope, receive, send_with_headers)


# The time for a whole body. Jitter shortens it a little, so that bodies that began together, as in an attack, do not
# all time out at once.
_BODY_WITHIN_S = 30.0


# Of 2,000 requests of a process. Many short bodies may come at once, so the limits are higher than for files.
MAX_PER_CREDENTIAL, MAX_PER_ADDRESS = 256, 512


class BodyLimit:
    """Reads the whole body before routing, and refuses one that is too large."""

    def __init__(self, app: ASGIApp, *, config: WebConfig) -> None:
        self._app = app
        self._limit = config.body_limit
        self._streamed = re.compile("|".join(config.streamed_paths) or r"(?!)")
        self._open = OpenBodies(per_user=MAX_PER_CREDENTIAL, per_address=MAX_PER_ADDRESS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._streamed.fullmatch(f"{scope['method']} {scope['path']}"):
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(_BODY_WITHIN_S * random.uniform(0.7, 1)):  # noqa: S311 - spreads load, guards nothing
                body = await self._read(scope, receive)
        except TimeoutError:
            await self._refuse(RequestTooSlow("The body of the request took too long."), scope, receive, send)
            return
        except HeadraceError as error:
            await self._refuse(error, scope, receive, send)
            return
        if body is None:
            return  # the client disconnected
        body_given = False

        async def give_body() -> Message:
            nonlocal body_given
            if body_given:
                return await receive()
            body_given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, give_body, send)

    async def _refuse(self, error: HeadraceError, scope: Scope, receive: Receive, send: Send) -> None:
        response = answer_to(error, scope["state"]["facts"])
        # The rest of the body will not be read.
        response.headers["Connection"] = "close"
        await response(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        headers = Headers(scope=scope)
        announced = headers.get("content-length", "0")
        if not (announced.isascii() and announced.isdigit()):
            raise InvalidJson("Content-Length is not a number.")
        if len(announced) > 19 or int(announced) > self._limit:
            raise self._too_large()
        if announced == "0" and "transfer-encoding" not in headers:
            return await self._gather(receive)
        # The user is not authenticated yet: the credential represents the user.
        facts: Facts = scope["state"]["facts"]
        with self._open.hold(user=_credential(headers), address=facts.client_ip):
            return await self._gather(receive)

    async def _gather(self, receive: Receive) -> bytes | None:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > self._limit:
                raise self._too_large()
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(f"The body may have at most {self._limit} bytes.", limit=self._limit)


def _credential(headers: Headers) -> str | None:
    credential = headers.get("authorization") or headers.get("cookie")
    return None if credential is None else hashlib.sha256(credential.encode()).hexdigest()


class LastResort:
    """Logs an unexpected error with its stack, and answers 500 without details."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watch_and_send(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watch_and_send)
        except Exception:
            log.exception("request.failed", method=scope["method"], path=scope["path"])
            if started:
                raise  # the answer has begun: only breaking the connection shows the client that it is incomplete
            await answer(INTERNAL, scope["state"]["facts"])(scope, receive, send)


class Head:
    """HEAD for every route that takes GET: the same checks, limits and headers, and no body (RFC 9110, 9.3.2)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        over = False

        async def send_without_body(message: Message) -> None:
            nonlocal over
            if message["type"] != "http.response.body":
                await send(message)
                return
            if over:
                # Ends a stream, which would run while it is read.
                raise OSError("the answer to a HEAD is complete")
            over = True
            await send({"type": "http.response.body"})

        scope["method"] = "GET"
        scope["headrace.head"] = True  # lets routes skip expensive bodies
        try:
            await self._app(scope, receive, send_without_body)
        except ClientDisconnect:
            if not over:
                raise
        finally:
            scope["method"] = "HEAD"
