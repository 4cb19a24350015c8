"""Processes that die before or after one of their commits: forked from one that has loaded everything already."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.conftest import ROOT

Start = Callable[[int, str], Awaitable[int]]


@asynccontextmanager
async def nursery(program: str, database_url: str) -> AsyncIterator[Start]:
    """``await start(3, "before")`` is a process that dies before its third commit; gives how it ended."""
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", program, database_url),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    told, ending = parent.stdin, parent.stdout

    async def start(number: int, when: str) -> int:
        told.write(f"{number} {when}\n".encode())
        async with asyncio.timeout(60):
            return int(await ending.readline())

    yield start
    told.close()
    await parent.wait()
