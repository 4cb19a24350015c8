"""Times and months, as they are written on a command line."""

import re
from datetime import UTC, date, datetime

from headrace.errors import Invalid

_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{8}")


def instant(text: str, option: str) -> datetime:
    """A time at which something is to happen. Whose clock is meant is not guessed, as the API does not."""
    at = _parsed(text, option)
    if at.tzinfo is None:
        whole = f"{text}T00:00" if _DATE.fullmatch(text) else text
        raise Invalid(f"{option} needs a zone: {whole}Z for UTC, or {whole}+08:00, if that is what you mean.")
    return at


def instant_or_utc(text: str, option: str) -> datetime:
    """A time to look from or up to; without a zone it is UTC, as are the times that are printed."""
    at = _parsed(text, option)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _parsed(text: str, option: str) -> datetime:
    day = _DATE.match(text)
    rest = text[day.end() :] if day else "?"
    # Python takes any character between date and time, and so 2026-03-01+08:00 for eight o'clock.
    if day and rest[:1] in {"Z", "z", "+", "-"}:
        raise Invalid(f"{option} needs a time of day before the zone: {day[0]}T00:00{rest}.")
    try:
        if rest[:1] not in {"", "T", " "}:
            raise ValueError
        return datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{option} takes a time like 2026-03-01T08:00:00Z, not {text!r}.") from None


def month_of(text: str) -> date:
    try:
        return datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC).date()
    except ValueError:
        raise Invalid(f"{text} is not a month: write it as 2026-01.") from None
