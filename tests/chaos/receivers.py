"""Receivers of webhooks on loopback: a healthy one, and those that misbehave in one way each."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from tests.webhooks.receiver import Answer, Receiver, Request, hangs, receiving, says

_OK = says(204)


async def drips(_: Request, writer: asyncio.StreamWriter) -> None:
    """A head that never ends, a byte at a time."""
    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 3600:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.3)


async def answers_twice(request: Request, writer: asyncio.StreamWriter) -> None:
    """The second answer lies ready for whatever is sent next over this connection."""
    await _OK(request, writer)
    await _OK(request, writer)


async def is_busy(request: Request, writer: asyncio.StreamWriter) -> None:
    await (_OK if random.random() < 0.6 else says(503, headers="Retry-After: 1\r\n"))(request, writer)


BAD: Mapping[str, Answer] = {
    "hangs": hangs,
    "drips": drips,
    "twice": answers_twice,
    "refuses": says(500),
    "gone": says(410),
    "busy": is_busy,
}
# Those that never say yes: no delivery to them may be on record as a success.
NEVER_CONTENT = ("hangs", "drips", "refuses", "gone")


@dataclass
class Receivers:
    """The healthy receiver has an address of its own; the others share one, as several users' endpoints behind one
    proxy do, so that what one of them answers could be taken for another one's answer."""

    healthy: Receiver
    bad: Receiver
    accepted: set[str] = field(default_factory=set)  # events that the healthy one has answered
    requests: Counter[str] = field(default_factory=Counter)

    def urls(self) -> dict[str, str]:
        shared = self.bad.url.removesuffix("/hooks")
        return {"healthy": self.healthy.url, **{name: f"{shared}/{name}" for name in BAD}}

    async def take(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.requests["healthy"] += 1
        self.healthy.requests.clear()
        await _OK(request, writer)
        self.accepted.add(request.headers["webhook-id"])

    async def misbehave(self, request: Request, writer: asyncio.StreamWriter) -> None:
        name = request.path.strip("/")
        self.requests[name] += 1
        self.bad.requests.clear()
        await BAD[name](request, writer)


@asynccontextmanager
async def all_receivers() -> AsyncIterator[Receivers]:
    async with AsyncExitStack() as stack:
        found = Receivers(await stack.enter_async_context(receiving()), await stack.enter_async_context(receiving()))
        found.healthy.answer, found.bad.answer = found.take, found.misbehave
        yield found
