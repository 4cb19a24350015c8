"""``multipart/form-data`` read as it comes: one file, never whole in memory.

Starlette's own parser writes the file to a temporary one first; ours is hashed and stored while it arrives.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from email.message import Message

from multipart import MultipartError, MultipartSegment, ParserLimitReached, PushMultipartParser

from headrace.assets.errors import FormInvalid

_MAX_FIELDS_BYTES = 64 * 1024  # of all parts but the file
_MAX_FRAME_BYTES = 64 * 1024  # of everything but the contents of parts: headers, and text before and after the parts
_MAX_PARTS = 64
_MAX_HEADER_BYTES = 8 * 1024
_TOO_MUCH = "The form has too much beside the file: send the file alone."


class Form:
    """``open()`` reads up to the file, ``pieces()`` gives its bytes. Both raise ``FormInvalid``."""

    def __init__(self, body: AsyncIterator[bytes], content_type: str) -> None:
        self._events = _events(body, _boundary(content_type))
        self._left = _MAX_FIELDS_BYTES
        self.file_name = ""

    async def open(self) -> None:
        """Read up to the first byte of the file."""
        async for event in self._events:
            if isinstance(event, MultipartSegment) and event.filename is not None:
                self.file_name = event.filename.replace("\r", "").replace("\n", "").replace("\0", "")
                return
            self._count(event)
        raise FormInvalid

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The bytes of the file, then read the form to its end: nothing that follows is lost in silence."""
        async for event in self._events:
            if event is None:
                break
            assert isinstance(event, bytes | bytearray)
            yield bytes(event)
        async for event in self._events:
            if isinstance(event, MultipartSegment) and event.filename is not None:
                raise FormInvalid("One file is sent at a time: the form has a second one.")
            self._count(event)

    def _count(self, event: MultipartSegment | bytes | bytearray | None) -> None:
        if isinstance(event, bytes | bytearray):
            self._left -= len(event)
            if self._left < 0:
                raise FormInvalid(_TOO_MUCH)


async def _events(
    body: AsyncIterator[bytes], boundary: str
) -> AsyncGenerator[MultipartSegment | bytes | bytearray | None, None]:
    parser = PushMultipartParser(boundary, max_header_size=_MAX_HEADER_BYTES, max_segment_count=_MAX_PARTS)
    frame = 0
    try:
        async for piece in body:
            if piece:
                frame += len(piece)
                for event in parser.parse(piece):
                    if isinstance(event, bytes | bytearray):
                        frame -= len(event)
                    yield event
                if frame > _MAX_FRAME_BYTES:  # the parser skips text before and after the parts, without a limit
                    raise FormInvalid(_TOO_MUCH)
        parser.close()
    except ParserLimitReached as exc:
        raise FormInvalid("The form has too many parts, or too long headers: send the file alone.") from exc
    except MultipartError as exc:
        raise FormInvalid(f"The form cannot be read: {exc.args[0]}. Send it again.") from exc


def _boundary(content_type: str) -> str:
    message = Message()
    message["Content-Type"] = content_type
    boundary = message.get_param("boundary")
    if not isinstance(boundary, str) or not 1 <= len(boundary) <= 70 or not boundary.isascii() or "\n" in boundary:
        raise FormInvalid("The Content-Type of a form names its boundary, of at most 70 characters.")
    return boundary
