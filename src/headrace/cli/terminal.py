"""Text of strangers on an operator's terminal: shown, never obeyed.

A name can hold sequences that clear the screen, write the clipboard, or turn the reading direction. Each such
character is shown as its escape instead, ``\\x1b`` for example.
"""

import re
from typing import Any

from rich.console import Console
from rich.text import Text

# Controls but line feed and tab; separators of lines; marks of direction; what has no width; lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def make_visible(text: str) -> str:
    """The same text with escapes for characters that a terminal would act on.

    >>> make_visible("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def json_escaped(document: bytes) -> bytes:
    """JSON with those characters as ``\\uXXXX``: the same value to a program."""
    return _UNSAFE.sub(_json_escape, document.decode()).encode() if not document.isascii() else document


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


class SafeConsole(Console):
    """Prints strings as they are: ``[…]`` is markup only where a caller says so, and no control gets through."""

    def print(self, *objects: Any, markup: bool | None = None, **how: Any) -> None:
        safe = (make_visible(each) if isinstance(each, str) else each for each in objects)
        super().print(*safe, markup=bool(markup), **how)


def cell(text: str) -> Text:
    """A cell of a table: one line, without markup."""
    return Text(make_visible(text).replace("\n", "\\n").replace("\t", "\\t"))
