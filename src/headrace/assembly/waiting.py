"""Waits for a database that restarts or is overloaded: a role that starts at that moment waits like a running one."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from headrace.database_errors import DatabaseBusy, DatabaseUnavailable

T = TypeVar("T")

_FIRST_PAUSE_S = 0.2
_MAX_PAUSE_S = 5.0
_SAY_EVERY_S = 30.0


async def until_reachable(ask: Callable[[], Awaitable[T]], *, notify: Callable[[str], None]) -> T:
    """The database's answer, as soon as it is reachable; a refusal is raised at once.

    Reports the wait at the beginning, and then twice a minute.
    """
    pause, say_at = _FIRST_PAUSE_S, 0.0
    while True:
        try:
            return await ask()
        except (DatabaseUnavailable, DatabaseBusy) as exc:
            if time.monotonic() >= say_at:
                notify(f"{exc.message} Waiting for it; Ctrl-C ends this.")
                say_at = time.monotonic() + _SAY_EVERY_S
        await asyncio.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_S)
