"""The loop around a ``run_once``: again and again, through whatever goes wrong, for as long as the process lives."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta

from headrace import logs
from headrace.errors import HeadraceError

log = logs.get(__name__)


async def repeat(run_once: Callable[[], Awaitable[object]], every: timedelta, *, failed: str) -> None:
    """Call it every so often. What it raises is logged under ``failed``: the next round may fare better, and a loop
    must not take the process down that it runs in."""
    while True:
        # Processes that started together must not look together.
        await asyncio.sleep(every.total_seconds() * random.uniform(0.5, 1.5))  # noqa: S311
        try:
            await run_once()
        except HeadraceError as exc:
            log.warning(failed, error=exc.code)
        except Exception:
            log.exception(failed)
