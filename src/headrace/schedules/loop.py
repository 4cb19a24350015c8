"""The scheduler: sleeps until a schedule is due, fires it, and sleeps again. Any number of schedulers share the work.

Time is the database's: it computes the time to sleep, which is then measured by the monotonic clock. A machine with a
wrong clock fires at the right time.

Firing a thousand schedules takes a tenth of a second. So that they are not late, it begins that much earlier, by recent
measurements, and commits at the due time: before that no other transaction sees it.
"""

import asyncio
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headrace import logs
from headrace.database import Database
from headrace.errors import HeadraceError, Unavailable
from headrace.figures import Figure, Histogram, Kind
from headrace.loops import Waker
from headrace.schedules.due import MisfireConfig
from headrace.schedules.firing import Fired, fire_due
from headrace.schedules.overlap import cancel_superseded
from headrace.schedules.store import firing as store
from headrace.schedules.store.firing import Upcoming
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter

log = logs.get(__name__)

CHANNEL = "headrace_schedules"
_RETRY_PAUSE_S = 0.3
_RECHECK_PAUSE_S = 0.05
_FAILED_PAUSE_S = 30.0
_BLOCKED_PAUSE_S = 0.2
# Duration of firing: the minimum, and per schedule until it is measured.
_MIN_HEAD_START_S = 0.005
_INITIAL_SECONDS_PER_SCHEDULE = 0.000_12
# Changing a schedule, or ending a run of it, waits while it is fired; that must be short.
_MAX_HEAD_START_S = 0.25
_MIN_MEASURED_SCHEDULES = 50
LATENESS_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 3600.0)


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    batch: int = 1000  # schedules fired in one transaction
    poll_every: timedelta = timedelta(seconds=5)  # for lost notifications
    listen: bool = True
    misfires: MisfireConfig = field(default_factory=MisfireConfig)


class Scheduler:
    def __init__(self, db: Database, submitter: Submitter, config: SchedulerConfig | None = None) -> None:
        self._db = db
        self._submitter = submitter
        self._tasks = Tasks.of(submitter)
        self._config = config or SchedulerConfig()
        self._waker = Waker()
        # Schedules that could not be fired, with the (monotonic) end of their pause.
        self._aside: dict[str, float] = {}
        self._per_schedule_s = _INITIAL_SECONDS_PER_SCHEDULE
        self._begun: datetime | None = None  # the last due time whose firing began early
        self.fired = 0
        self._skipped = 0
        self._superseded = 0
        self._lateness = Histogram(LATENESS_BOUNDS)

    async def run_once(self, *, now: datetime | None = None) -> Fired:
        """Fire one batch of due schedules, and cancel superseded runs where their policy says so. If the batch was
        full, more may be due."""
        fired = await self._fire_batch(now)
        self._superseded += await cancel_superseded(self._db, self._tasks)
        return fired

    async def _fire_batch(self, now: datetime | None) -> Fired:
        try:
            return await self._fire(now, self._config.batch)
        except Unavailable:
            raise
        except Exception:
            log.exception("scheduler.batch_failed")
        # One schedule fails: fire each alone, so that the others are not affected.
        total = Fired()
        for _ in range(self._config.batch):
            one = await self._fire_alone(now)
            if one.schedules == 0:
                break
            total = Fired(total.schedules + 1, total.executions + one.executions, total.skipped + one.skipped)
        return total

    async def fire_on_time(self, due: datetime) -> Fired:
        """Fire one batch that is due at this near moment, and commit at that moment."""
        self._begun = due
        try:
            return await self._fire(due, self._config.batch, on_time=True)
        except Unavailable:
            raise
        except Exception:
            # One schedule fails: it is identified when they are due.
            log.exception("scheduler.batch_failed")
            return Fired()

    async def _fire(self, now: datetime | None, limit: int, *, on_time: bool = False) -> Fired:
        exclude = self._postponed()
        async with self._db.transaction() as tx:
            began = time.monotonic()
            fired = await fire_due(tx, self._submitter, self._config.misfires, now=now, limit=limit, exclude=exclude)
            self._measure(fired.schedules, time.monotonic() - began)
            if on_time and now is not None and fired.schedules:
                await asyncio.sleep(max(0.0, (await store.time_until(tx, now)).total_seconds()))
                began = time.monotonic()
        since = time.monotonic() - began
        self._leave_blocked(fired)
        for late_s in fired.late_s:
            if late_s <= self._config.misfires.after.total_seconds():  # a missed run counts as caught up, not as late
                self._lateness.observe(max(0.0, late_s) + since)
        self.fired += fired.executions
        self._skipped += fired.skipped
        if fired.missed:
            log.warning("scheduler.missed", schedules=fired.schedules, runs=fired.missed)
        if fired.skipped > fired.missed:  # not for skips by overlap_policy, which may occur every second
            log.debug("scheduler.skipped", schedules=fired.schedules, runs=fired.skipped - fired.missed)
        return fired

    def read_figures(self) -> list[Figure]:
        """Counters of this scheduler for `/metrics`."""
        return [
            Figure(
                "headrace_schedule_runs_fired_total",
                "Runs that this scheduler fired, including those that wait for a slot.",
                values={(): self.fired},
                kind=Kind.COUNTER,
            ),
            Figure(
                "headrace_schedule_runs_skipped_total",
                "Due times that this scheduler skipped, by misfire_policy or overlap_policy.",
                values={(): self._skipped},
                kind=Kind.COUNTER,
            ),
            Figure(
                "headrace_schedule_runs_superseded_total",
                "Running runs that this scheduler stopped for later ones (overlap_policy cancel_running).",
                values={(): self._superseded},
                kind=Kind.COUNTER,
            ),
            Figure(
                "headrace_schedule_lateness_seconds",
                "Delay from due time to firing of runs, without missed ones that were caught up.",
                histograms={(): self._lateness},
                kind=Kind.HISTOGRAM,
            ),
        ]

    def _leave_blocked(self, fired: Fired) -> None:
        """Postpone schedules whose owners' units another transaction locks."""
        if not fired.blocked:
            return
        log.info("scheduler.blocked", schedules=len(fired.blocked), schedule=fired.blocked[0])
        for uid in fired.blocked:
            self._aside[uid] = time.monotonic() + _BLOCKED_PAUSE_S

    def _postponed(self) -> list[str]:
        now = time.monotonic()
        self._aside = {uid: until for uid, until in self._aside.items() if until > now}
        return list(self._aside)

    async def _fire_alone(self, now: datetime | None) -> Fired:
        seen: list[str] = []
        try:
            exclude = self._postponed()
            async with self._db.transaction() as tx:
                seen = [row["uid"] for row in await store.lock_due(tx, now=now, limit=1, exclude=exclude)]
                fired = await fire_due(tx, self._submitter, self._config.misfires, now=now, limit=1, exclude=exclude)
        except Unavailable:
            raise
        except Exception:
            log.exception("scheduler.schedule_failed", schedule=seen)
            if not seen:
                raise
            self._aside[seen[0]] = time.monotonic() + _FAILED_PAUSE_S
            return Fired(schedules=1)
        self._leave_blocked(fired)
        return Fired(schedules=1) if fired.blocked else fired

    async def run(self, stop: asyncio.Event) -> None:
        """Fire due schedules until ``stop``. While the database is away, runs are delayed, not lost."""
        async with asyncio.TaskGroup() as group:
            loops = [group.create_task(self._fire_on(), name="fire")]
            if self._config.listen:
                loops.append(group.create_task(self._waker.listen(self._db, CHANNEL), name="listen"))
            await stop.wait()
            for loop in loops:
                loop.cancel()

    async def _fire_on(self) -> None:
        upcoming: Upcoming | None = None
        while True:
            self._waker.clear()
            try:
                if upcoming is not None:
                    await self.fire_on_time(upcoming.due)
                fired = await self.run_once()
                if fired.schedules >= self._config.batch:
                    upcoming = None
                    continue
                pause, upcoming = await self._pause(fired)
            except HeadraceError as exc:
                log.warning("scheduler.failed", error=exc.code)
                pause, upcoming = _RETRY_PAUSE_S, None
            if await self._waker.wait(pause):
                upcoming = None

    async def _pause(self, fired: Fired) -> tuple[float, Upcoming | None]:
        """The time to sleep, and what is due then, if known."""
        upcoming = await store.find_upcoming(self._db, most=self._config.batch, exclude=self._postponed())
        longest = self._config.poll_every.total_seconds()
        if upcoming is None:
            return longest, None
        wait = upcoming.wait.total_seconds()
        if wait <= 0:
            # Due since a moment ago, or locked by another scheduler: no hurry.
            return 0.0 if fired.schedules else _RECHECK_PAUSE_S, None
        if upcoming.due == self._begun:
            # The rest is locked by other schedulers, which commit in time; otherwise this one takes it then.
            return min(longest, wait), None
        early = wait - min(_MAX_HEAD_START_S, _MIN_HEAD_START_S + upcoming.schedules * self._per_schedule_s)
        return (longest, None) if early > longest else (max(0.0, early), upcoming)

    def _measure(self, schedules: int, seconds: float) -> None:
        if schedules >= _MIN_MEASURED_SCHEDULES:
            self._per_schedule_s += (seconds / schedules - self._per_schedule_s) / 4
