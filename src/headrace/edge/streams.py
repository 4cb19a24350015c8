"""Live streams: how one goes on, for tasks, notifications and changes alike.

A stream holds no connection to the database. It reads what is new when it is woken, says every few seconds that it is
there, and asks as often whether its user may still see it. While nobody can tell, as when the database is away, it goes
on and shows nothing.
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


async def stream(
    read: Callable[[], Awaitable[Sequence[News]]],
    *,
    woken: asyncio.Event,
    limits: StreamLimits,
    is_stopped: Callable[[], bool],
    may_see: MaySee | None,
) -> AsyncGenerator[News | Heartbeat | Revoked, None]:
    """What ``read`` gives, now and whenever the stream is woken, until its time is over or the process stops.

    ``may_see`` is asked at every heartbeat, also while there is so much news that none is sent. A ``read`` that leaves
    something behind wakes the stream itself.
    """
    every = limits.heartbeat.total_seconds()
    ends_at = time.monotonic() + limits.longest.total_seconds()
    check_at = time.monotonic() + every
    while not is_stopped() and time.monotonic() < ends_at:
        woken.clear()
        allowed: bool | None = True
        if may_see is not None and time.monotonic() >= check_at:
            allowed = await _ask(may_see)
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


async def _ask(may_see: MaySee) -> bool | None:
    """Whether the user may still look on; None when nobody can tell."""
    try:
        return await may_see()
    except HeadraceError as exc:
        log.warning("stream.access_unknown", error=exc.code)
    except Exception:
        log.exception("stream.access_unknown")
    return None
