"""Text that PostgreSQL accepts: it refuses NUL in text and jsonb, and UTF-8 has no lone surrogates."""

import re

_REFUSED = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"
ELLIPSIS = "…"


def clean(text: str) -> str:
    """The text with unstorable characters replaced by U+FFFD."""
    return _REFUSED.sub(REPLACEMENT, text)


def short(text: str | None, limit: int) -> str | None:
    """Clean text of at most ``limit`` characters; an ellipsis marks a truncation."""
    if text is None:
        return None
    text = clean(text)
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS
