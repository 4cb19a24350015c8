"""What PostgreSQL can store of what programs hand in: payloads, results, messages."""

from typing import Any

import orjson

from headrace.database import Json

# The deepest nesting: beyond this recursive readers in other languages fall over.
_DEPTH = 100
# Bytes, more than a run keeps of a stack (schedules/cutting.py): what fits there must arrive there whole.
_MESSAGE_LIMIT = 16_384
_ELLIPSIS = "…"


class NotStorable(ValueError):
    """The message gives the reason, as the end of a sentence that begins with the name of the value."""


class TooLarge(NotStorable):
    pass


def encode(value: Any, *, limit: int) -> Json:
    """The value as JSON that jsonb takes, or ``NotStorable``."""
    try:
        encoded = Json(orjson.dumps(value))
    except TypeError as exc:
        raise NotStorable(f"is not JSON: {exc}") from None
    if len(encoded) > limit:
        raise TooLarge(f"has {len(encoded):,} bytes and may have {limit:,}: store it elsewhere and send a link")
    if encoded.find(b"\\u0000") >= 0 and _has_nul(value):
        raise NotStorable("holds a NUL character, which PostgreSQL cannot store")
    # Cheap first: nothing nests deeper than it has brackets.
    if encoded.count(b"[") + encoded.count(b"{") > _DEPTH and _depth(value) > _DEPTH:
        raise NotStorable(f"is nested deeper than {_DEPTH} levels")
    return encoded


def text(message: str) -> str:
    """Text that PostgreSQL takes: no NUL, no half characters, not endless; the end of a traceback says most."""
    encoded = message.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    if len(encoded) <= _MESSAGE_LIMIT:
        return encoded.decode()
    return _ELLIPSIS + encoded[-(_MESSAGE_LIMIT - len(_ELLIPSIS.encode())) :].decode(errors="ignore")


def _has_nul(value: Any) -> bool:
    match value:
        case str():
            return "\0" in value
        case dict():
            return any(_has_nul(key) or _has_nul(child) for key, child in value.items())
        case list() | tuple():
            return any(map(_has_nul, value))
        case _:
            return False


def _depth(value: Any, above: int = 0) -> int:
    if above > _DEPTH or not isinstance(value, dict | list | tuple):
        return above
    children = value.values() if isinstance(value, dict) else value
    return max((_depth(child, above + 1) for child in children), default=above + 1)
