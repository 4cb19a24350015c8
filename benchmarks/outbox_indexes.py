"""What document 002's two further indexes of ``outbox_events`` would cost: in turns without and with them, on one
server with a history of published events. docs/why/schema.md has the figures."""

import argparse
import asyncio
import time
from dataclasses import dataclass, field

import asyncpg
import psutil

from benchmarks import ours
from benchmarks.draining import drain_rate, execute
from benchmarks.events import HISTORY, SOMEBODY, append, relay_rate
from benchmarks.report import Run, console, print_json, print_rounds
from benchmarks.scratch import analyze, reset, scratch_server
from headrace.database import Database


@dataclass(frozen=True)
class Sizes:
    rounds: int
    tasks: int
    singles: int
    events: int
    history: int


FULL = Sizes(12, 15_000, 500, 20_000, 1_000_000)
QUICK = Sizes(3, 4_000, 150, 4_000, 50_000)

INDEXES = {
    "idx_outbox_events_aggregate": "(aggregate_type, aggregate_id)",
    "idx_outbox_events_event_type_created_at": "(event_type, created_at DESC)",
}
FORGET = "DELETE FROM headrace.outbox_events WHERE event_id NOT LIKE 'evt_old_%'"
SHAPES = ("without", "with")


async def shape(url: str, wanted: str) -> None:
    """The table with its history alone, with or without the indexes."""
    drops = [f"DROP INDEX IF EXISTS headrace.{name}" for name in INDEXES]
    makes = [f"CREATE INDEX {name} ON headrace.outbox_events {columns}" for name, columns in INDEXES.items()]
    await reset(url)
    await execute(url, FORGET, *drops, "VACUUM headrace.outbox_events", *(makes if wanted == "with" else ()))
    await execute(url, "ANALYZE headrace.outbox_events", "CHECKPOINT")


@dataclass
class Meter:
    """Processor time of one PostgreSQL and the WAL it writes: they vary less than rates on a shared machine."""

    server: psutil.Process
    connection: asyncpg.Connection
    costs: dict[str, float] = field(default_factory=dict)

    def _cpu(self) -> float:
        parts = [self.server, *self.server.children(recursive=True)]
        return sum(sum(part.cpu_times()[:4]) for part in parts if part.is_running())

    async def _wal(self) -> float:
        return float(await self.connection.fetchval("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    async def start(self) -> tuple[float, float]:
        return self._cpu(), await self._wal()

    async def stop(self, run: Run[Sizes], name: str, began: tuple[float, float], count: int) -> None:
        run.note(f"{name} cpu µs", (self._cpu() - began[0]) / count * 1e6)
        run.note(f"{name} wal bytes", (await self._wal() - began[1]) / count)


async def measure_shape(run: Run[Sizes], meter: Meter, wanted: str) -> None:
    sizes = run.sizes
    await shape(run.url, wanted)
    run.note(f"single {wanted}", sizes.singles / await ours.submit_singly(run.url, sizes.singles, "noop.told"))
    await reset(run.url)
    began = await meter.start()
    run.note(f"submit {wanted}", sizes.tasks / await ours.fill(run.url, sizes.tasks, "noop.told"))
    await meter.stop(run, f"submit {wanted}", began, sizes.tasks)
    await analyze(run.url)
    began = await meter.start()
    run.note(f"drain {wanted}", await drain_rate(run.url, "ours", sizes.tasks))
    await meter.stop(run, f"drain {wanted}", began, sizes.tasks)
    await shape(run.url, wanted)
    async with await Database.connect(ours.as_app(run.url)) as db:
        began = await meter.start()
        started = time.perf_counter()
        await append(db, sizes.events)
        run.note(f"append {wanted}", sizes.events / (time.perf_counter() - started))
        await meter.stop(run, f"append {wanted}", began, sizes.events)
        await execute(run.url, FORGET, "VACUUM headrace.outbox_events")
        began = await meter.start()
        run.note(f"append and relay {wanted}", await relay_rate(db, sizes.events))
        await meter.stop(run, f"append and relay {wanted}", began, sizes.events)


async def measure(run: Run[Sizes]) -> None:
    connection = await asyncpg.connect(run.url)
    postmaster = psutil.Process(connection.get_server_pid()).parent()
    assert postmaster is not None
    await ours.fill(run.url, 10, "noop.told")
    await execute(run.url, SOMEBODY, "TRUNCATE headrace.outbox_events")
    await connection.execute(HISTORY, run.sizes.history, timeout=600)
    meter = Meter(postmaster, connection)
    for number in range(run.sizes.rounds):
        console.print(f"round {number + 1} of {run.sizes.rounds}")
        for wanted in SHAPES if number % 2 == 0 else reversed(SHAPES):
            await measure_shape(run, meter, wanted)
    await connection.close()


def costs(run: Run[Sizes]) -> dict[str, float]:
    """What each figure loses by the indexes, as a share of it without them; negative is a gain."""
    found = {}
    for name in run.figures:
        if " without" in name:
            ratio = run.paired(name.replace("without", "with"), name)
            found[name.replace(" without", "")] = ratio - 1 if name.endswith(("µs", "bytes")) else 1 - ratio
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="smaller sizes, about two minutes")
    arguments.add_argument("--json", action="store_true", help="print the figures as JSON, last on standard output")
    chosen = arguments.parse_args()
    with scratch_server() as url:
        run = Run(url, QUICK if chosen.quick else FULL, digits=1)
        asyncio.run(measure(run))
    found = costs(run)
    print_rounds(run, title="a second, without and with the two indexes", digits=1)
    for name, cost in found.items():
        console.print(f"{name:<28} {cost:+.1%}", highlight=False)
    if chosen.json:
        print_json(found, digits=1)


if __name__ == "__main__":
    main()
