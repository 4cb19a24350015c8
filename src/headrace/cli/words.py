"""The words that options offer and take: those that the API shows, in any case."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

import typer


def one_of(*names: str, offered: Sequence[str], also: Sequence[str] = (), help: str) -> Any:  # noqa: A002 - Typer's word
    """An option that takes one of these words, in any case. ``also`` are taken too, but not offered: they exist only
    in imported data."""
    return typer.Option(*names, parser=_reader(offered, also), metavar=f"<{'|'.join(offered)}>", help=help)


def _reader(offered: Sequence[str], also: Sequence[str]) -> Callable[[str], str]:
    known = {word.casefold(): word for word in (*also, *offered)}

    def word(text: str) -> str:
        result = known.get(text.casefold())
        if result is None:
            near = get_close_matches(text.casefold(), known, n=1)
            hint = f" Did you mean {known[near[0]]}?" if near else ""
            raise typer.BadParameter(f"{text!r} is none of {', '.join(offered)}.{hint}")
        return result

    return word


def stored_words(kind: type[StrEnum], words: Sequence[str] | None) -> list[Any] | None:
    """The values that words stand for, once each; None for none given."""
    from headrace.edge.vocabulary import stored

    return sorted({stored(kind, word) for word in words}) if words else None
