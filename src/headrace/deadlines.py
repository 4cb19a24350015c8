"""Waiting for a task, but not for ever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta


def not_over(task_id: str, within: timedelta) -> TimeoutError:
    return TimeoutError(f"{task_id} was not over within {within.total_seconds():g} s; it goes on.")


@asynccontextmanager
async def deadline(task_id: str, within: timedelta | None) -> AsyncIterator[None]:
    """``TimeoutError`` if what is done in it takes longer; says what was waited for, and for how long."""
    limit = asyncio.timeout(None if within is None else within.total_seconds())
    try:
        async with limit:
            yield
    except TimeoutError as exc:
        if within is None or not limit.expired():  # somebody else's
            raise
        raise not_over(task_id, within) from exc
