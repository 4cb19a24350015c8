"""APScheduler 3 with its PostgreSQL job store: one process, as its documentation has it."""

import asyncio
import sys
import time
from datetime import UTC, datetime, timedelta

from apscheduler.executors.asyncio import AsyncIOExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from sqlalchemy import create_engine

_started: list[int] = []


async def tick() -> None:
    _started.append(time.time_ns())


def store_of(url: str) -> SQLAlchemyJobStore:
    return SQLAlchemyJobStore(engine=create_engine(url.replace("postgresql://", "postgresql+psycopg://")))


async def fire(url: str, stop: asyncio.Event, jobs: float, due: float, delay_s: float) -> None:
    """Add the jobs, then let those that are due in ``delay_s`` fire; prints the moment and when each of them began."""
    scheduler = AsyncIOScheduler(
        jobstores={"default": store_of(url)},
        # On the loop: quicker here than its pool of threads.
        executors={"default": AsyncIOExecutor()},
        job_defaults={"misfire_grace_time": None, "coalesce": False, "max_instances": 1},
        timezone=UTC,
    )
    scheduler.start(paused=True)
    for n in range(int(jobs)):
        # Its first time is set below, once all are there.
        later = datetime.now(UTC) + timedelta(hours=1 + n % 60)
        scheduler.add_job(f"{__name__}:tick", "interval", minutes=1, id=str(n), next_run_time=later)
    at = (datetime.now(UTC) + timedelta(seconds=delay_s + due * 0.004)).replace(microsecond=0)
    for n in range(int(due)):
        scheduler.modify_job(str(n), next_run_time=at)
    scheduler.resume()
    while len(_started) < due and not stop.is_set():
        await asyncio.sleep(0.02)
    began = at.timestamp() * 1e9
    sys.stdout.write(" ".join(str((each - began) / 1e9) for each in _started) + "\n")
    sys.stdout.flush()
    await stop.wait()
    scheduler.shutdown(wait=False)
