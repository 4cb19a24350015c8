"""What a claim costs beside thousands of lanes that this worker cannot take now. See README.md.

``python -m benchmarks.lanes`` measures; ``--quick`` does so with fewer lanes.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.ours import as_app
from benchmarks.report import Run, Targets, console, print_json, print_rounds, print_targets
from benchmarks.scratch import analyze, reset, scratch_server
from headrace import ids
from headrace.database import Database
from headrace.tasks.catalog import RegistryCatalog
from headrace.tasks.followers import Followers
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.submit import Submitter
from headrace.tasks.worker import store
from headrace.tasks.worker.store import Identity

TARGETS: Targets = {
    "labels_ratio": ("claim of one task beside lanes with labels of no worker, against none", -2),
    "types_ratio": ("claim of one task beside lanes of a type that others run, against none", -2),
    "delayed_ratio": ("claim of one task beside lanes of delayed tasks, against none", -2),
    "survey_ratio": ("idle survey beside all of these, against none", -2),
}


@dataclass(frozen=True)
class Sizes:
    rounds: int
    lanes: int
    claims: int


FULL = Sizes(3, 10_000, 200)
QUICK = Sizes(1, 2_000, 50)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    with scratch_server() as url:
        run = Run(url, QUICK if chosen.quick else FULL, digits=2)
        for number in range(run.sizes.rounds):
            console.print(f"round {number + 1}")
            asyncio.run(measure(run))
    found = _ratios(run)
    print_rounds(run, title="milliseconds", digits=2)
    print_targets(found, TARGETS, heading="ratio")
    if chosen.json:
        print_json(found, medians=run.medians(), digits=2)


async def measure(run: Run[Sizes]) -> None:
    await reset(run.url)
    later = datetime.now(UTC) + timedelta(days=1)
    async with await Database.connect(as_app(run.url)) as db:
        bench = Bench(db)
        await bench.enter()
        await bench.claim(run, "alone")
        await bench.fill(run, lambda n: TaskSpec("mine", labels={"n": str(n)}))
        await bench.claim(run, "labels")
        await bench.fill(run, lambda n: TaskSpec("theirs", limit_key=str(n)))
        await bench.claim(run, "types")
        await bench.fill(run, lambda n: TaskSpec("mine", limit_key=str(n), run_at=later))
        await bench.claim(run, "delayed")


class Bench:
    def __init__(self, db: Database) -> None:
        self._db = db
        registry = Registry()
        for name in ("mine", "theirs"):
            registry.task(name, events=False)(lambda _context, _payload: None)
        self._submitter = Submitter(RegistryCatalog(registry), Followers())
        self._worker = Identity(0, "")

    async def enter(self) -> None:
        async with self._db.transaction() as tx:
            self._worker = await store.register(
                tx, ids.new("wrk"), host="here", pid=1, queues=None, labels={}, slots=[("", 10, ["mine"])],
                lease=timedelta(hours=1),
            )  # fmt: skip

    async def fill(self, run: Run[Sizes], spec: Callable[[int], TaskSpec]) -> None:
        specs = [spec(n) for n in range(run.sizes.lanes)]
        await self._submitter.submit_now(self._db, specs, user_id=ids.SYSTEM_USER)
        await analyze(run.url)

    async def claim(self, run: Run[Sizes], name: str) -> None:
        """Survey with nothing to take, then submit and claim one task, again and again; notes the medians in ms."""
        surveys, claims = [], []
        for _ in range(run.sizes.claims):
            started = time.perf_counter()
            await store.survey(self._db, queues=None, types=["mine"], labels={}, after=(-(2**31), -1), most=256)
            surveys.append(time.perf_counter() - started)
            await self._submitter.submit_now(self._db, [TaskSpec("mine")], user_id=ids.SYSTEM_USER)
            started = time.perf_counter()
            rows = await store.claim_first(
                self._db, self._worker, queues=None, types=["mine"], labels={}, most=10, startable=10
            )
            claims.append(time.perf_counter() - started)
            assert len(rows) == 1
        run.note(f"survey-{name}-ms", 1000 * statistics.median(surveys))
        run.note(f"claim-{name}-ms", 1000 * statistics.median(claims))


def _ratios(run: Run[Sizes]) -> dict[str, float]:
    alone = run.median("claim-alone-ms")
    return {
        **{f"{name}_ratio": run.median(f"claim-{name}-ms") / alone for name in ("labels", "types", "delayed")},
        "survey_ratio": run.median("survey-delayed-ms") / run.median("survey-alone-ms"),
    }


if __name__ == "__main__":
    main()
