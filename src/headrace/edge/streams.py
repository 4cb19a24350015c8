"""Live streams of tasks, notifications and changes.

A stream holds no database connection. It reads news when it is woken, sends a heartbeat every few seconds, and checks
at each heartbeat whether its user may still read it. While that is unknown, as when the database is away, it stays open
and sends nothing.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from headrace import logs
from headrace.errors import Exhausted, HeadraceError

log = logs.get(__name__)

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


async def stream(
    read: Callable[[], Awaitable[Sequence[News]]],
    *,
    woken: asyncio.Event,
    limits: StreamLimits,
    is_stopped: Callable[[], bool],
    may_see: MaySee | None,
) -> AsyncGenerator[News | Heartbeat | Revoked, None]:
    """Yield what ``read`` returns, now and on each wake-up, until the time limit or the end of the process.

    ``may_see`` is called at every heartbeat interval, also when frequent news replaces heartbeats. A ``read`` that
    leaves rows unread wakes the stream itself.
    """
    every = limits.heartbeat.total_seconds()
    ends_at = time.monotonic() + limits.longest.total_seconds()
    check_at = time.monotonic() + every
    while not is_stopped() and time.monotonic() < ends_at:
        woken.clear()
        allowed: bool | None = True
        if may_see is not None and time.monotonic() >= check_at:
            allowed = await _check_permission(may_see)
            if allowed is False:
                yield Revoked()
                return
            if allowed:
                check_at = time.monotonic() + every
        if allowed:
            for each in await read():
                yield each
        try:
            async with asyncio.timeout(every):
                await woken.wait()
        except TimeoutError:
            yield Heartbeat()


async def _check_permission(may_see: MaySee) -> bool | None:
    """Whether the user may still read; None when that cannot be checked."""
    try:
        return await may_see()
    except HeadraceError as exc:
        log.warning("stream.access_unknown", error=exc.code)
    except Exception:
        log.exception("stream.access_unknown")
    return None
