"""The database's clock in this process, for links, tokens and signatures that other hosts verify.

Hosts with different clocks would refuse each other's links and stamp webhooks outside of their receivers' tolerance.
All hosts share the database's clock. It is read with each new connection and extrapolated by this machine's monotonic
clock, so that a step of the local clock has no effect.
"""

import time
from datetime import UTC, datetime, timedelta

# CLOCK_BOOTTIME, where available, also runs while the machine sleeps.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# Within this difference the local clock is used, which has no round-trip error.
_SAME = timedelta(milliseconds=100)

_measured: tuple[datetime, float] | None = None  # the database's time, and our ticks at that moment


def ticks() -> float:
    """Seconds of a monotonic clock."""
    return time.clock_gettime(_CLOCK)


def measure(theirs: datetime, *, asked_at: float) -> None:
    """Record the database's time; ``asked_at`` are the ticks before the query."""
    global _measured
    answered_at = ticks()
    middle = (asked_at + answered_at) / 2
    ours = datetime.now(UTC) - timedelta(seconds=answered_at - middle)
    _measured = None if abs(theirs - ours) < max(_SAME, timedelta(seconds=answered_at - asked_at)) else (theirs, middle)


def now() -> datetime:
    """The database's time; this machine's if no database was queried, or if both agree."""
    if _measured is None:
        return datetime.now(UTC)
    theirs, at = _measured
    return theirs + timedelta(seconds=ticks() - at)
