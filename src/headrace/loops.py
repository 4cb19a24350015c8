"""Loops that run as long as their process: wake-ups, and recovery after failures."""

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
    """A database with notifications."""

    def listen(self, *channels: str) -> AsyncGenerator[object, None]: ...


class Waker:
    """Sleep of a loop: ended by a wake-up at once, or by a timeout, in case a wake-up was lost."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Wake the loop: there may be work."""
        self._woken.set()

    def clear(self) -> None:
        """Clear the wake-up before polling: later ones count for the next round."""
        self._woken.clear()

    async def listen(self, db: Listens, channel: str) -> None:
        """Wake the loop on every notification of this channel, for ever."""
        async with aclosing(db.listen(channel)) as notes:
            async for _ in notes:
                self.wake()

    async def wait(self, seconds: float, *, stop: asyncio.Event | None = None) -> bool:
        """Sleep until a wake-up, ``stop`` or the timeout; returns whether it was woken."""
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
    """Logs exceptions of the block and suppresses them: the next round may succeed."""

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
    """Restart it after each failure, until it returns."""
    while True:
        with FailuresLogged(failed):
            return await act()
        await asyncio.sleep(pause.total_seconds())


async def repeat(run_once: Callable[[], Awaitable[object]], every: timedelta, *, failed: str) -> None:
    """Call it periodically. Exceptions are logged under ``failed``: the next round may succeed, and a loop must not end
    its process."""
    whole = every.total_seconds()
    pause = random.uniform(0, min(whole, _FIRST_WITHIN_S))  # noqa: S311
    while True:
        await asyncio.sleep(pause)
        with FailuresLogged(failed):
            await run_once()
        # Jitter, so that processes that started together do not poll together.
        pause = whole * random.uniform(0.5, 1.5)  # noqa: S311
