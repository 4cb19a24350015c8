"""The database's clock, as this process knows it: for links, tokens and signatures that other hosts check.

Hosts whose clocks differ would refuse each other's links and stamp webhooks outside of their receivers' tolerance.
The database's clock is the one that all of them share. It is read with each new connection, and goes on by this
machine's monotonic clock in between, so that a step of the local clock changes nothing.
"""

import time
from datetime import UTC, datetime, timedelta

# Goes on while the machine sleeps, where the system has such a clock.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# The local clock is as good when both agree this well, and it is not rounded by a round trip.
_SAME = timedelta(milliseconds=100)

_measured: tuple[datetime, float] | None = None  # the database's time, and ours at that moment


def ticks() -> float:
    """Seconds of a clock that nobody sets."""
    return time.clock_gettime(_CLOCK)


def measure(theirs: datetime, *, asked_at: float) -> None:
    """Note the database's time; ``asked_at`` are the ticks before it was asked for."""
    global _measured
    answered_at = ticks()
    middle = (asked_at + answered_at) / 2
    ours = datetime.now(UTC) - timedelta(seconds=answered_at - middle)
    _measured = None if abs(theirs - ours) < max(_SAME, timedelta(seconds=answered_at - asked_at)) else (theirs, middle)


def now() -> datetime:
    """The database's time; this machine's where no database was asked, or where both agree."""
    if _measured is None:
        return datetime.now(UTC)
    theirs, at = _measured
    return theirs + timedelta(seconds=ticks() - at)
