"""Answers of the API as people read them."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from headrace.cli.output import out, print_json, print_table


def when(at: str | None) -> str | None:
    """An instant of an answer.

    >>> when("2026-03-01T08:00:00.123Z")
    '2026-03-01 08:00:00 UTC'
    """
    return None if at is None else f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def minute(at: str | None) -> str | None:
    """The same without its seconds.

    >>> minute("2026-03-01T08:00:00.123Z")
    '2026-03-01 08:00 UTC'
    """
    return None if at is None else f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def print_fields(answer: Mapping[str, Any], *, last: Iterable[str] = ()) -> None:
    """Names and values of the fields; long texts last, each under its name."""
    last = tuple(last)
    rows = [(name, _plain(name, value)) for name, value in answer.items() if name not in last]
    print_table(("field", "value"), [(name, value) for name, value in rows if value not in (None, {}, [])])
    for name in last:
        if answer.get(name) is not None:
            out.print(Text(name, style="bold"))
            if isinstance(answer[name], str):
                out.print(answer[name], soft_wrap=True)
            else:
                print_json(answer[name])


def print_reasons(reasons: Iterable[Mapping[str, Any]]) -> None:
    for reason in reasons:
        out.print(f"  {reason['text']}", soft_wrap=True)


def _plain(name: str, value: Any) -> Any:
    return when(value) if isinstance(value, str) and (name.endswith("_at") or name == "next_run") else value
