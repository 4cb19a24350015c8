"""What commands write to a terminal: text of strangers is shown, never obeyed (``headrace.visible``)."""

import codecs
import re
import sys
from typing import Any, BinaryIO, cast

from rich.console import Console
from rich.text import Text

from headrace.visible import UNSAFE, make_visible


def json_escaped(document: bytes) -> bytes:
    """JSON with those characters as ``\\uXXXX``: the same value to a program."""
    return UNSAFE.sub(_json_escape, document.decode()).encode() if not document.isascii() else document


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


class SafeConsole(Console):
    """Prints strings literally: ``[…]`` is markup only where a caller asks for it, and no control character passes."""

    def print(self, *objects: Any, markup: bool | None = None, **how: Any) -> None:
        safe = (make_visible(each) if isinstance(each, str) else each for each in objects)
        super().print(*safe, markup=bool(markup), **how)


def cell(text: str) -> Text:
    """A cell of a table: one line, without markup."""
    return Text(make_visible(text).replace("\n", "\\n").replace("\t", "\\t"))


def standard_output() -> BinaryIO:
    """Where bytes of an export go: as they are into a pipe or a file, made visible on a terminal."""
    if sys.stdout.isatty():
        return cast("BinaryIO", _VisibleOutput())
    return sys.stdout.buffer


class _VisibleOutput:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, part: bytes) -> int:
        sys.stdout.write(make_visible(self._decoder.decode(part).replace("\r\n", "\n")))
        return len(part)

    def flush(self) -> None:
        sys.stdout.flush()
