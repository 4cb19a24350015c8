"""The scheduler: sleeps until something is due, fires it, and sleeps again. Any number of them share the work.

By the database's clock: how long to sleep is a difference that the database computed, slept by the monotonic clock. A
machine whose clock is wrong fires at the right time.
"""

import asyncio
import time
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headrace import logs
from headrace.database import Database
from headrace.errors import HeadraceError, Unavailable
from headrace.schedules.due import MisfireConfig
from headrace.schedules.firing import Fired, fire_due
from headrace.schedules.store import firing as store
from headrace.tasks import Submitter

log = logs.get(__name__)

_AFTER_TROUBLE_S = 0.3
_LOOK_AGAIN_S = 0.05
_ASIDE_S = 30.0


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    batch: int = 1000  # schedules fired in one transaction
    poll_every: timedelta = timedelta(seconds=5)  # the longest sleep, for a notification that was lost
    listen: bool = True
    misfires: MisfireConfig = field(default_factory=MisfireConfig)


class Scheduler:
    def __init__(self, db: Database, submitter: Submitter, config: SchedulerConfig | None = None) -> None:
        self._db = db
        self._submitter = submitter
        self._config = config or SchedulerConfig()
        self._woken = asyncio.Event()
        # Schedules that could not be fired, and until when (monotonic) they are left alone.
        self._aside: dict[str, float] = {}
        self.fired = 0

    async def run_once(self, *, now: datetime | None = None) -> Fired:
        """Fire one batch of what is due. Afterwards more may be, if the batch was full."""
        try:
            return await self._fire(now, self._config.batch)
        except Unavailable:
            raise
        except Exception:
            log.exception("scheduler.batch_failed")
        # One of them is to blame, and the others must not suffer for it.
        total = Fired()
        for _ in range(self._config.batch):
            one = await self._fire_alone(now)
            if one.schedules == 0:
                break
            total = Fired(total.schedules + 1, total.executions + one.executions, total.skipped + one.skipped)
        return total

    async def _fire(self, now: datetime | None, limit: int) -> Fired:
        but = [uid for uid, until in self._aside.items() if until > time.monotonic()]
        async with self._db.transaction() as tx:
            fired = await fire_due(tx, self._submitter, self._config.misfires, now=now, limit=limit, but=but)
        self.fired += fired.executions
        if fired.skipped:
            log.warning("scheduler.skipped", schedules=fired.schedules, runs=fired.skipped)
        return fired

    async def _fire_alone(self, now: datetime | None) -> Fired:
        seen: list[str] = []
        try:
            but = [uid for uid, until in self._aside.items() if until > time.monotonic()]
            async with self._db.transaction() as tx:
                seen = [row["uid"] for row in await store.lock_due(tx, now=now, limit=1, but=but)]
                return await fire_due(tx, self._submitter, self._config.misfires, now=now, limit=1, but=but)
        except Unavailable:
            raise
        except Exception:
            log.exception("scheduler.schedule_failed", schedule=seen)
            if not seen:
                raise
            self._aside[seen[0]] = time.monotonic() + _ASIDE_S
            return Fired(schedules=1)

    async def run(self, stop: asyncio.Event) -> None:
        """Fire what is due until ``stop``. A database that is away for a while delays, and loses nothing."""
        async with asyncio.TaskGroup() as group:
            loops = [group.create_task(self._fire_on(), name="fire")]
            if self._config.listen:
                loops.append(group.create_task(self._listen(), name="listen"))
            await stop.wait()
            for loop in loops:
                loop.cancel()

    async def _fire_on(self) -> None:
        while True:
            self._woken.clear()
            try:
                fired = await self.run_once()
                if fired.schedules >= self._config.batch:
                    continue
                pause = await self._pause(fired)
            except HeadraceError as exc:
                log.warning("scheduler.failed", error=exc.code)
                pause = _AFTER_TROUBLE_S
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._woken.wait()

    async def _pause(self, fired: Fired) -> float:
        wait = await store.next_due_in(self._db)
        longest = self._config.poll_every.total_seconds()
        if wait is None:
            return longest
        if wait <= timedelta(0):
            # Due since a moment ago; or somebody else has it just now, or it was set aside: no reason to hurry.
            return 0.0 if fired.schedules else _LOOK_AGAIN_S
        return min(longest, wait.total_seconds())

    async def _listen(self) -> None:
        async with aclosing(self._db.listen("headrace_schedules")) as notes:
            async for _ in notes:
                self._woken.set()
