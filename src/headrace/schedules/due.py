"""Decides which due times of a schedule fire, which are skipped, and which is next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.schedules.cron import check_due, cron_of
from headrace.schedules.model import MisfirePolicy

# Due times handled in one pass; longer backlogs take several passes.
_MAX_DUE_TIMES = 10_000


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The timing of a schedule: a cron expression in a zone, an interval in seconds, or once."""

    cron: str | None = None
    interval: int | None = None
    timezone: str = "UTC"

    def first(self, now: datetime) -> datetime | None:
        """The first due time of a recurring schedule from now on; ``CronNeverDue`` if there is none."""
        if self.cron is not None:
            return check_due(cron_of(self.cron, self.timezone), now)
        return None if self.interval is None else now + timedelta(seconds=self.interval)

    def after(self, due: datetime) -> datetime | None:
        """The next due time, computed from the last due time, never from the clock."""
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
        """The first future due time; an interval keeps its phase."""
        if self.cron is not None or due is None:
            return self.first(now)
        if self.interval is None:
            return due
        beats = max(0, (now - due) // timedelta(seconds=self.interval) + 1) if now >= due else 0
        return due + beats * timedelta(seconds=self.interval)


@dataclass(frozen=True, slots=True)
class MisfireConfig:
    """A due time that is late by more than ``after`` counts as missed: no scheduler ran. Less late ones all run."""

    after: timedelta = timedelta(seconds=60)
    most: int = 1000  # runs that a schedule with the policy "all" catches up


@dataclass(frozen=True, slots=True)
class Due:
    """The decision for a schedule: times to fire, number of skipped ones, the next run."""

    fire: Sequence[datetime]
    skipped: int
    next_run: datetime | None


def decide(rhythm: Rhythm, next_run: datetime, now: datetime, policy: MisfirePolicy, config: MisfireConfig) -> Due:
    """Decide what is due. The caller holds the schedule's row lock, so each time is decided once."""
    missed = now - next_run > config.after
    if missed and rhythm.interval is not None:
        # Counted without a loop: a schedule of every second that was down for a year has missed 31 million times.
        return _decide_interval(rhythm, next_run, now, policy, config)
    due: list[datetime] = []
    for time in rhythm.times(next_run):
        if time > now:
            upcoming = time
            break
        due.append(time)
        if len(due) > max(_MAX_DUE_TIMES, config.most):
            keep = config.most if policy is MisfirePolicy.ALL else 1
            return Due([], len(due) - keep, due[-keep])
    else:
        upcoming = None
    fire = _chosen(due, now, policy, config) if missed else due
    return Due(fire, len(due) - len(fire), upcoming)


def _decide_interval(
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
