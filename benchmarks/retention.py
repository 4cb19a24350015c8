"""What letting go costs: tasks come in and are run while those that are old enough go, and without. See README.md."""

import argparse
import asyncio
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

import asyncpg

from benchmarks import ours
from benchmarks.processes import Worker
from benchmarks.report import Run, Targets, console, print_json, print_rounds, print_targets
from benchmarks.scratch import analyze, reset, scratch_server
from headrace import Headrace, ids
from headrace.archive.retention import walk_rows
from headrace.assembly.retention import ROWS
from headrace.database import Database
from headrace.tasks.model import TaskSpec
from headrace.tasks.retention_periods import ENDS


@dataclass(frozen=True)
class Sizes:
    rounds: int
    history: int  # tasks that ended long ago
    rate: int  # tasks a second that come in
    seconds: float


FULL = Sizes(2, 1_000_000, 2_000, 240)
QUICK = Sizes(2, 50_000, 1_000, 12)
_KEEP = timedelta(seconds=3)  # an hour as the benchmark counts: the first ones go long before it ends
_EVERY_S = 1.0
_TICK_S = 0.1
SIZE = "SELECT pg_total_relation_size('headrace.tasks') + pg_total_relation_size('headrace.task_logs')"
IS_EMPTY = "SELECT NOT EXISTS (SELECT FROM headrace.task_queue)"
HISTORY = """
INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, status, attempt, progress, queued_at, started_at,
                            finished_at, created_at, updated_at)
SELECT 'tsk_' || lpad(n::text, 26, '0'), $1, 'noop', 'old', '{"n": 1}', 'SUCCEEDED', 1, 100, at, at, at, at, at
FROM (SELECT n, now() - interval '1 day' + n * interval '1 millisecond' AS at
      FROM generate_series(1, $2::integer) AS n) AS past
"""
OLD = "SELECT count(*) FROM headrace.tasks WHERE title = 'old'"
IS_OLD_LEFT = "SELECT EXISTS (SELECT FROM headrace.tasks WHERE created_at < now() - interval '1 hour')"


async def retire(url: str) -> None:
    """What the schedule does every ten minutes, every second."""
    async with await Database.connect(ours.as_app(url)) as db:
        while True:
            started = time.monotonic()
            await walk_rows(db, ROWS["tasks"], dict.fromkeys(ENDS, _KEEP))
            await asyncio.sleep(max(0.0, _EVERY_S - (time.monotonic() - started)))


@contextmanager
def retiring(url: str) -> Iterator[None]:
    """In a process of its own, as in a worker."""
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.retention", "--retire", url])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@dataclass
class Loaded:
    """What came of a load."""

    rate: float  # tasks a second, from the first submission to the end of the last task
    sizes: list[int]  # of the tables, once for each tenth of the time, from when the history was gone on


async def load(run: Run[Sizes]) -> Loaded:
    """Submit at the rate for the whole time, and wait until all of it has been run."""
    sizes, size, looks = run.sizes, list[int](), 0
    connection = await asyncpg.connect(run.url)
    async with Headrace(ours.as_app(run.url).url, ours.registry) as headrace:
        started = time.monotonic()
        sent = 0
        while (passed := time.monotonic() - started) < sizes.seconds:
            due = min(int(passed * sizes.rate) - sent, 2_000)
            if due:
                await headrace.submit_many([TaskSpec("noop", {"n": n}) for n in range(due)])
                sent += due
            if passed > sizes.seconds * looks / 10:
                looks += 1
                if not await connection.fetchval(IS_OLD_LEFT):
                    size.append(await connection.fetchval(SIZE))
            await asyncio.sleep(_TICK_S)
        while not await connection.fetchval(IS_EMPTY):
            await asyncio.sleep(_TICK_S)
        rate = sent / (time.monotonic() - started)
    await connection.close()
    return Loaded(rate, size)


async def once(run: Run[Sizes], name: str) -> None:
    await reset(run.url)
    connection = await asyncpg.connect(run.url)
    # Where the last round had come to is no place to begin: this history is older, and yet new.
    await connection.execute("DELETE FROM headrace.retention_runs")
    await connection.execute(HISTORY, ids.SYSTEM_USER, run.sizes.history, timeout=600)
    await ours.fill(run.url, 10)
    await analyze(run.url)
    with Worker("ours", run.url) as worker:
        worker.go()
        await asyncio.sleep(1.5)
        if name == "with":
            with retiring(run.url):
                loaded = await load(run)
            run.note("retired", 1 - await connection.fetchval(OLD, timeout=600) / run.sizes.history)
            # Until the history has gone, what is dead of it makes room: afterwards as much goes as comes.
            if len(loaded.sizes) >= 3:
                run.note("growth", loaded.sizes[-1] / loaded.sizes[0])
        else:
            loaded = await load(run)
    run.note(f"{name}-rate", loaded.rate)
    await connection.close()


async def measure(run: Run[Sizes]) -> None:
    connection = await asyncpg.connect(run.url)
    # By default autovacuum looks every minute: that is the whole time here.
    await connection.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()
    for number in range(run.sizes.rounds):
        console.print(f"round {number + 1} of {run.sizes.rounds}")
        # Each first in every other round: whoever comes second finds a warmer machine.
        for name in ("without", "with") if number % 2 else ("with", "without"):
            await once(run, name)


TARGETS: Targets = {
    "retention_ratio": ("tasks run while old ones go, against without", 0.9),
    "retired": ("of the history, gone at the end", 1.0),
    "growth": ("size of the tables at the end, against when the history was gone (less is better)", -1.15),
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="smaller sizes, about a minute")
    arguments.add_argument("--json", action="store_true", help="print the ratios as JSON, last on standard output")
    arguments.add_argument("--retire", metavar="URL", help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.retire:
        with suppress(KeyboardInterrupt):
            asyncio.run(retire(chosen.retire))
        return
    with scratch_server() as url:
        run = Run(url, QUICK if chosen.quick else FULL, digits=2)
        asyncio.run(measure(run))
    found = {
        "retention_ratio": run.paired("with-rate", "without-rate"),
        "retired": run.median("retired"),
        # One that never came to the end of the history has not shown that the tables stay as they are.
        "growth": run.median("growth") if "growth" in run.figures else math.inf,
    }
    print_rounds(run, title="tasks a second", digits=2)
    print_targets(found, TARGETS, heading="ratio")
    if chosen.json:
        print_json(found, medians=run.medians(), digits=2)


if __name__ == "__main__":
    main()
