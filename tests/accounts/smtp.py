"""An SMTP server on loopback that keeps what it receives."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class Mailbox:
    """``refusals`` are answered to the next messages, before one is accepted."""

    port: int = 0
    refusals: list[str] = field(default_factory=list)
    messages: list[EmailMessage] = field(default_factory=list)
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def wait(self, number: int) -> list[EmailMessage]:
        """At least this many messages."""
        async with asyncio.timeout(60), self.arrived:
            await self.arrived.wait_for(lambda: len(self.messages) >= number)
        return self.messages


def token_in(message: EmailMessage) -> str:
    found = re.search(r"#token=(\S+)", message.get_content())
    assert found is not None, message.get_content()
    return found[1]


@asynccontextmanager
async def open_mailbox() -> AsyncIterator[Mailbox]:
    mailbox = Mailbox()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _talk(mailbox, reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    mailbox.port = server.sockets[0].getsockname()[1]
    async with server:
        yield mailbox


async def _talk(mailbox: Mailbox, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 loopback\r\n")
    while line := await reader.readline():
        match line[:4].upper():
            case b"DATA":
                writer.write(b"354 go on\r\n")
                content = await reader.readuntil(b"\r\n.\r\n")
                if mailbox.refusals:
                    writer.write(f"{mailbox.refusals.pop(0)}\r\n".encode())
                    continue
                message = message_from_bytes(content[:-3], policy=policy.default)
                assert isinstance(message, EmailMessage)
                async with mailbox.arrived:
                    mailbox.messages.append(message)
                    mailbox.arrived.notify_all()
                writer.write(b"250 kept\r\n")
            case b"QUIT":
                writer.write(b"221 bye\r\n")
                return
            case _:
                writer.write(b"250 loopback\r\n")
