"""Python's regular expressions as PostgreSQL understands them, as far as both mean the same."""

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache

_MAX_REPEATS = 255  # PostgreSQL's
_TOKEN = re.compile(
    r"""
    \\(?P<escape>.)
  | \[(?P<class>\^?\]?(?:\\.|[^\]\\])*)\]
  | (?P<repeat>[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??   # as few as possible: the same texts match
  | (?P<open>\((?:\?:)?(?!\?))
  | (?P<sign>[)|^$.])
  | (?P<letter>[^\\\[\]{}()*+?|^$.])
    """,
    re.VERBOSE,
)
_IN_CLASS = re.compile(r"\\(?P<escape>.)|(?P<range>[A-Za-z0-9]-[A-Za-z0-9])|(?P<letter>[^\[\\])(?!-.)|(?P<last>-)$")
# Python's $ is also before a newline at the end; its dot is no newline.
_SIGNS = {"$": r"(?=\n?$)", ".": r"[^\n]"}
_REPEATABLE = frozenset({"escape", "class", "letter"})


def translate(pattern: str) -> str | None:
    """A regular expression with the same matches in PostgreSQL; None if it uses more than both have in common."""
    parts: list[str] = []
    position, repeatable = 0, False  # whether the last token can be repeated
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        part = None if token is None else _translated(token, repeatable=repeatable)
        if token is None or part is None:
            return None
        parts.append(part)
        position = token.end()
        repeatable = token.lastgroup in _REPEATABLE or token["sign"] in (")", ".")
    try:
        re.compile(pattern)
    except re.error:
        return None
    return "".join(parts)


def _translated(token: re.Match[str], *, repeatable: bool) -> str | None:
    text = token[token.lastgroup or 0]
    match token.lastgroup:
        case "escape":
            return _escaped(text, "[{}]")
        case "class":
            return _class(text)
        case "repeat":
            within = max(map(int, re.findall(r"[0-9]+", text)), default=0) <= _MAX_REPEATS
            return text if repeatable and within else None
        case "open":
            return "(?:"
        case "sign":
            return _SIGNS.get(text, text)
    return text if text.isprintable() else None


def _class(text: str) -> str | None:
    negated = text.startswith("^")
    position, parts = int(negated), ["[^" if negated else "["]
    while position < len(text):
        token = _IN_CLASS.match(text, position)
        if token is None:
            return None
        matched = token[token.lastgroup or 0]
        part = matched if token["range"] else _escaped(matched, "{}") if token["escape"] else _literal(matched)
        if part is None:
            return None
        parts.append(part)
        position = token.end()
    return "".join([*parts, "]"])


def _literal(letter: str) -> str | None:
    if not letter.isprintable():
        return None
    return letter if letter.isalnum() or not letter.isascii() else f"\\{letter}"


def _escaped(letter: str, as_class: str) -> str | None:
    if letter in "ds":
        return as_class.format(_digits() if letter == "d" else _blanks())
    return f"\\{letter}" if letter.isascii() and letter.isprintable() and not letter.isalnum() else None


@cache
def _digits() -> str:
    """What Python takes for a digit, as ranges of a class; PostgreSQL's own depends on the locale."""
    return _ranges([code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Nd"])


@cache
def _blanks() -> str:
    return _ranges([code for code in range(sys.maxunicode + 1) if chr(code).isspace()])


def _ranges(codes: Sequence[int]) -> str:
    parts: list[str] = []
    start = previous = codes[0]
    for code in [*codes[1:], -1]:
        if code != previous + 1:
            parts.append(f"\\U{start:08X}" if start == previous else f"\\U{start:08X}-\\U{previous:08X}")
            start = code
        previous = code
    return "".join(parts)
