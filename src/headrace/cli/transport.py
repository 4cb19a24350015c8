"""httpx2 to an ASGI app in this process.

Unlike ``httpx2.ASGITransport`` it gives the body in parts: an export of a million rows need not fit into memory.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import httpx2
from starlette.types import ASGIApp, Message

from headrace import ids
from headrace.edge.facts import Facts, attach

_PARTS_AHEAD = 4


class InProcess(httpx2.AsyncBaseTransport):
    """Each request is a task that runs the app; what the app raises is raised here."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        messages: asyncio.Queue[Message] = asyncio.Queue(_PARTS_AHEAD)
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        answering = self._app(_scope(request), _receiver(request.stream), messages.put)
        running: asyncio.Task[None] = asyncio.create_task(answering)  # type: ignore[arg-type]
        start = await _next(messages, running)
        if start["status"] == HTTPStatus.INTERNAL_SERVER_ERROR:  # Starlette sends it, and then raises the error
            await running
        body = _Body(messages, running)
        return httpx2.Response(start["status"], headers=start["headers"], stream=body)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, messages: "asyncio.Queue[Message]", running: "asyncio.Task[None]") -> None:
        self._messages = messages
        self._running = running

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        more = True
        while more:
            message = await _next(self._messages, self._running)
            more = message.get("more_body", False)
            yield message.get("body", b"")
        await self._running

    async def aclose(self) -> None:
        self._running.cancel()
        with suppress(asyncio.CancelledError):
            await self._running


async def _next(messages: "asyncio.Queue[Message]", running: "asyncio.Task[None]") -> Message:
    """The app's next message, or the error that ended it."""
    coming = asyncio.create_task(messages.get())
    try:
        await asyncio.wait({coming, running}, return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            return coming.result()
        if messages.empty():
            running.result()
            raise RuntimeError("the app ended without an answer")
        return await coming
    except asyncio.CancelledError:
        running.cancel()
        raise
    finally:
        coming.cancel()


def _receiver(stream: httpx2.AsyncByteStream) -> Any:
    parts = stream.__aiter__()
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()  # the client keeps listening until the task is canceled
        try:
            return {"type": "http.request", "body": await anext(parts), "more_body": True}
        except StopAsyncIteration:
            sent = True
            return {"type": "http.request", "body": b"", "more_body": False}

    return receive


def _scope(request: httpx2.Request) -> dict[str, Any]:
    url = request.url
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.split(b"?")[0],
        "query_string": url.query,
        "server": (url.host, url.port),
        "client": None,
        "root_path": "",
    }
    attach(scope, Facts(method=request.method, path=url.path, request_id=ids.new("req")))
    return scope
