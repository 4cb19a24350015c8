"""Loops that live as long as their process: what wakes them, and how they go on after a failure."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing, suppress
from datetime import timedelta
from typing import Protocol

from headrace import logs
from headrace.errors import HeadraceError

log = logs.get(__name__)

_FIRST_WITHIN_S = 1.0


class Listens(Protocol):
    """A database that gives notifications."""

    def listen(self, *channels: str) -> AsyncGenerator[object, None]: ...


class Waker:
    """What a loop sleeps on: it is woken at once, and looks by itself after a while, for a wake-up that was lost."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """There may be something to do: look now."""
        self._woken.set()

    def clear(self) -> None:
        """Before a look: what comes from now on is for the next one."""
        self._woken.clear()

    async def listen(self, db: Listens, channel: str) -> None:
        """Wake with every notification of this channel, for ever."""
        async with aclosing(db.listen(channel)) as notes:
            async for _ in notes:
                self.wake()

    async def wait(self, seconds: float, *, stop: asyncio.Event | None = None) -> bool:
        """Sleep until something wakes, ``stop`` is set or the time is over; says whether it was woken."""
        events = [self._woken] if stop is None else [self._woken, stop]
        waiting = [asyncio.create_task(each.wait()) for each in events]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
        return self._woken.is_set()


async def pause(seconds: float, *, stop: asyncio.Event) -> None:
    """Sleep for this time, or until ``stop``."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


class FailuresLogged(AbstractContextManager[None]):
    """Logs what is raised in the block, and goes on behind it: the next round may fare better."""

    def __init__(self, event: str, **facts: object) -> None:
        self._event = event
        self._facts = facts

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, HeadraceError):
            log.warning(self._event, error=error.code, reason=error.operator_message, **self._facts)
        elif isinstance(error, Exception):
            log.error(self._event, exc_info=error, **self._facts)
        return isinstance(error, Exception)


async def persist(act: Callable[[], Awaitable[None]], *, failed: str, pause: timedelta) -> None:
    """Begin it again after each failure, until it ends by itself."""
    while True:
        with FailuresLogged(failed):
            return await act()
        await asyncio.sleep(pause.total_seconds())


async def repeat(run_once: Callable[[], Awaitable[object]], every: timedelta, *, failed: str) -> None:
    """Call it every so often. What it raises is logged under ``failed``: the next round may fare better, and a loop
    must not take the process down that it runs in."""
    whole = every.total_seconds()
    pause = random.uniform(0, min(whole, _FIRST_WITHIN_S))  # noqa: S311
    while True:
        await asyncio.sleep(pause)
        with FailuresLogged(failed):
            await run_once()
        # Processes that started together must not look together.
        pause = whole * random.uniform(0.5, 1.5)  # noqa: S311
