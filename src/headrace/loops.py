"""The loop around a ``run_once``: again and again, through whatever goes wrong, for as long as the process lives."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta

from headrace import logs
from headrace.errors import HeadraceError

log = logs.get(__name__)

_FIRST_WITHIN_S = 1.0


async def repeat(run_once: Callable[[], Awaitable[object]], every: timedelta, *, failed: str) -> None:
    """Call it every so often. What it raises is logged under ``failed``: the next round may fare better, and a loop
    must not take the process down that it runs in."""
    whole = every.total_seconds()
    pause = random.uniform(0, min(whole, _FIRST_WITHIN_S))  # noqa: S311
    while True:
        await asyncio.sleep(pause)
        try:
            await run_once()
        except HeadraceError as exc:
            log.warning(failed, error=exc.code, reason=exc.operator_message)
        except Exception:
            log.exception(failed)
        # Processes that started together must not look together.
        pause = whole * random.uniform(0.5, 1.5)  # noqa: S311
