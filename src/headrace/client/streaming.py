"""A parser of server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerEvent:
    kind: str
    data: str
    id: str | None


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[ServerEvent, None]:
    """Yield complete events; comments (heartbeats) are skipped."""
    kind, last_id = "message", None
    data: list[str] = []
    async with aclosing(_lines(chunks)) as lines:
        async for line in lines:
            if not line:
                if data:
                    yield ServerEvent(kind, "\n".join(data), last_id)
                kind, data = "message", []
                continue
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match name:
                case "event":
                    kind = value
                case "data":
                    data.append(value)
                case "id":
                    last_id = value


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    # Not httpx2's aiter_lines, which splits at all Unicode line breaks, also inside JSON.
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode()
