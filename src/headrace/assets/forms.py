"""``multipart/form-data`` read as it comes: one file, never whole in memory.

Starlette's own parser writes the file to a temporary one first; ours is hashed and stored while it arrives.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from email.message import Message

from headrace.assets.errors import FormInvalid

_HEAD_LIMIT = 8 * 1024
_FIELD_LIMIT = 4 * 1024
_FILE_NAME = re.compile(rb'filename="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_NAME = re.compile(rb'[; ]name="((?:[^"\\]|\\.)*)"', re.IGNORECASE)


class Form:
    """``open()`` reads up to the file, ``pieces()`` gives its bytes; ``fields`` is what came before it."""

    def __init__(self, body: AsyncIterator[bytes], content_type: str) -> None:
        self._body = body
        self._buffer = bytearray()
        self._delimiter = b"\r\n--" + _boundary(content_type)
        self.fields: dict[str, str] = {}
        self.file_name = ""

    async def open(self) -> None:
        """Read up to the first byte of the file; ``FormInvalid`` if there is none."""
        # As if a line had ended before the first delimiter, so that all of them look alike.
        self._buffer += b"\r\n"
        await self._skip_to_delimiter(_HEAD_LIMIT)
        while True:
            head = await self._head()
            if (name := _FILE_NAME.search(head)) is not None:
                self.file_name = _text(name[1])
                return
            field = _NAME.search(head)
            content = await self._field()
            if field is not None:
                self.fields[_text(field[1])] = content

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The file's bytes; what follows it must be the end of the form, or more fields, which are not read."""
        kept = len(self._delimiter) - 1
        while (found := self._buffer.find(self._delimiter)) < 0:
            if len(self._buffer) > kept:
                piece = bytes(self._buffer[:-kept])
                del self._buffer[:-kept]
                yield piece
            await self._more()
        if found:
            yield bytes(self._buffer[:found])
        del self._buffer[: found + len(self._delimiter)]
        left = _FIELD_LIMIT * 16
        async for piece in self._body:
            left -= len(piece)  # the rest, so that the connection can be used again; but not for ever
            if left < 0:
                raise FormInvalid("One file is sent at a time: something large follows it in the form.")

    async def _head(self) -> bytes:
        while len(self._buffer) < 2:
            await self._more()
        if self._buffer.startswith(b"--"):
            raise FormInvalid  # the end of the form, and no file was in it
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _HEAD_LIMIT:
                raise FormInvalid
            await self._more()
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        # An empty part's delimiter begins with the line break that ends its head.
        if self._buffer.startswith(self._delimiter[2:]):
            self._buffer[:0] = b"\r\n"
        return head

    async def _field(self) -> str:
        content = await self._skip_to_delimiter(_FIELD_LIMIT)
        return _text(content)

    async def _skip_to_delimiter(self, limit: int) -> bytes:
        while (found := self._buffer.find(self._delimiter)) < 0:
            if len(self._buffer) > limit + len(self._delimiter):
                raise FormInvalid
            await self._more()
        content = bytes(self._buffer[:found])
        del self._buffer[: found + len(self._delimiter)]
        return content

    async def _more(self) -> None:
        async for piece in self._body:
            if piece:
                self._buffer += piece
                return
        raise FormInvalid("The form ends too early: send it again.")


def _boundary(content_type: str) -> bytes:
    message = Message()
    message["Content-Type"] = content_type
    boundary = message.get_param("boundary")
    if not isinstance(boundary, str) or not 1 <= len(boundary) <= 70 or not boundary.isascii():
        raise FormInvalid("The Content-Type of a form names its boundary, of 70 characters at the most.")
    return boundary.encode()


def _text(raw: bytes) -> str:
    # Browsers write quotes and line ends in names as %22, %0D and %0A.
    text = raw.decode("utf-8", "replace").replace('\\"', '"')
    return text.replace("%22", '"').replace("%0D", "").replace("%0A", "").replace("\0", "")
