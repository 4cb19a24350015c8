"""What a block does that holds a lock, whoever gives it: the database, or a server in between."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

NEVER = 60  # seconds: longer than any test

Hold = Callable[[], AbstractAsyncContextManager[Any]]


async def take_turns(hold: Hold, *, blocks: int, seconds: float) -> list[int]:
    """Several who wait for the same lock, each in it for so long; gives their fences in the order of their turns."""
    inside = 0
    fences: list[int] = []

    async def body() -> None:
        nonlocal inside
        async with hold() as lock:
            inside += 1
            assert inside == 1
            await asyncio.sleep(seconds)
            fences.append(lock.fence)
            inside -= 1

    async with asyncio.timeout(60):
        await asyncio.gather(*(body() for _ in range(blocks)))
    return fences


async def lose(hold: Hold, take_away: Callable[[], Awaitable[object]]) -> None:
    """A block that goes on while its lock is taken away, until it is canceled; raises what it is told then."""
    canceled = False
    try:
        async with hold():
            await take_away()
            try:
                await asyncio.sleep(NEVER)
            except asyncio.CancelledError:
                canceled = True
                raise
    finally:
        assert canceled
