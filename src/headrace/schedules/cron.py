"""Due times of cron expressions. The only module that knows time zones.

Expressions are read on the wall clock of the schedule's zone. What daylight saving does to them:

- A time in the skipped hour is due once, at the first instant after the gap.
- A time in the repeated hour is due once, at its first occurrence.
- An expression of every hour (``*``) follows real time: it is due in both repeated hours, and not in a skipped one.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field

from headrace.schedules.errors import CronInvalid, CronNeverDue, TimezoneUnknown

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MAX_WAIT = timedelta(days=5 * 366)

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_HOURS = set(range(24))
_FIELDS = (Field.MINUTE, Field.HOUR, Field.DAY, Field.MONTH, Field.DOW)


@lru_cache(maxsize=1024)
def zone_of(name: str) -> ZoneInfo:
    """The time zone of this name (``Europe/Berlin``); ``TimezoneUnknown`` otherwise."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise TimezoneUnknown(f"{name!r} is not a time zone: write it like Europe/Berlin or UTC.") from None


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression in a zone, parsed by ``cron_of``."""

    expression: str
    zone: ZoneInfo
    rule: CronSim
    every_hour: bool

    def after(self, at: datetime) -> datetime | None:
        """The first due time after this instant, in UTC; None if there is none within fifty years."""
        return _cached_after(self, at)

    def times_after(self, at: datetime) -> Iterator[datetime]:
        while (due := self.after(at)) is not None:
            yield due
            at = due

    def next_by_wall_clock(self, at: datetime) -> datetime:
        wall = at.astimezone(self.zone).replace(tzinfo=None)
        while True:
            wall = self._next(wall)
            due = self._instant(wall)
            # Not later: the second pass of a repeated hour, or the second of several times in one gap.
            if due > at:
                return due

    def _instant(self, wall: datetime) -> datetime:
        first = wall.replace(tzinfo=self.zone, fold=0).astimezone(UTC)
        if first.astimezone(self.zone).replace(tzinfo=None) == wall:
            return first
        # In a gap the later offset gives an instant before the change, the earlier offset one after it.
        return _change_between(self.zone, wall.replace(tzinfo=self.zone, fold=1).astimezone(UTC), first)

    def next_by_real_time(self, at: datetime) -> datetime:
        here = at.astimezone(self.zone)
        wall, offset = here.replace(tzinfo=None), here.utcoffset()
        while True:
            assert offset is not None
            match = self._next(wall)
            due = match.replace(tzinfo=UTC) - offset
            change = _next_change(self.zone, at)
            if change is not None and change <= due:
                at = change
                here = at.astimezone(self.zone)
                # The wall clock jumps here; the time after the jump may itself be due.
                wall, offset = here.replace(tzinfo=None, fold=0) - _SECOND, here.utcoffset()
            elif due.astimezone(self.zone).utcoffset() == offset:
                return due
            else:
                # Another offset applies that far ahead. Until a day before it no wall clock time matches.
                at = due - _DAY
                here = at.astimezone(self.zone)
                wall, offset = here.replace(tzinfo=None, fold=0), here.utcoffset()

    def _next(self, wall: datetime) -> datetime:
        walk = copy.copy(self.rule)
        walk.dt = wall.replace(microsecond=0, fold=0)
        return next(walk)


@lru_cache(maxsize=16_384)  # a thousand schedules may share one expression
def _cached_after(cron: Cron, at: datetime) -> datetime | None:
    try:
        return cron.next_by_real_time(at) if cron.every_hour else cron.next_by_wall_clock(at)
    except (StopIteration, OverflowError, ValueError):  # the last two: the year 10,000
        return None


# By the names in cronsim's messages.
_RANGES = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, or L",
    "month": "1 to 12, or JAN to DEC",
    "day-of-week": "0 to 7, or SUN to SAT",
}


@lru_cache(maxsize=4096)
def cron_of(expression: str, timezone: str = "UTC") -> Cron:
    """Parse five fields or a nickname; raises ``CronInvalid`` or ``TimezoneUnknown``."""
    zone = zone_of(timezone)
    fields = NICKNAMES.get(expression.strip().lower(), expression)
    if len(fields.split()) != 5:
        names = ", ".join(sorted(NICKNAMES))
        raise CronInvalid(
            f"{expression!r} is not a cron expression: write five fields (minute, hour, day, month, weekday), or one "
            f"of {names}."
        )
    try:
        fields = " ".join(_plain_field(kind, text) for kind, text in zip(_FIELDS, fields.upper().split(), strict=True))
        rule = CronSim(fields, datetime(2000, 1, 1))  # noqa: DTZ001 - wall clock time, without a zone
    except (CronSimError, AssertionError, ValueError) as exc:
        why = str(exc).lower() or "it cannot be read"
        allowed = next((f", which is {span}" for field, span in _RANGES.items() if why.endswith(field)), "")
        raise CronInvalid(f"{expression!r} is not a cron expression: {why}{allowed}.") from None
    return Cron(expression, zone, rule, every_hour=rule.hours == _HOURS)


def _plain_field(kind: Field, text: str) -> str:
    """Rewrite a field for cronsim, which reads a range of one with a step, ``5-5/2``, as ``5/2``."""
    return ",".join(_plain_term(kind, term) for term in text.split(","))


def _plain_term(kind: Field, term: str) -> str:
    span, _, step = term.partition("/")
    if "-" not in span or not step.strip("0") or len(kind.parse(span)) > 1:
        return term
    kind.parse(f"*/{step}")  # refuses an invalid step here as everywhere else
    return span


def check_due(cron: Cron, now: datetime) -> datetime:
    """The first due time from now on; ``CronNeverDue`` if there is none in the next five years."""
    due = cron.after(now)
    if due is None or due > now + MAX_WAIT:
        raise CronNeverDue(f"{cron.expression!r} is not due in the next five years.")
    return due


# -- changes of a zone's offset


def _next_change(zone: ZoneInfo, at: datetime) -> datetime | None:
    """The next jump of the wall clock, on this instant's day or the next."""
    for day in (0, 1):
        for change in _changes(zone, (at + day * _DAY).date().toordinal()):
            if change > at:
                return change
    return None


@lru_cache(maxsize=4096)
def _changes(zone: ZoneInfo, day: int) -> tuple[datetime, ...]:
    """Offset changes of one UTC day. No zone changes twice within an hour."""
    start = datetime.fromordinal(day).replace(tzinfo=UTC)
    hours = [start + timedelta(hours=hour) for hour in range(25)]
    offsets = [hour.astimezone(zone).utcoffset() for hour in hours]
    return tuple(
        _change_between(zone, hours[index], hours[index + 1])
        for index in range(24)
        if offsets[index] != offsets[index + 1]
    )


@lru_cache(maxsize=4096)
def _change_between(zone: ZoneInfo, before: datetime, behind: datetime) -> datetime:
    """The first second of the offset that applies at ``behind``, and not at ``before``."""
    offset = behind.astimezone(zone).utcoffset()
    while behind - before > _SECOND:
        middle = before + (behind - before) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == offset:
            behind = middle
        else:
            before = middle
    return behind
