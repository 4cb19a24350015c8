"""Receivers on loopback: good ones, bad ones, and one that does as it is told, byte by byte."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def says(status: int, *, body: str = "", headers: str = "") -> Answer:
    """Answers so, and keeps the connection."""

    async def answer(_: Request, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body.encode())}\r\n{headers}\r\n"
        writer.write(head.encode() + body.encode())

    return answer


async def hangs(_: Request, __: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


@dataclass
class Receiver:
    """``answer`` may be changed while it runs."""

    answer: Answer = field(default_factory=lambda: says(204))
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/hooks"

    @property
    def ids(self) -> list[str]:
        return [request.headers["webhook-id"] for request in self.requests]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                await self.answer(request, writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(first.split(" ")[1], headers, body)


@asynccontextmanager
async def receiving(answer: Answer | None = None, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver() if answer is None else Receiver(answer)
    handlers: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        try:
            await receiver.handle(reader, writer)
        finally:
            handlers.discard(task)

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    receiver.scheme = "http" if tls is None else "https"
    try:
        yield receiver
    finally:
        server.close()
        for task in list(handlers):
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await server.wait_closed()
