"""Live streams of tasks, notifications and changes.

A stream holds no connection to the database. It reads what is new when it is woken, says every few seconds that it is
there, and asks as often whether its user may still see it. While the database is away it goes on and shows nothing.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.types import Send

from headrace.errors import Exhausted
from headrace.loops import FailuresLogged

News = TypeVar("News")

MaySee = Callable[[], Awaitable[bool]]
"""Whether the user of a stream may read it now; raises when that cannot be checked."""


class TooManyStreams(Exhausted):
    """Too many event streams are open: close one, or try again later."""

    code = "too_many_streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    # Interval of keepalives of silent streams, and of permission checks of all streams.
    heartbeat: timedelta = timedelta(seconds=10)
    # A stream ends after this time and the client reconnects with the last id, which spreads streams over processes.
    longest: timedelta = timedelta(minutes=15)
    most: int = 1000
    most_per_user: int = 20

    def check_room(self, users: Iterable[str], user_id: str) -> None:
        """``TooManyStreams`` if the limits allow no further stream of ``user_id``."""
        owners = list(users)
        if len(owners) >= self.most or owners.count(user_id) >= self.most_per_user:
            raise TooManyStreams(retry_after=self.heartbeat)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat without news."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """The user may no longer read the stream; it ends."""


class Subscriber(Protocol):
    """One open stream: its user and its wake-up event."""

    @property
    def user_id(self) -> str: ...

    @property
    def woken(self) -> asyncio.Event: ...


S = TypeVar("S", bound=Subscriber)


class Streams(Generic[S]):
    """The streams of one kind in one process; ``name`` is their prefix in the log."""

    def __init__(self, name: str, limits: StreamLimits) -> None:
        self._name = name
        self._limits = limits
        self._open: set[S] = set()
        self._any_open = asyncio.Event()
        self._stopped = False

    def __iter__(self) -> Iterator[S]:
        return iter(list(self._open))

    def __len__(self) -> int:
        return len(self._open)

    def stop(self) -> None:
        """End all streams, so that a shutdown need not wait for them. Clients reconnect to another process."""
        self._stopped = True
        for each in self._open:
            each.woken.set()

    def check_room(self, user_id: str) -> None:
        """Refuse a stream above the limits, before the answer has begun."""
        self._limits.check_room((each.user_id for each in self._open), user_id)

    @contextmanager
    def opened(self, subscriber: S) -> Iterator[S]:
        self._open.add(subscriber)
        self._any_open.set()
        try:
            yield subscriber
        finally:
            self._open.discard(subscriber)
            if not self._open:
                self._any_open.clear()

    async def look_while_open(
        self, run_once: Callable[[], Awaitable[object]], *, every: timedelta, idle: Callable[[], None] | None = None
    ) -> None:
        """Repeat ``run_once`` while streams are open, for at most a fifth of the time; call ``idle`` before each wait
        for the next stream. A failure is logged and delays the streams."""
        while True:
            if not self._any_open.is_set():
                if idle is not None:
                    idle()
                await self._any_open.wait()
            started = time.monotonic()
            with FailuresLogged(f"{self._name}.failed", streams=len(self)):
                await run_once()
            await asyncio.sleep(max(every.total_seconds(), 4 * (time.monotonic() - started)))

    async def news(
        self, subscriber: S, read: Callable[[], Awaitable[Sequence[News]]], *, may_see: MaySee | None
    ) -> AsyncGenerator[News | Heartbeat | Revoked, None]:
        """Yield what ``read`` returns, now and on each wake-up, until the time limit or the end of the process.

        ``may_see`` is asked at every heartbeat, also while there is so much news that none is sent. A ``read`` that
        leaves something behind wakes the stream itself; one that fails is logged, and repeated with the next heartbeat.
        """
        every = self._limits.heartbeat.total_seconds()
        ends_at = time.monotonic() + self._limits.longest.total_seconds()
        check_at = time.monotonic() + every
        while not self._stopped and time.monotonic() < ends_at:
            subscriber.woken.clear()
            allowed: bool | None = True
            if may_see is not None and time.monotonic() >= check_at:
                allowed = None
                with FailuresLogged("stream.access_unknown"):
                    allowed = await may_see()
                if allowed is False:
                    yield Revoked()
                    return
                if allowed:
                    check_at = time.monotonic() + every
            found: Sequence[News] = ()
            if allowed:
                with FailuresLogged(f"{self._name}.unread"):
                    found = await read()
            for each in found:
                yield each
            try:
                async with asyncio.timeout(every):
                    await subscriber.woken.wait()
            except TimeoutError:
                yield Heartbeat()


class EventStream(StreamingResponse):
    """A response of server-sent events, made by ``event_stream``."""

    media_type = "text/event-stream"

    async def stream_response(self, send: Send) -> None:
        # Starlette leaves closing to the garbage collector when the client disconnects during a send: until then the
        # stream would count against the limits.
        assert isinstance(self.body_iterator, AsyncGenerator)
        async with aclosing(self.body_iterator):
            await super().stream_response(send)


def event_stream(events: AsyncGenerator[bytes, None], *, come_back_after: timedelta) -> EventStream:
    """The response with these events; clients reconnect ``come_back_after`` a broken connection."""
    first = f"retry: {round(come_back_after.total_seconds() * 1000)}\n\n".encode()
    # otherwise nginx buffers events
    return EventStream(_after(first, events), headers={"X-Accel-Buffering": "no"})


async def _after(first: bytes, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async with aclosing(events):
        async for each in events:
            yield each


class RevokedOut(BaseModel):
    """The last event, sent when the user may no longer read the stream."""

    code: str = "revoked"
    detail: str = "The session or the API key has ended, or may no longer see this."


KEEPALIVE = b": still here\n\n"


def event(name: str, shown: BaseModel, *, id: object = None) -> bytes:  # noqa: A002 - the protocol's word
    """The wire format of one event. JSON contains no line breaks, so one data field is enough."""
    numbered = "" if id is None else f"id: {id}\n"
    return f"{numbered}event: {name}\ndata: {shown.model_dump_json()}\n\n".encode()
