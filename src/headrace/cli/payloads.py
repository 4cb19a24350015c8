"""Input from a command line, a file or standard input: JSON, and pairs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from headrace.errors import Invalid


def read_payload(text: str, option: str = "--payload") -> Any:
    """JSON from the command line, from a file (``@name``) or from standard input (``-``)."""
    source, where = text, option
    if text == "-":
        source, where = sys.stdin.read(), "standard input"
    elif text.startswith("@"):
        where = text[1:]
        try:
            source = Path(where).read_text()
        except (OSError, UnicodeDecodeError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else exc
            raise Invalid(f"{where} cannot be read: {why}.") from exc
    try:
        return orjson.loads(source)
    except orjson.JSONDecodeError as exc:
        raise Invalid(f"What {where} holds is not JSON: {exc}.") from exc


def pairs(texts: Sequence[str] | None) -> dict[str, str]:
    """``key=value`` options, repeated or separated by commas."""
    labels = {}
    for text in ",".join(texts or ()).split(","):
        name, equals, value = (part.strip() for part in text.partition("="))
        if text.strip() and not (name and equals):
            raise Invalid(f"--labels takes key=value, not {text!r}.")
        if name:
            labels[name] = value
    return labels
