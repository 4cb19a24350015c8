"""uvicorn's HTTP/1.1 with stricter parsing and a timeout for every wait."""

import asyncio
import re
import sys
from typing import Any, Final

import h11
from h11._receivebuffer import ReceiveBuffer
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from headrace.edge.errors import RequestTooSlow
from headrace.edge.problem_details import MEDIA_TYPE, Problem, answer_to, headers_of, plain, problem_of
from headrace.web.connections import Connections, Phase

_BARE_LF = re.compile(rb"(?<!\r)\n")
_MAX_HEAD = 16 * 1024
_VERSIONS = frozenset({b"1.0", b"1.1"})

# h11's messages quote the client's bytes; these sentences are safe to send.
_LINE_ENDS: Final = "Lines of a request's head end with CR LF."
_TWO_LENGTHS: Final = "A request has a Content-Length or a Transfer-Encoding, not both."
_OLD_CHUNKS: Final = "HTTP/1.0 has no Transfer-Encoding."
_VERSION: Final = "This server supports HTTP/1.1 and HTTP/1.0."
_TOO_LARGE: Final = "The head of a request may have at most 16 KiB."
_OURS = frozenset({_LINE_ENDS, _TWO_LENGTHS, _OLD_CHUNKS, _VERSION})
_DETAILS = {
    400: "This is not an HTTP/1.1 request.",
    431: _TOO_LARGE,
    501: "The only supported transfer encoding is chunked.",
}


class StrictBuffer(ReceiveBuffer):
    """Accepts only CR LF. A proxy that reads a bare LF differently would see other requests (request smuggling)."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        end = self._data.find(b"\r\n\r\n")
        size = len(self._data) if end < 0 else end
        if size > _MAX_HEAD:  # h11 limits only incomplete heads
            raise h11.LocalProtocolError(_TOO_LARGE, error_status_hint=431)
        if _BARE_LF.search(self._data, 0, size):
            raise h11.LocalProtocolError(_LINE_ENDS)
        return super().maybe_extract_lines()


class StrictConnection(h11.Connection):
    """Refuses heads that another parser might read differently (RFC 9112, 6.1), and invalid versions."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, _MAX_HEAD)
        assert type(self._receive_buffer) is ReceiveBuffer  # otherwise the next line has no effect
        self._receive_buffer = StrictBuffer()

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if event.http_version not in _VERSIONS:
                raise h11.RemoteProtocolError(_VERSION, error_status_hint=505)
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError(_TWO_LENGTHS)
            if event.http_version == b"1.0" and b"transfer-encoding" in names:
                raise h11.RemoteProtocolError(_OLD_CHUNKS)
        return event


class GuardedProtocol(H11Protocol):
    """One connection, under the limits of ``connections``."""

    phase = Phase.HEAD
    since = 0.0
    address: str | None = None

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = connections
        self._served = self.app
        self._refused = False
        self.app = self._admitted
        self.conn = StrictConnection()

    # -- events of the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self._all.bucket_of(self.client[0] if self.client else None)
        if (refusal := self._all.open(self)) is not None:
            self._refuse(problem_of(refusal), headers_of(refusal))

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return  # read and discarded: unread data would make the kernel drop our answer
        super().data_received(data)
        self._settle(received=True)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._settle()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._settle()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._settle()

    def shutdown(self) -> None:
        if self._refused:
            self.transport.abort()
        elif not self.transport.is_closing():
            super().shutdown()

    def _settle(self, *, received: bool = False) -> None:
        self._all.enter(self, self._phase_now(received=received))

    @property
    def _latest(self) -> RequestResponseCycle | None:
        """The last request; uvicorn's type wrongly excludes None."""
        return self.cycle

    def _phase_now(self, *, received: bool) -> Phase:
        # First: a refused client that does not read has the same timeout as other closing ones.
        if self._refused or self.transport.is_closing():
            return Phase.CLOSING
        if self.flow.write_paused:
            return Phase.STALLED
        if (request := self._latest) is None:
            return Phase.HEAD
        if not request.response_complete:
            return Phase.BODY if request.more_body else Phase.WORK
        # The rest of an abandoned body is not a new request.
        return Phase.HEAD if received and self.conn.their_state is h11.IDLE else Phase.IDLE

    # -- decisions of ``connections``

    def expire(self) -> None:
        if self.phase is Phase.HEAD and self.conn.trailing_data[0]:
            slow = RequestTooSlow("The head of the request took too long.")
            self._refuse(problem_of(slow), headers_of(slow))
        elif self.phase in {Phase.HEAD, Phase.IDLE}:
            self.transport.close()
            self._settle()
        else:
            self.transport.abort()

    def drop(self) -> None:
        self.transport.abort()

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (refusal := self._all.admit(scope["path"])) is None:
            await self._served(scope, receive, send)
            return
        response = answer_to(refusal, None)
        response.headers["Connection"] = "close"
        await response(scope, receive, send)

    # -- refusing malformed requests

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's sentence
        # uvicorn calls this in an except block, and does not pass the error.
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        detail = str(error) if str(error) in _OURS else _DETAILS.get(status)
        self._refuse(plain(status, detail=detail))

    def _refuse(self, problem: Problem, headers: dict[str, str] | None = None) -> None:
        if (request := self._latest) is not None and not request.response_complete:
            if request.response_started:
                self.transport.abort()  # another answer has begun
                return
            request.disconnected = True
            request.message_event.set()
        self._refused = True
        self.transport.write(_raw(problem, headers or {}))
        # Closes only our side: after a full close, data that the client still sends would make the kernel drop the
        # answer. ``connections`` limits the wait for the client's side.
        self.transport.write_eof()
        self._settle()


def _raw(problem: Problem, headers: dict[str, str]) -> bytes:
    body = problem.model_dump_json(exclude_none=True).encode()
    head = {
        "Content-Type": MEDIA_TYPE,
        "Content-Length": str(len(body)),
        "Connection": "close",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        **headers,
    }
    lines = [f"HTTP/1.1 {problem.status} {problem.title}", *(f"{name}: {value}" for name, value in head.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body
