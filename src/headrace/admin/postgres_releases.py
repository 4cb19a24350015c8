"""The newest minor release of each PostgreSQL that was known when this was written: for ``headrace doctor``.

PostgreSQL publishes minor releases four times a year, with fixes of security holes and of lost data; they need
only a restart. The table is updated with each release of Headrace.
"""

from datetime import date

AS_OF = date(2026, 11, 19)
NEWEST_MINOR = {15: 20, 16: 16, 17: 12, 18: 6}


def newer_minor(version_num: int) -> str | None:
    """The newest release of its major version, if the server is behind it. ``version_num`` is ``180004`` for 18.4."""
    major, minor = divmod(version_num, 10_000)
    newest = NEWEST_MINOR.get(major)
    return f"{major}.{newest}" if newest is not None and minor < newest else None
