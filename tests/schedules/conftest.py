"""Schedules for tests: a bench with workers, whose schedules are fired by hand or by a scheduler."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from headrace import ids
from headrace.access import Caller
from headrace.assembly.followers import followers
from headrace.database import Database, Row
from headrace.errors import Unavailable
from headrace.schedules.firing import Fired
from headrace.schedules.loop import Scheduler, SchedulerConfig
from headrace.schedules.model import Schedule, ScheduleSpec
from headrace.schedules.routes import create_router
from headrace.schedules.service import create_schedule
from headrace.tasks.catalog import RegistryCatalog, StoredCatalog, declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand
from tests.open_types import UNCAPPED
from tests.tasks.conftest import Bench
from tests.tasks.people import caller_of, have_labels


class Clockwork(Bench):
    """A bench with schedules on it."""

    def __init__(self, db: Database, scratch: Path) -> None:
        super().__init__(db, scratch)
        self.followers = followers()
        self.caller: Caller = caller_of(ids.SYSTEM_USER)

    @property
    def tasks(self) -> Tasks:
        return Tasks(self.submitter, RegistryCatalog(self.registry), self.followers, UNCAPPED)

    async def declare(self) -> None:
        """As a worker that starts does."""
        async with self.db.transaction() as tx:
            await declare_types(tx, self.registry)

    async def create(self, name: str = "nightly", task_type: str = "job", **spec: Any) -> Schedule:
        await self.declare()
        if not {"cron", "interval", "run_at"} & spec.keys():
            spec["interval"] = 3600
        async with self.db.transaction() as tx:
            return await create_schedule(tx, self.tasks, self.caller, ScheduleSpec(name, task_type, **spec))

    def scheduler(self, **config: Any) -> Scheduler:
        return Scheduler(self.db, self.submitter, SchedulerConfig(**config))

    async def fire(self, at: datetime | None = None, **config: Any) -> Fired:
        """One look at what is due."""
        return await self.scheduler(**config).run_once(now=at)

    @asynccontextmanager
    async def scheduling(self, **config: Any) -> AsyncIterator[Scheduler]:
        scheduler, stop = self.scheduler(**config), asyncio.Event()
        running = asyncio.create_task(scheduler.run(stop))
        try:
            yield scheduler
        finally:
            stop.set()
            await running

    async def schedule(self, uid: str) -> Row:
        (row,) = await self.db.fetch_alone("SELECT * FROM headrace.scheduled_tasks WHERE uid = $1", uid)
        return row

    async def runs(self, uid: str) -> list[Row]:
        """The runs of a schedule by due time and attempt."""
        return await self.db.fetch_alone(
            "SELECT * FROM headrace.task_executions WHERE task_uid = $1 ORDER BY scheduled_at, retry_count, id", uid
        )

    async def until_runs(self, uid: str, *states: str, seconds: float = 60) -> list[Row]:
        """The runs, once they are in these states."""
        async with asyncio.timeout(seconds):
            while True:
                rows = await self.runs(uid)
                if [row["state"] for row in rows] == list(states):
                    return rows
                await asyncio.sleep(0.02)

    async def until_alive(self) -> None:
        """Once a worker has joined."""
        async with asyncio.timeout(60):
            while not await self.db.fetch_alone("SELECT FROM headrace.workers WHERE ended_at IS NULL"):
                await asyncio.sleep(0.02)

    async def until_done(self, uid: str, count: int, seconds: float = 60) -> list[Row]:
        """The first so many runs, once they have succeeded; more may have come up."""
        async with asyncio.timeout(seconds):
            while True:
                with suppress(Unavailable):  # some tests cut the database off
                    rows = (await self.runs(uid))[:count]
                    if [row["state"] for row in rows] == ["success"] * count:
                        return rows
                await asyncio.sleep(0.02)


# A due time counts once, by its last attempt; the attempts before it are counted apart.
COUNTED = """
WITH runs AS (
  SELECT run.*, EXISTS (
    SELECT FROM headrace.task_executions AS later
    WHERE later.task_uid = run.task_uid AND later.scheduled_at = run.scheduled_at
      AND later.retry_count = run.retry_count + 1 AND later.task_id IS NOT DISTINCT FROM run.task_id
  ) AS retried
  FROM headrace.task_executions AS run
)
SELECT schedule.uid
FROM headrace.scheduled_tasks AS schedule
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE finished_at IS NOT NULL AND NOT retried) AS total,
         count(*) FILTER (WHERE retried) AS retries,
         count(*) FILTER (WHERE state = 'success') AS successes,
         count(*) FILTER (WHERE state IN ('failure', 'timeout') AND NOT retried) AS failures,
         max(started_at) FILTER (WHERE finished_at IS NOT NULL) AS executed_at,
         (array_agg(error_message ORDER BY finished_at DESC, id DESC) FILTER (WHERE state IN ('failure', 'timeout')))[1]
           AS error
  FROM (SELECT * FROM runs WHERE runs.task_uid = schedule.uid) AS run
) AS counted
CROSS JOIN LATERAL (
  SELECT count(*) AS recent
  FROM runs AS run
  WHERE run.task_uid = schedule.uid AND run.state IN ('failure', 'timeout') AND NOT run.retried AND NOT EXISTS (
    SELECT FROM headrace.task_executions AS later
    WHERE later.task_uid = schedule.uid AND later.state = 'success'
      AND (later.finished_at, later.id) > (run.finished_at, run.id)
  )
) AS row
WHERE (total_executions, retried_attempts, success_executions, failure_executions, consecutive_failures,
       last_executed_at, last_failure_error)
  IS DISTINCT FROM (total, retries, successes, failures, recent, executed_at, error)
"""


async def miscounted(db: Database) -> list[str]:
    """Schedules whose statistics are not what their runs say. S-09"""
    return [row["uid"] for row in await db.fetch_alone(COUNTED)]


@pytest.fixture
def clockwork(db: Database, tmp_path: Path) -> Clockwork:
    made = Clockwork(db, tmp_path)

    @made.registry.task("job", max_attempts=1)
    async def job(_: TaskContext, payload: Any) -> Any:
        return payload

    return made


SOON = timedelta(seconds=1)


class Order(BaseModel):
    pages: int


@pytest.fixture
async def app(clockwork: Clockwork) -> FastAPI:
    @clockwork.registry.task("report.build")
    async def build(_: TaskContext, __: Order) -> None: ...

    await clockwork.declare()
    await have_labels(clockwork.db, gpu="a100", site="a")
    await have_labels(clockwork.db, site="b", disk="ssd")
    catalog = StoredCatalog()
    ours = Tasks(Submitter(catalog, clockwork.followers), catalog, clockwork.followers, UNCAPPED)
    return create_app(stand.services(clockwork.db), WebConfig(), routers=[create_router(ours)])
