"""Live streams: how one goes on, for tasks, notifications and changes alike.

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
"""Whether the user who opened a stream may see it now; raises when nobody can tell."""


class TooManyStreams(Exhausted):
    """Too many event streams are open: close one, or ask again later."""

    code = "too_many_streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    # How often a silent stream sends a keepalive, and every stream asks whether its user may still look on.
    heartbeat: timedelta = timedelta(seconds=10)
    # A stream ends after this, and the client comes back with the last id: so that streams spread over the processes.
    longest: timedelta = timedelta(minutes=15)
    most: int = 1000
    most_per_user: int = 20

    def check_room(self, users: Iterable[str], user_id: str) -> None:
        """``TooManyStreams`` if these users' streams leave no room for another of ``user_id``."""
        owners = list(users)
        if len(owners) >= self.most or owners.count(user_id) >= self.most_per_user:
            raise TooManyStreams(retry_after=self.heartbeat)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing new."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """The user who opened the stream may no longer see it; nothing follows."""


class Subscriber(Protocol):
    """One open stream: its user, and what wakes it."""

    @property
    def user_id(self) -> str: ...

    @property
    def woken(self) -> asyncio.Event: ...


S = TypeVar("S", bound=Subscriber)


class Streams(Generic[S]):
    """The streams of one process, of one kind; ``name`` is what the log calls them."""

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
        """End all streams: a server that shuts down need not wait for them. Clients come back elsewhere."""
        self._stopped = True
        for each in self._open:
            each.woken.set()

    def check_room(self, user_id: str) -> None:
        """Refuse a stream too many, while there is still an answer to refuse it with."""
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
        """Run this again and again while there are streams, at most a fifth of the time; ``idle`` before each wait for
        the next stream. A failure is logged: the streams wait a little longer."""
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
        """What ``read`` gives, now and whenever the stream is woken, until its time is over or the process stops.

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
    """Server-sent events; ``event_stream`` makes it."""

    media_type = "text/event-stream"

    async def stream_response(self, send: Send) -> None:
        # Starlette leaves it to the garbage collector when the client goes away while something is sent: until then
        # the stream would count.
        assert isinstance(self.body_iterator, AsyncGenerator)
        async with aclosing(self.body_iterator):
            await super().stream_response(send)


def event_stream(events: AsyncGenerator[bytes, None], *, come_back_after: timedelta) -> EventStream:
    """The answer with these events; a client whose connection breaks comes back after this time."""
    first = f"retry: {round(come_back_after.total_seconds() * 1000)}\n\n".encode()
    # nginx would otherwise gather events until it has a buffer full of them
    return EventStream(_after(first, events), headers={"X-Accel-Buffering": "no"})


async def _after(first: bytes, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async with aclosing(events):
        async for each in events:
            yield each


class RevokedOut(BaseModel):
    """The last event, when the user who opened the stream may no longer see it."""

    code: str = "revoked"
    detail: str = "The session or the API key has ended, or may no longer see this."


KEEPALIVE = b": still here\n\n"


def event(name: str, shown: BaseModel, *, id: object = None) -> bytes:  # noqa: A002 - the protocol's word
    """One event as it goes over the wire. JSON has no line breaks of its own, so one data field holds it."""
    numbered = "" if id is None else f"id: {id}\n"
    return f"{numbered}event: {name}\ndata: {shown.model_dump_json()}\n\n".encode()
