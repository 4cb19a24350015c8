"""Schedulers, workers and PostgreSQL are killed and frozen; afterwards every due time has one chain of runs."""

import asyncio
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from headrace import ids
from headrace.audit import Who
from headrace.database import Database, DatabaseConfig
from headrace.errors import Unavailable
from headrace.schedules.model import OverlapPolicy, ScheduleSpec
from headrace.schedules.service import ensure_schedule
from tests.races.engine_program import Options
from tests.races.engine_stand import Crew, Mortal, crew, harm, mortal_server
from tests.schedules.conftest import miscounted

pytestmark = pytest.mark.long

LEASE = 1.5


@pytest.fixture
def mortal() -> Iterator[Mortal]:
    with mortal_server() as server:
        yield server


async def make(
    db: Database, count: int, *, max_concurrent: int, policies: Sequence[OverlapPolicy] = (OverlapPolicy.QUEUE_ALL,)
) -> None:
    async with db.transaction() as tx:
        for number in range(count):
            wanted = ScheduleSpec(
                f"tick {number}", "tick", interval=1, max_retries=500, max_concurrent=max_concurrent,
                overlap_policy=policies[number % len(policies)],
            )  # fmt: skip
            assert await ensure_schedule(tx, Who.system(), f"sch_{number:04}", wanted, user_id=ids.SYSTEM_USER)


async def until(db: Database, sql: str, *, within: float) -> None:
    """Wait until this gives nothing any more."""
    deadline = time.monotonic() + within
    rows: list[object] = [None]
    while rows:
        with suppress(Unavailable):
            rows = [*await db.fetch_alone(sql)]
        assert time.monotonic() < deadline, f"still after {within:.0f} s: {rows[:3]}"
        await asyncio.sleep(0.1)


# In the order in which everybody locks schedules.
STOP = """
UPDATE headrace.scheduled_tasks SET enabled = false
WHERE uid = ANY (ARRAY(SELECT uid FROM headrace.scheduled_tasks ORDER BY uid FOR NO KEY UPDATE))
"""
ACTIVE = "SELECT * FROM headrace.task_executions WHERE finished_at IS NULL LIMIT 5"
UNFIRED = "SELECT uid FROM headrace.scheduled_tasks WHERE next_run = created_at + interval '1 second'"
# From the first due time to the one before next_run every second has fired or was skipped.
MISSING = """
SELECT schedule.uid, expected.number AS expected, schedule.skipped_runs, fired.number AS fired
FROM headrace.scheduled_tasks AS schedule
CROSS JOIN LATERAL (
  SELECT round(extract(epoch FROM schedule.next_run - schedule.created_at - interval '1 second')) AS number
) AS expected
CROSS JOIN LATERAL (
  SELECT count(DISTINCT run.scheduled_at) AS number FROM headrace.task_executions AS run
  WHERE run.task_uid = schedule.uid AND run.trigger_type = 'scheduled'
    AND extract(epoch FROM run.scheduled_at - schedule.created_at) % 1 = 0
) AS fired
WHERE expected.number <> fired.number + schedule.skipped_runs
"""
# One chain for a due time: attempts from 0 on without a gap, the last of them a success and no other. Only where later
# runs take the place of earlier ones may it be canceled instead, also before it had a task.
BROKEN = """
SELECT task_uid, scheduled_at, array_agg(state ORDER BY retry_count) AS states
FROM headrace.task_executions
JOIN headrace.scheduled_tasks ON uid = task_uid
GROUP BY task_uid, scheduled_at, overlap_policy
HAVING min(retry_count) <> 0 OR max(retry_count) <> count(*) - 1
    OR count(*) FILTER (WHERE state IN ('success', 'cancelled')) <> 1
    OR NOT (array_agg(state ORDER BY retry_count DESC))[1] = ANY (
         CASE overlap_policy WHEN 'cancel_running' THEN '{success,cancelled}'::text[] ELSE '{success}' END)
    OR count(DISTINCT coalesce(task_id, 'none')) <> 1
"""
# The newest of a schedule is never the one to go.
UNFINISHED = """
SELECT uid FROM headrace.scheduled_tasks
WHERE overlap_policy = 'cancel_running' AND 'success' <> (
  SELECT state FROM headrace.task_executions WHERE task_uid = uid ORDER BY scheduled_at DESC, retry_count DESC LIMIT 1
)
"""
TOTALS = """
SELECT count(*) AS runs, count(*) FILTER (WHERE state = 'interrupted') AS interrupted,
       (SELECT sum(skipped_runs) FROM headrace.scheduled_tasks) AS skipped
FROM headrace.task_executions
"""


async def survive(
    mortal: Mortal, folder: Path, *, schedules: int, each: int, seconds: float, most: int | None = None
) -> None:
    base = Options(
        mortal.url, "worker", lease=LEASE, concurrency=30, work=0.3, marks=str(folder),
        program="tests.races.schedule_program",
    )  # fmt: skip
    calm = asyncio.Event()
    async with (
        await Database.connect(DatabaseConfig(mortal.url, role="test")) as db,
        crew(base, folder / "workers.log", size=each) as workers,
        crew(replace(base, types="scheduler"), folder / "schedulers.log", size=each) as firing,
    ):
        await until(db, "SELECT 1 WHERE NOT EXISTS (SELECT FROM headrace.task_types)", within=60)
        await make(db, schedules, max_concurrent=5)
        await until(db, UNFIRED, within=60)
        async with asyncio.TaskGroup() as storm:
            storm.create_task(harm(workers, calm, choice=random.Random(), lease=LEASE, most=most))
            storm.create_task(harm(firing, calm, choice=random.Random(), lease=LEASE, most=most))
            storm.create_task(_then_calm(mortal, calm, seconds))
        await retried(db, STOP)
        await until(db, ACTIVE, within=300)
        assert no_one_fell(workers) == no_one_fell(firing) == []
        assert [*map(dict, await db.fetch_alone(MISSING))] == []
        assert [*map(dict, await db.fetch_alone(BROKEN))] == []
        assert await miscounted(db) == []
        (totals,) = await db.fetch_alone(TOTALS)
        sys.stdout.write(
            f"{len(workers.buried)} workers and {len(firing.buried)} schedulers killed; {totals['runs']} runs, "
            f"{totals['interrupted']} cut off, {totals['skipped']} skipped\n"
        )
        assert workers.buried, "nothing was harmed: the test proves nothing"


def no_one_fell(team: Crew) -> list[int]:
    return [program.process.returncode for program in team.fallen]


async def _then_calm(mortal: Mortal, calm: asyncio.Event, seconds: float) -> None:
    await asyncio.sleep(seconds / 2)
    await asyncio.to_thread(mortal.kill)
    await asyncio.sleep(seconds / 2)
    calm.set()


async def retried(db: Database, sql: str) -> None:
    while True:
        try:
            await db.fetch_alone(sql)
        except Unavailable:
            await asyncio.sleep(0.1)
        else:
            return


@pytest.mark.timeout(600)
async def test_each_due_time_has_one_chain_of_runs_whatever_is_killed(mortal: Mortal, tmp_path: Path) -> None:
    await survive(mortal, tmp_path, schedules=20, each=2, seconds=4, most=3)  # S-14 S-11 S-09


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_three_hundred_schedules_of_every_second_survive_two_minutes(mortal: Mortal, tmp_path: Path) -> None:
    await survive(mortal, tmp_path, schedules=300, each=3, seconds=120)  # S-14 S-11 S-09


# -- never more at once


AT_ONCE = """
SELECT max(running) FROM (
  SELECT sum(step) OVER (PARTITION BY task_uid ORDER BY at, step) AS running FROM (
    SELECT task_uid, started_at AS at, 1 AS step FROM headrace.task_executions WHERE started_at IS NOT NULL
    UNION ALL
    SELECT task_uid, finished_at, -1 FROM headrace.task_executions WHERE finished_at IS NOT NULL
  ) AS steps
) AS counted
"""


# Until each policy was needed the test proves nothing.
UNNEEDED = """
SELECT overlap_policy FROM headrace.scheduled_tasks AS schedule
WHERE CASE overlap_policy
  WHEN 'cancel_running' THEN NOT EXISTS (
    SELECT FROM headrace.task_executions WHERE task_uid = uid AND state = 'cancelled' AND task_id IS NOT NULL)
  WHEN 'queue_all' THEN NOT EXISTS (
    SELECT FROM headrace.task_executions WHERE task_uid = uid AND state = 'pending' AND task_id IS NULL)
  ELSE skipped_runs = 0 END
"""


async def overlap(
    mortal: Mortal, folder: Path, *, schedules: int, each: int, seconds: float, most: int | None = None
) -> None:
    base = Options(
        mortal.url, "worker", lease=LEASE, concurrency=20, work=4.0, marks=str(folder),
        program="tests.races.schedule_program",
    )  # fmt: skip
    calm = asyncio.Event()
    async with (
        await Database.connect(DatabaseConfig(mortal.url, role="test")) as db,
        crew(base, folder / "workers.log", size=each) as workers,
        crew(replace(base, types="scheduler"), folder / "schedulers.log", size=2) as firing,
    ):
        await until(db, "SELECT 1 WHERE NOT EXISTS (SELECT FROM headrace.task_types)", within=60)
        await make(db, schedules, max_concurrent=2, policies=list(OverlapPolicy))
        await until(db, UNFIRED, within=60)
        async with asyncio.TaskGroup() as storm:
            storm.create_task(harm(workers, calm, choice=random.Random(), lease=LEASE, most=most))
            storm.create_task(harm(firing, calm, choice=random.Random(), lease=LEASE, most=most))
            storm.create_task(_calm_after(calm, seconds, db))
        await retried(db, STOP)
        await until(db, ACTIVE, within=240)
        (at_once,) = await db.fetch_alone(AT_ONCE)
        assert at_once[0] == 2
        for wrong in (MISSING, BROKEN, UNFINISHED):
            assert [*map(dict, await db.fetch_alone(wrong))] == []
        assert await miscounted(db) == []


async def _calm_after(calm: asyncio.Event, seconds: float, db: Database) -> None:
    await asyncio.sleep(seconds)
    await until(db, UNNEEDED, within=120)
    calm.set()


@pytest.mark.timeout(600)
async def test_never_more_than_max_concurrent_run_at_once_whatever_the_policy(
    mortal: Mortal, tmp_path: Path
) -> None:  # S-07
    await overlap(mortal, tmp_path, schedules=4, each=2, seconds=3, most=3)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_never_more_than_max_concurrent_over_a_minute(mortal: Mortal, tmp_path: Path) -> None:  # S-07
    await overlap(mortal, tmp_path, schedules=10, each=3, seconds=60)
