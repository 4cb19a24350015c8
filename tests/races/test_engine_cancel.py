"""Cancel, at every stage of a task's life: it ends CANCELED, once, and is never tried again."""

import asyncio
import os
import random
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import ids
from headrace.access import Role
from headrace.database import Database
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import TaskChanged, TaskOver
from headrace.tasks.execution import Backoff
from headrace.tasks.model import TaskStatus
from headrace.tasks.service import cancel_task
from tests.races import engine_types
from tests.tasks.conftest import Bench
from tests.tasks.people import caller_of, tasks_of

pytestmark = pytest.mark.long

ADMIN = caller_of(ids.SYSTEM_USER, role=Role.ADMIN)
SOON = timedelta(milliseconds=1)


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Bench:
    return Bench(db, tmp_path / "scratch")


@pytest.fixture
def told(tmp_path: Path) -> Path:
    return tmp_path / "told"


async def cancel(bench: Bench, task_id: str) -> TaskStatus:
    async with bench.db.transaction() as tx:
        return (await cancel_task(tx, tasks_of(bench), ADMIN, task_id)).status


async def until_told(told: Path, word: str) -> str:
    async with asyncio.timeout(60):
        while True:
            for line in told.read_text().splitlines() if told.exists() else ():
                if line.startswith(word):
                    return line
            await asyncio.sleep(0.02)


async def assert_canceled_once(bench: Bench, task_id: str, *, attempt: int = 1) -> None:
    (row,) = await bench.over(task_id)
    await asyncio.sleep(0.3)  # time enough for whoever would try again
    later = await bench.row(task_id)
    assert (later["status"], later["attempt"], later["version"]) == ("CANCELED", attempt, row["version"])
    logged = await bench.logged(task_id)
    assert [status for _, status in logged].count("CANCELED") == 1
    assert logged[-1][1] == "CANCELED"
    assert await bench.db.fetch_alone("SELECT FROM headrace.task_queue WHERE task_id = $1", task_id) == []


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_a_queued_task_is_canceled_at_once(bench: Bench, told: Path) -> None:
    bench.registry = engine_types.registry
    waiting = await bench.submit("async", {"told": str(told)})
    delayed = await bench.submit("async", {"told": str(told)}, priority=5)
    assert await cancel(bench, waiting) == "CANCELED"
    assert await cancel(bench, delayed) == "CANCELED"
    assert await cancel(bench, waiting) == "CANCELED"  # twice is no error, and no second line
    async with bench.working():
        await assert_canceled_once(bench, waiting, attempt=0)
        await assert_canceled_once(bench, delayed, attempt=0)
    assert not told.exists()


async def test_a_task_that_waits_for_its_next_attempt_is_canceled_at_once(bench: Bench) -> None:
    @bench.registry.task("flaky", backoff=Backoff(first=timedelta(minutes=5)))
    async def flaky(context: TaskContext, payload: Any) -> None:
        raise RuntimeError("not this time")

    task = await bench.submit("flaky")
    async with bench.working():
        await bench.until(task, lambda row: bool(row["retries"] == 1))
        assert await cancel(bench, task) == "CANCELED"
        await assert_canceled_once(bench, task)
    assert await bench.logged(task) == [(1, "RETRIED"), (0, "CANCELED")]


@pytest.mark.parametrize("listen", [True, False], ids=["listening", "polling"])
@pytest.mark.parametrize("kind", ["async", "thread", "process", "deaf"])
async def test_a_running_task_is_stopped_and_ends_canceled(bench: Bench, told: Path, kind: str, listen: bool) -> None:
    bench.registry = engine_types.registry
    task = await bench.submit(kind, {"told": str(told)})
    # Either way is quick on its own: a listener does not wait for the next look, and a poller looks often.
    poll = timedelta(seconds=30) if listen else timedelta(milliseconds=50)
    async with bench.working(listen=listen, poll_every=poll, concurrency=2):
        began = await until_told(told, "began")
        assert await cancel(bench, task) == "RUNNING"
        await assert_canceled_once(bench, task)
    if kind == "thread":
        assert "saw the flag" in told.read_text()
    if kind == "deaf":
        assert gone(int(began.split()[1])), "the child that would not stop is still there"


@pytest.mark.parametrize("kind", ["async", "thread", "process", "deaf"])
async def test_a_task_canceled_while_the_worker_waits_for_it_to_finish(bench: Bench, told: Path, kind: str) -> None:
    """The worker was told to stop and would give the task back; it must not."""
    bench.registry = engine_types.registry
    task = await bench.submit(kind, {"told": str(told)})
    async with stopping(bench, told, shutdown_timeout=timedelta(seconds=30)):
        assert await cancel(bench, task) == "RUNNING"
    await assert_canceled_once(bench, task)


@pytest.mark.parametrize("kind", ["async", "thread", "deaf"])
async def test_a_task_canceled_after_the_worker_interrupted_it(bench: Bench, told: Path, kind: str) -> None:
    """It was asked to stop because of the shutdown, or has gone back already: neither keeps it from being canceled."""
    bench.registry = engine_types.registry
    task = await bench.submit(kind, {"told": str(told)})
    async with stopping(bench, told, shutdown_timeout=timedelta(0)):
        await cancel(bench, task)
    await assert_canceled_once(bench, task)


class stopping:  # noqa: N801 - reads as a verb, like bench.working
    """A worker that is told to stop while its task runs; what stands inside happens after that."""

    def __init__(self, bench: Bench, told: Path, *, shutdown_timeout: timedelta) -> None:
        self._worker = bench.worker(
            listen=False, poll_every=timedelta(milliseconds=50), shutdown_timeout=shutdown_timeout, concurrency=2
        )
        self._told = told
        self._stop = asyncio.Event()

    async def __aenter__(self) -> Any:
        self._running = asyncio.create_task(self._worker.run(self._stop))
        await until_told(self._told, "began")
        self._stop.set()
        async with asyncio.timeout(60):
            while not self._worker._stopping:
                await asyncio.sleep(0.001)
        return self._worker

    async def __aexit__(self, *_: object) -> None:
        await asyncio.wait_for(self._running, 120)


@pytest.mark.parametrize("listen", [True, False], ids=["listening", "polling"])
async def test_cancel_races_with_everything(bench: Bench, listen: bool) -> None:
    """Tasks succeed, fail, snooze and finish in their own transaction, while two people cancel them all."""

    @bench.registry.task("busy", max_attempts=3, backoff=Backoff(first=SOON, jitter=0))
    async def busy(context: TaskContext, payload: Any) -> str:
        await asyncio.sleep(random.uniform(0, 0.03))
        if payload["way"] == "fails":
            raise RuntimeError("no luck")
        if payload["way"] == "finishes":
            async with bench.db.transaction() as tx:
                await tx.execute("INSERT INTO headrace.rate_limits (bucket, tat) VALUES ($1, now())", context.task_id)
                await context.finish_in(tx, "done")
        return "done"

    ways = ("returns", "fails", "finishes")
    tasks = [await bench.submit("busy", {"way": ways[number % 3]}) for number in range(90)]
    wanted: set[str] = set()

    async def cancel_all(order: list[str]) -> None:
        for task in order:
            with suppress(TaskOver, TaskChanged):
                await cancel(bench, task)
                wanted.add(task)
            await asyncio.sleep(0.002)

    config: dict[str, Any] = {"listen": listen, "poll_every": timedelta(milliseconds=20), "concurrency": 5}
    async with bench.working(**config), bench.working(**config):
        await asyncio.gather(cancel_all(tasks[::-1]), cancel_all(random.sample(tasks, len(tasks))))
        rows = await bench.over(*tasks, seconds=60)
    effects = {row["bucket"] for row in await bench.db.fetch_alone("SELECT bucket FROM headrace.rate_limits")}
    for task, row in zip(tasks, rows, strict=True):
        logged = await bench.logged(task)
        ends = [status for _, status in logged if status in ("SUCCEEDED", "FAILED", "CANCELED")]
        assert ends == [row["status"]], logged
        assert logged[-1][1] == row["status"]
        assert (task in effects) == (row["status"] == "SUCCEEDED" and row["payload"]["way"] == "finishes")
        if task not in wanted:
            assert row["status"] != "CANCELED"
    assert await bench.db.fetch_alone("SELECT FROM headrace.task_queue") == []
    assert Counter(row["status"] for row in rows)["CANCELED"] > 0
