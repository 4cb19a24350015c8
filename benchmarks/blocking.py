"""What others notice of one user's open transaction: how long their tasks take to end and to be submitted while a
program that has submitted a metered task for ada does not commit, and ada's tasks fail. See README.md.

``python -m benchmarks.blocking`` measures; ``--quick`` keeps the transaction open for 10 s instead of 30.
"""

import argparse
import asyncio
import itertools
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg

from benchmarks.billing import add_user
from benchmarks.ours import as_app
from benchmarks.processes import Worker as WorkerProcess
from benchmarks.report import Run, Targets, console, print_json, print_rounds, print_targets
from benchmarks.scratch import reset, scratch_server
from headrace.assembly.followers import followers
from headrace.database import Database
from headrace.tasks.catalog import RegistryCatalog, declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Fatal
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.submit import Submitter
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker

TARGETS: Targets = {
    "others_end_ratio": ("p99 from a task's submission to its end, others than ada's, with against without", -2),
    "others_submit_ratio": ("p99 of a submission, others than ada's, with against without", -2),
}
OTHERS = 20
WORKERS = 2
_LOOK_EVERY_S = 0.005
_SUBMIT_EVERY_S = 0.02  # others' tasks
_FAIL_EVERY_S = 0.1  # ada's tasks


@dataclass(frozen=True)
class Sizes:
    rounds: int
    seconds: float


FULL = Sizes(3, 30.0)
QUICK = Sizes(1, 10.0)
registry = Registry()


@registry.task("render", units=1, max_attempts=1, submit="users")
async def render(_context: TaskContext, payload: dict[str, bool]) -> None:
    if payload["fails"]:
        raise Fatal("the picture is broken")


@registry.task("free")
async def free(_context: TaskContext, _payload: object) -> None: ...


async def work(url: str, stop: asyncio.Event) -> None:
    async with await Database.connect(as_app(url)) as db:
        await Worker(db, registry, followers(), WorkerConfig()).run(stop)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    with scratch_server() as url:
        run = Run(url, QUICK if chosen.quick else FULL, digits=2)
        for number in range(run.sizes.rounds):
            console.print(f"round {number + 1}")
            asyncio.run(measure(run, number))
    found = {
        "others_end_ratio": run.paired("end-p99-open-ms", "end-p99-ms"),
        "others_submit_ratio": run.paired("submit-p99-open-ms", "submit-p99-ms"),
    }
    print_rounds(run, title="milliseconds", digits=2)
    print_targets(found, TARGETS, heading="ratio")
    if chosen.json:
        print_json(found, medians=run.medians(), digits=2)


async def measure(run: Run[Sizes], number: int) -> None:
    await reset(run.url)
    async with await Database.connect(as_app(run.url)) as db:
        async with db.transaction() as tx:
            await declare_types(tx, registry)
            await tx.execute(
                "INSERT INTO headrace.plans (id, name, price_cents, monthly_quota) VALUES ('p', 'p', 0, 0) "
                "ON CONFLICT DO NOTHING"
            )
            ada = await add_user(tx.execute, f"ada-{number}")
            others = [await add_user(tx.execute, f"other-{number}-{each}") for each in range(OTHERS)]
        site = Site(db, ada, others)
        with ExitStack() as stack:
            workers = [stack.enter_context(WorkerProcess("blocking", run.url)) for _ in range(WORKERS)]
            for worker in workers:
                worker.go()
            await site.load(2.0)  # everything warm
            await site.submit_failing(run.sizes.seconds)
            _note(run, "", await site.load(run.sizes.seconds))
            await site.submit_failing(run.sizes.seconds)
            async with site.open_transaction(run.url):
                _note(run, "-open", await site.load(run.sizes.seconds))
            await site.until_adas_are_over()


def _note(run: Run[Sizes], suffix: str, measured: "tuple[Sequence[float], Sequence[float]]") -> None:
    for name, values in zip(("submit", "end"), measured, strict=True):
        run.note(f"{name}-p99{suffix}-ms", 1000 * statistics.quantiles(values, n=100)[98])
        run.note(f"{name}-median{suffix}-ms", 1000 * statistics.median(values))


class Site:
    def __init__(self, db: Database, ada: str, others: Sequence[str]) -> None:
        self._db = db
        self._ada = ada
        self._others = others
        self._submitter = Submitter(RegistryCatalog(registry), followers())
        self._open: dict[str, float] = {}  # others' tasks that are not over, and when they were submitted
        self._ended: list[float] = []

    @asynccontextmanager
    async def open_transaction(self, url: str) -> AsyncIterator[None]:
        """A program that has submitted for ada and does not commit before the block ends."""
        program = await asyncpg.connect(as_app(url).url, server_settings={"application_name": "import"})
        try:
            async with program.transaction():
                await program.execute(
                    "SELECT headrace.submit('render', '{\"fails\": false}', user_id => $1)", self._ada
                )
                yield
        finally:
            await program.close()

    async def submit_failing(self, seconds: float) -> None:
        """Tasks of ada's that fail one after the other from now on: none can be submitted while hers are locked."""
        now = datetime.now(UTC)
        times = [now + timedelta(seconds=each * _FAIL_EVERY_S) for each in range(int(seconds / _FAIL_EVERY_S))]
        specs = [TaskSpec("render", {"fails": True}, run_at=at) for at in times]
        await self._submitter.submit_now(self._db, specs, user_id=self._ada)

    async def load(self, seconds: float) -> tuple[list[float], list[float]]:
        """Submit others' tasks at a steady rate; gives the seconds each submission took, and each task until its end
        was seen. What has not ended when the time is over counts with its age."""
        submits: list[float] = []
        self._open, self._ended = {}, []
        users = itertools.cycle(self._others)
        specs = itertools.cycle(
            [TaskSpec("render", {"fails": False}), TaskSpec("free"), TaskSpec("render", {"fails": True})]
        )
        watching = asyncio.create_task(self._watch())
        end = time.perf_counter() + seconds
        try:
            while (began := time.perf_counter()) < end:
                (task_id,) = await self._submitter.submit_now(self._db, [next(specs)], user_id=next(users))
                submits.append(time.perf_counter() - began)
                self._open[task_id] = began
                await asyncio.sleep(max(0.0, began + _SUBMIT_EVERY_S - time.perf_counter()))
            await asyncio.sleep(0.5)
        finally:
            watching.cancel()
        now = time.perf_counter()
        return submits, [*self._ended, *(now - began for began in self._open.values())]

    async def _watch(self) -> None:
        """Looked for, and not read from finished_at: that is when the writing of an end began."""
        while True:
            rows = await self._db.fetch_alone(
                "SELECT id FROM headrace.tasks WHERE id = ANY ($1) AND finished_at IS NOT NULL", list(self._open)
            )
            now = time.perf_counter()
            self._ended += [now - self._open.pop(row["id"]) for row in rows]
            await asyncio.sleep(_LOOK_EVERY_S)

    async def until_adas_are_over(self) -> None:
        """What was blocked is written after the commit: of her tasks that were due none runs on."""
        sql = (
            "SELECT count(*) AS many FROM headrace.tasks "
            "WHERE user_id = $1 AND finished_at IS NULL AND run_at < now() - interval '1 second'"
        )
        async with asyncio.timeout(60):
            while (await self._db.fetch_alone(sql, self._ada))[0]["many"]:
                await asyncio.sleep(0.05)


if __name__ == "__main__":
    main()
