"""Calendar months: from the 31st of January to the 28th of February, and then to the 31st of March."""

import calendar
from datetime import UTC, datetime


def add_months(at: datetime, months: int) -> datetime:
    """The same day of a later month, or its last day where it has no such day; by UTC."""
    at = at.astimezone(UTC)
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    day = min(at.day, calendar.monthrange(year, month + 1)[1])
    return at.replace(year=year, month=month + 1, day=day)


def period_end(anchor: datetime, start: datetime) -> datetime:
    """The end of the period that begins at ``start``, in months from the ``anchor``: a short month does not shorten
    later ones."""
    anchor, start = anchor.astimezone(UTC), start.astimezone(UTC)
    months = (start.year - anchor.year) * 12 + start.month - anchor.month
    while (end := add_months(anchor, months)) <= start:
        months += 1
    return end


def calendar_month(at: datetime) -> tuple[datetime, datetime]:
    """Start and end of an instant's month, in UTC."""
    start = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return start, add_months(start, 1)
