"""How fast tasks are submitted and run: ours, the raw limit of the same tables, and the peers. See README.md."""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import asyncpg

from benchmarks import ours, peers, raw
from benchmarks.draining import drain_rate, execute
from benchmarks.processes import Worker
from benchmarks.report import Run, Targets, console, print_json, print_rounds, print_targets
from benchmarks.scratch import analyze, reset, scratch_server
from headrace import ids


@dataclass(frozen=True)
class Sizes:
    rounds: int
    drain: int
    pgqueuer: int
    procrastinate: int
    million: int
    of_million: int
    singles: int
    bulk: int
    pickups: int


FULL = Sizes(5, 100_000, 50_000, 2_000, 1_000_000, 100_000, 2_000, 100_000, 300)
QUICK = Sizes(2, 10_000, 5_000, 300, 50_000, 10_000, 200, 10_000, 40)


async def fresh(run: Run[Sizes], count: int) -> None:
    await reset(run.url)
    await ours.fill(run.url, count)
    await analyze(run.url)


async def drains(run: Run[Sizes]) -> None:
    """The rounds: each design once in a round, so that a bad minute hits all of them."""
    sizes, url = run.sizes, run.url
    for number in range(sizes.rounds):
        console.print(f"round {number + 1} of {sizes.rounds}")
        await fresh(run, sizes.drain)
        run.note("raw-narrow", await drain_rate(url, "raw-narrow", sizes.drain))
        await fresh(run, sizes.drain)
        run.note("ours", await drain_rate(url, "ours", sizes.drain))
        await fresh(run, sizes.drain)
        await execute(url, raw.PLAIN_INDEX)
        run.note("raw-plain", await drain_rate(url, "raw-plain", sizes.drain))
        await execute(url, "DROP INDEX headrace.idx_bench_ready")
        await peers.fill_pgqueuer(url, sizes.pgqueuer)
        run.note("pgqueuer", await drain_rate(url, "pgqueuer", sizes.pgqueuer))
        await peers.clear_pgqueuer(url)
        await fresh(run, sizes.drain)
        run.note("ours-2", await drain_rate(url, "ours", sizes.drain, processes=2))
        await peers.fill_pgqueuer(url, sizes.pgqueuer)
        run.note("pgqueuer-2", await drain_rate(url, "pgqueuer", sizes.pgqueuer, processes=2))
        await peers.clear_pgqueuer(url)
        await fresh(run, sizes.drain)
        await held(run)
        await submitting(run)
    await peers.fill_procrastinate(url, sizes.procrastinate)
    run.note("procrastinate", await drain_rate(url, "procrastinate", sizes.procrastinate))


async def held(run: Run[Sizes]) -> None:
    """The same drain while a transaction elsewhere keeps vacuum from removing anything."""
    holder = await asyncpg.connect(run.url)
    transaction = holder.transaction(isolation="repeatable_read")
    await transaction.start()
    await holder.fetchval("SELECT count(*) FROM headrace.task_lanes")
    run.note("ours-held", await drain_rate(run.url, "ours", run.sizes.drain))
    await transaction.rollback()
    await holder.close()


async def submitting(run: Run[Sizes]) -> None:
    sizes = run.sizes
    await reset(run.url)
    await execute(run.url, "CREATE TABLE IF NOT EXISTS public.probe (n integer)", "TRUNCATE public.probe")
    connection = await asyncpg.connect(run.url)
    started = time.perf_counter()
    for n in range(sizes.singles):
        await connection.execute("INSERT INTO public.probe VALUES ($1)", n)
    run.note("disk-probe", sizes.singles / (time.perf_counter() - started))
    await connection.close()
    run.note("single", sizes.singles / await ours.submit_singly(run.url, sizes.singles))
    await reset(run.url)
    run.note("raw-copy", sizes.bulk / await raw_copy(run.url, sizes.bulk))
    await reset(run.url)
    run.note("bulk", sizes.bulk / await ours.fill(run.url, sizes.bulk))


async def raw_copy(url: str, count: int) -> float:
    """COPY of the same rows into both tables, ids made beforehand, 5,000 a call."""
    connection = await asyncpg.connect(url)
    lane = await connection.fetchval("SELECT min(id) FROM headrace.task_lanes")
    now = await connection.fetchval("SELECT now()")
    task_columns = ["id", "user_id", "task_type", "title", "payload", "max_attempts", "queued_at", "queue_seq"]
    queue_columns = ["seq", "run_at", "lane_id", "precedence", "task_id"]
    base = await connection.fetchval("SELECT nextval('headrace.task_queue_seq_seq')") + 10_000_000
    rows = [
        (ids.new("tsk"), ids.SYSTEM_USER, "noop", "noop", json.dumps({"n": n}), 3, now, base + n) for n in range(count)
    ]
    started = time.perf_counter()
    for first in range(0, count, 5000):
        part = rows[first : first + 5000]
        async with connection.transaction():
            await connection.copy_records_to_table("tasks", schema_name="headrace", records=part, columns=task_columns)
            queue = [(row[7], now, lane, 0, row[0]) for row in part]
            await connection.copy_records_to_table(
                "task_queue", schema_name="headrace", records=queue, columns=queue_columns
            )
    seconds = time.perf_counter() - started
    await connection.close()
    return seconds


HISTORY = """
INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, status, attempt, progress, queued_at, started_at,
                            finished_at, created_at, updated_at)
SELECT 'tsk_' || lpad(n::text, 26, '0'), $1, 'noop', 'noop', '{"n": 1}', 'SUCCEEDED', 1, 100, at, at, at, at, at
FROM (SELECT n, now() - n * interval '1 second' AS at FROM generate_series(1, $2::integer) AS n) AS old
"""


async def millions(run: Run[Sizes]) -> None:
    """With a long history, and with a long backlog; before and after each a plain drain, for a machine that has just
    loaded a million rows is slower for a while, whatever it does."""
    sizes, url = run.sizes, run.url
    before = await small(run)
    for _ in range(3 if sizes is FULL else 1):
        await reset(url)
        connection = await asyncpg.connect(url)
        await connection.execute(HISTORY, ids.SYSTEM_USER, sizes.million, timeout=600)
        await connection.close()
        await ours.fill(url, sizes.of_million)
        await analyze(url)
        run.note("ours-history", await drain_rate(url, "ours", sizes.of_million))
        after = await small(run)
        run.note("around-history", (before + after) / 2)
        await fresh(run, sizes.million + sizes.of_million)
        run.note("ours-backlog", await drain_rate(url, "ours", sizes.of_million, done="SELECT true"))
        before = await small(run)
        run.note("around-backlog", (before + after) / 2)


async def small(run: Run[Sizes]) -> float:
    await fresh(run, run.sizes.of_million)
    return await drain_rate(run.url, "ours", run.sizes.of_million)


SLEEPER = """
INSERT INTO headrace.workers (id, host, pid, types, concurrency, lease, asleep)
VALUES ('wrk_raw', 'bench', 1, '{noop}', 1, '1 hour', true)
"""


async def pickups(run: Run[Sizes]) -> None:
    """From before the submit call until the handler starts, of a worker that has nothing else to do."""
    for who in ("raw-pickup", "ours"):
        await reset(run.url)
        await ours.fill(run.url, 1)
        if who == "raw-pickup":  # submitters call only when they see somebody asleep
            await execute(run.url, SLEEPER)
        with Worker(who, run.url) as worker:
            worker.go()
            await asyncio.sleep(1.5)
            delays = await _pick_up(run)
        run.note(f"pickup-p50-{who}", delays[len(delays) // 2])
        run.note(f"pickup-p99-{who}", delays[int(len(delays) * 0.99)])


async def _pick_up(run: Run[Sizes]) -> list[float]:
    delays = []
    app = ours.as_app(run.url)
    async with await ours.Database.connect(app) as db, ours.Headrace(app.url, ours.registry) as headrace:
        for n in range(run.sizes.pickups):
            started = time.time_ns()
            task_id = await headrace.submit("noop", {"n": n})
            while True:
                rows = await db.fetch_alone("SELECT result FROM headrace.tasks WHERE id = $1", task_id)
                if rows[0]["result"]:
                    break
                await asyncio.sleep(0.002)
            delays.append((rows[0]["result"]["at"] - started) / 1e6)
            await asyncio.sleep(0.01)
    return sorted(delays)


def ratios(run: Run[Sizes]) -> dict[str, float]:
    raw_best = "raw-narrow" if run.median("raw-narrow") >= run.median("raw-plain") else "raw-plain"
    return {
        "drain1_raw": run.paired("ours", raw_best),
        "drain1_pgqueuer": run.paired("ours", "pgqueuer"),
        "drain2_pgqueuer": run.paired("ours-2", "pgqueuer-2"),
        "history_1m": run.paired("ours-history", "around-history"),
        "backlog_1m": run.paired("ours-backlog", "around-backlog"),
        "held_snapshot": run.paired("ours-held", "ours"),
        "pickup_raw": run.median("pickup-p50-ours") / run.median("pickup-p50-raw-pickup"),
        "single_disk": run.paired("single", "disk-probe"),
        "bulk_copy": run.paired("bulk", "raw-copy"),
    }


TARGETS: Targets = {
    "drain1_raw": ("one process against the better raw loop", 0.8),
    "drain1_pgqueuer": ("one process against PgQueuer", 2.5),
    "drain2_pgqueuer": ("two processes against PgQueuer's two", 1.7),
    "history_1m": ("with a long history, against without", 0.9),
    "backlog_1m": ("with a long backlog, against without", 0.9),
    "held_snapshot": ("with a transaction held open, against without", 0.8),
    "pickup_raw": ("pickup p50 against the raw loop's (less is better)", -1.3),
    "single_disk": ("single submits against one-row commits", 0.75),
    "bulk_copy": ("bulk submits against raw COPY", 0.6),
}


async def measure(run: Run[Sizes]) -> None:
    await peers.install_pgqueuer(run.url)
    await peers.install_procrastinate(run.url)
    await ours.fill(run.url, 10)
    parts: list[Callable[[Run[Sizes]], Awaitable[None]]] = [drains, millions, pickups]
    for part in parts:
        await part(run)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="smaller sizes, under a minute")
    arguments.add_argument("--json", action="store_true", help="print the ratios as JSON, last on standard output")
    chosen = arguments.parse_args()
    with scratch_server() as url:
        run = Run(url, QUICK if chosen.quick else FULL, digits=1)
        asyncio.run(measure(run))
    found = ratios(run)
    print_rounds(run, title="tasks a second (pickup: ms)", digits=1)
    print_targets(found, TARGETS, heading="ratio")
    if chosen.json:
        print_json(found, medians=run.medians(), digits=1)


if __name__ == "__main__":
    main()
