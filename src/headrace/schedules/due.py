"""Which due times of a schedule have come, which of them run, and which one is next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.schedules.cron import check_due, cron_of
from headrace.schedules.model import MisfirePolicy

# Due times that are looked at in one pass; a schedule that was away for longer is caught up with in several.
_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Rhythm:
    """By what a schedule is due: a cron expression in a zone, an interval in seconds, or once."""

    cron: str | None = None
    interval: int | None = None
    timezone: str = "UTC"

    def first(self, now: datetime) -> datetime | None:
        """The first due time of a recurring schedule that begins now; ``CronNeverDue`` if it has none."""
        if self.cron is not None:
            return check_due(cron_of(self.cron, self.timezone), now)
        return None if self.interval is None else now + timedelta(seconds=self.interval)

    def after(self, due: datetime) -> datetime | None:
        """The due time that follows this one. It comes from the last due time, never from the clock."""
        if self.cron is not None:
            return cron_of(self.cron, self.timezone).after(due)
        try:
            return None if self.interval is None else due + timedelta(seconds=self.interval)
        except OverflowError:  # the year 10,000
            return None

    def times(self, due: datetime | None) -> Iterator[datetime]:
        """This due time and those that follow it."""
        while due is not None:
            yield due
            due = self.after(due)

    def following(self, due: datetime | None, now: datetime) -> datetime | None:
        """The first due time that is still to come; an interval keeps its beat."""
        if self.cron is not None or due is None:
            return self.first(now)
        if self.interval is None:
            return due
        beats = max(0, (now - due) // timedelta(seconds=self.interval) + 1) if now >= due else 0
        return due + beats * timedelta(seconds=self.interval)


@dataclass(frozen=True, slots=True)
class MisfireConfig:
    """A due time that is later than ``after`` was missed: nobody was there. Less is lateness, and everything runs."""

    after: timedelta = timedelta(seconds=60)
    most: int = 1000  # runs that a schedule with the policy "all" catches up with


@dataclass(frozen=True, slots=True)
class Due:
    """What one look at a schedule decides: these times fire, so many are skipped, this one is next."""

    fire: Sequence[datetime]
    skipped: int
    next_run: datetime | None


def decide(rhythm: Rhythm, next_run: datetime, now: datetime, policy: MisfirePolicy, config: MisfireConfig) -> Due:
    """What of a schedule is due. It is called with the schedule's row locked, so each time is looked at once."""
    missed = now - next_run > config.after
    if missed and rhythm.interval is not None:
        # Counted, not walked: a schedule of every second that was away for a year has missed 31 million.
        return _missed_beats(rhythm, next_run, now, policy, config)
    due: list[datetime] = []
    for time in rhythm.times(next_run):
        if time > now:
            upcoming = time
            break
        due.append(time)
        if len(due) > max(_AT_ONCE, config.most):
            keep = config.most if policy is MisfirePolicy.ALL else 1
            return Due([], len(due) - keep, due[-keep])
    else:
        upcoming = None
    fire = _chosen(due, now, policy, config) if missed else due
    return Due(fire, len(due) - len(fire), upcoming)


def _missed_beats(
    rhythm: Rhythm, next_run: datetime, now: datetime, policy: MisfirePolicy, config: MisfireConfig
) -> Due:
    assert rhythm.interval is not None
    beat = timedelta(seconds=rhythm.interval)
    count = (now - next_run) // beat + 1
    kept = min(count, config.most if policy is MisfirePolicy.ALL else 1)
    due = [next_run + index * beat for index in range(count - kept, count)]
    fire = _chosen(due, now, policy, config)
    return Due(fire, count - len(fire), next_run + count * beat)


def _chosen(due: Sequence[datetime], now: datetime, policy: MisfirePolicy, config: MisfireConfig) -> Sequence[datetime]:
    match policy:
        case MisfirePolicy.ALL:
            return due[-config.most :]
        case MisfirePolicy.LATEST:
            return due[-1:]
        case MisfirePolicy.NONE:
            return due[-1:] if now - due[-1] <= config.after else []
