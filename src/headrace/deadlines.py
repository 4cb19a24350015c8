"""Timeouts of waiting for a task."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta


def not_over(task_id: str, within: timedelta) -> TimeoutError:
    return TimeoutError(f"{task_id} did not end within {within.total_seconds():g} s; it continues.")


@asynccontextmanager
async def deadline(task_id: str, within: timedelta | None) -> AsyncIterator[None]:
    """``TimeoutError`` if the block takes longer, with the task's id and the limit in the message."""
    limit = asyncio.timeout(None if within is None else within.total_seconds())
    try:
        async with limit:
            yield
    except TimeoutError as exc:
        if within is None or not limit.expired():  # the timeout of another scope
            raise
        raise not_over(task_id, within) from exc
