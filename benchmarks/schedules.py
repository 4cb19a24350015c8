"""How punctual schedules are, how fast they fire, and how quickly their history answers. See README.md."""

import argparse
import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
import uvloop

from benchmarks import clockwork
from benchmarks.ours import as_app
from benchmarks.processes import Worker
from benchmarks.report import Run, Targets, console, print_json, print_rounds, print_targets
from benchmarks.scratch import scratch_server
from headrace import ids
from headrace.database import Database
from headrace.schedules.loop import SchedulerConfig
from headrace.schedules.model import ExecutionState, Trigger
from headrace.schedules.store.executions import ExecutionFilter, list_executions

_BATCH = SchedulerConfig().batch


@dataclass(frozen=True)
class Sizes:
    rounds: int
    schedules: int
    due: int
    minutes: int
    inserts: int
    history: int
    filters: int


FULL = Sizes(5, 10_000, 1_000, 1440, 20, 2_000_000, 300)
QUICK = Sizes(2, 2_000, 1_000, 10, 5, 50_000, 80)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


CLEAR = """
SET session_replication_role = replica;
TRUNCATE headrace.task_executions, headrace.scheduled_tasks, headrace.tasks, headrace.task_queue, headrace.task_logs,
  headrace.outbox_events, headrace.workers CASCADE;
SET session_replication_role = origin;
CHECKPOINT;
"""
VACUUMED = ("scheduled_tasks", "task_executions", "tasks", "task_queue")


async def clear(run: Run[Sizes]) -> None:
    await execute(run, *CLEAR.strip().split("\n;"))


async def settle(run: Run[Sizes]) -> None:
    await execute(run, *(f"VACUUM ANALYZE headrace.{table}" for table in VACUUMED))


async def execute(run: Run[Sizes], *statements: str) -> None:
    connection = await asyncpg.connect(run.url)
    try:
        for statement in statements:
            for part in statement.split(";"):
                if part.strip():
                    await connection.execute(part, timeout=900)
    finally:
        await connection.close()


# -- all due at once: ours and APScheduler in turns


async def due_at_once(run: Run[Sizes]) -> None:
    for number in range(run.sizes.rounds):
        console.print(f"due at once, round {number + 1} of {run.sizes.rounds}")
        await ours_at_once(run)
        if number < 2:  # it takes its time to be filled, and does not vary
            await execute(run, "DROP TABLE IF EXISTS apscheduler_jobs")
            theirs_at_once(run)


STARTED = "SELECT count(*) FROM headrace.task_executions WHERE state <> 'pending'"
# By the handlers' own clock, which on one machine is the database's: when they really began.
BEGAN = """
SELECT (result::numeric / 1e9 - extract(epoch FROM scheduled_at))::double precision AS late
FROM headrace.task_executions WHERE state = 'success'
"""


async def ours_at_once(run: Run[Sizes]) -> None:
    """One scheduler, two workers. Running means that the execution's row says so."""
    sizes = run.sizes
    await clear(run)
    async with await Database.connect(as_app(run.url)) as db:
        await clockwork.declare(db)
        with ExitStack() as stack:
            processes = [stack.enter_context(Worker("schedule-worker", run.url)) for _ in range(2)]
            processes.append(stack.enter_context(Worker("scheduler", run.url)))
            for process in processes:
                process.go()
            at = (datetime.now(UTC) + timedelta(seconds=4)).replace(microsecond=0)
            # Each hour, so that none comes again while this is measured.
            await clockwork.fill(db, sizes.schedules, due=sizes.due, at=at, cron=f"{(at.minute + 30) % 60} * * * *")
            await settle(run)
            await asyncio.sleep((at - datetime.now(UTC)).total_seconds() - 0.01)
            await reach(db, STARTED, sizes.due)
            run.note("due-started-s", (datetime.now(UTC) - at).total_seconds())
            await reach(db, "SELECT count(*) FROM headrace.task_executions WHERE state = 'success'", sizes.due)
        late = [row["late"] * 1000 for row in await db.fetch_alone(BEGAN)]
    assert len(late) == sizes.due, f"{len(late)} runs of {sizes.due}"
    run.note("lateness-p50-ms", percentile(late, 0.5))
    run.note("lateness-p99-ms", percentile(late, 0.99))
    run.note("fires-per-s", sizes.due / max(late) * 1000)


async def reach(db: Database, question: str, number: int) -> None:
    async with asyncio.timeout(60):
        while (await db.fetch_alone(question))[0]["count"] < number:
            await asyncio.sleep(0.005)


def theirs_at_once(run: Run[Sizes]) -> None:
    sizes = run.sizes
    with Worker("apscheduler", run.url, str(sizes.schedules), str(sizes.due), "1") as process:
        process.go()
        late = [float(word) * 1000 for word in process.line().split()]
    run.note("apscheduler-p50-ms", percentile(late, 0.5))
    run.note("apscheduler-p99-ms", percentile(late, 0.99))
    run.note("apscheduler-fires-per-s", sizes.due / max(late) * 1000)


# -- a day replayed

# As if everything had run well meanwhile; it is not what is measured.
ALL_RAN = """
SET session_replication_role = replica;
UPDATE headrace.task_executions SET state = 'success', run_by = 'nobody', started_at = scheduled_at,
  finished_at = scheduled_at, progress = 100 WHERE state = 'pending';
DELETE FROM headrace.tasks;
DELETE FROM headrace.task_queue;
SET session_replication_role = origin
"""
# What autovacuum does when a day takes a day.
SWEEP = "VACUUM headrace.tasks, headrace.task_queue, headrace.scheduled_tasks"


async def replay(run: Run[Sizes]) -> None:
    """A thousand schedules of every minute, for a day, by a given clock. Firing alone is measured; while one minute is
    fired, the runs of the minute before end."""
    console.print(f"{run.sizes.minutes:,} minutes of {run.sizes.due:,} schedules replayed")
    await clear(run)
    midnight = datetime(2030, 1, 1, tzinfo=UTC)
    submitting = clockwork.submitter()
    seconds = 0.0
    fired = 0
    others = await asyncpg.connect(run.url)
    async with await Database.connect(as_app(run.url)) as db:
        await clockwork.declare(db)
        await clockwork.fill(db, run.sizes.due, due=run.sizes.due, at=midnight, max_concurrent=2)
        ending: asyncio.Task[str] | None = None
        for minute in range(run.sizes.minutes):
            started = time.perf_counter()
            fired += await clockwork.fire_at(db, submitting, midnight + timedelta(minutes=minute), limit=_BATCH)
            seconds += time.perf_counter() - started
            if ending is not None:
                await ending
            if minute % 10 == 0:
                await others.execute(SWEEP)
            if minute % 240 == 1:
                await settle(run)
                console.print(f"  {fired:,} fired, {fired / seconds:,.0f} a second", highlight=False)
            ending = asyncio.create_task(others.execute(ALL_RAN))
        await ending
    await others.close()
    assert fired == run.sizes.minutes * run.sizes.due, f"{fired} fires"
    run.note("replayed-fires", fired)
    run.note("replay-fires-per-s", fired / seconds)


# -- a thousand executions written (S-16)


async def inserts(run: Run[Sizes]) -> None:
    """A thousand schedules fired in one transaction: their executions and their tasks."""
    console.print("1,000 executions written")
    at = datetime(2030, 1, 1, tzinfo=UTC)
    submitting = clockwork.submitter()
    await clear(run)
    async with await Database.connect(as_app(run.url)) as db:
        await clockwork.declare(db)
        await clockwork.fill(db, 1000, due=1000, at=at)
        for number in range(run.sizes.inserts):
            started = time.perf_counter()
            fired = await clockwork.fire_at(db, submitting, at + timedelta(minutes=number), limit=1001)
            run.note("executions-1000-ms", (time.perf_counter() - started) * 1000)
            assert fired == 1000
            await execute(run, ALL_RAN)


# -- a long history

HISTORY = """
INSERT INTO headrace.task_executions
  (task_uid, user_id, task_name, task_type, execution_uid, run_by, scheduled_at, started_at, finished_at, state,
   duration_ms, progress, trigger_type, trigger_by, created_at, updated_at)
SELECT 'sch_' || lpad(s::text, 26, '0'), $3, 'bench ' || s, 'type.' || s % 20, 'exe_' || lpad(n::text, 26, '0'), 'w',
       at, at, at + interval '1 second', state, 1000, 100,
       CASE WHEN n % 50 = 7 THEN 'manual' ELSE 'scheduled' END, CASE WHEN n % 50 = 7 THEN $2::varchar END, at, at
FROM (
  SELECT n, 1 + n % 1000 AS s, timestamptz '2026-01-01' + n * interval '4 seconds' AS at,
         (ARRAY['success', 'success', 'success', 'failure', 'timeout', 'cancelled', 'interrupted'])[1 + (n / 1000) % 7]
           AS state
  FROM generate_series(1, $1::integer) AS n
) AS old
"""


async def history(run: Run[Sizes]) -> None:
    """Lists by several fields at once, each with other values, as the API asks for them."""
    sizes = run.sizes
    console.print(f"{sizes.history:,} executions, {sizes.filters} searches")
    await clear(run)
    first, seconds = datetime(2026, 1, 1, tzinfo=UTC), sizes.history * 4
    async with await Database.connect(as_app(run.url)) as db:
        await clockwork.declare(db)
        await clockwork.fill(db, 1000, due=1000, at=first + timedelta(days=365))
        await fill_history(run)
        taken: dict[str, list[float]] = {}
        chance = random.Random(7)
        for number in range(sizes.filters):
            kinds = searches(chance, first, seconds)
            name = list(kinds)[number % len(kinds)]
            started = time.perf_counter()
            async with db.transaction(readonly=True) as tx:
                await list_executions(tx, kinds[name], limit=21)
            taken.setdefault(name, []).append((time.perf_counter() - started) * 1000)
    for name, values in taken.items():
        run.note(f"filter-{name}-p95", percentile(values, 0.95))
    run.note("filter-p95-ms", percentile([each for values in taken.values() for each in values], 0.95))


async def fill_history(run: Run[Sizes]) -> None:
    connection = await asyncpg.connect(run.url)
    try:
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(HISTORY, run.sizes.history, "u_bench", ids.SYSTEM_USER, timeout=900)
        await connection.execute("VACUUM ANALYZE headrace.task_executions", timeout=900)
    finally:
        await connection.close()


def searches(chance: random.Random, first: datetime, seconds: int) -> Mapping[str, ExecutionFilter]:
    since = first + timedelta(seconds=chance.randrange(seconds))
    until = since + timedelta(days=chance.choice((1, 7, 30)))
    schedule = f"sch_{chance.randrange(1, 1001):026d}"
    state = chance.choice((ExecutionState.FAILURE, ExecutionState.TIMEOUT, ExecutionState.CANCELLED))
    kind = f"type.{chance.randrange(20)}"
    everybody = None
    return {
        "schedule-state": ExecutionFilter(everybody, schedule_uid=schedule, states=[state]),
        "schedule-time": ExecutionFilter(everybody, schedule_uid=schedule, since=since, until=until),
        "state-time": ExecutionFilter(everybody, states=[state], since=since, until=until),
        "states-type": ExecutionFilter(everybody, states=[state, ExecutionState.INTERRUPTED], type=kind),
        "trigger-time": ExecutionFilter(everybody, trigger=Trigger.MANUAL, since=since, until=until),
        "trigger-state-type": ExecutionFilter(
            everybody, trigger=Trigger.MANUAL, states=[state], type=kind, until=until
        ),
        "owner-time": ExecutionFilter(ids.SYSTEM_USER, since=since, until=until),
        "owner-state-type": ExecutionFilter(ids.SYSTEM_USER, states=[state], type=kind, until=until),
        "all": ExecutionFilter(
            everybody, schedule_uid=schedule, states=[state], trigger=Trigger.SCHEDULED, since=since, until=until
        ),
    }


# -- the figures


def found(run: Run[Sizes]) -> dict[str, float]:
    """The figures that have targets, by the names that others read."""
    figures: dict[str, Callable[[], float]] = {
        "due_started_s": lambda: run.median("due-started-s"),
        "lateness_p99_ms": lambda: run.median("lateness-p99-ms"),
        "executions_1000_ms": lambda: run.median("executions-1000-ms"),
        "filter_p95_ms": lambda: run.median("filter-p95-ms"),
        "apscheduler": lambda: run.median("fires-per-s") / run.median("apscheduler-fires-per-s"),
    }
    measured = {}
    for name, figure in figures.items():
        try:
            measured[name] = figure()
        except KeyError:  # that part was not asked for
            continue
    return measured


TARGETS: Targets = {
    "due_started_s": ("all that are due at once run within", -1.0),
    "lateness_p99_ms": ("how late they begin, p99", -250),
    "executions_1000_ms": ("1,000 executions written in", -200),
    "filter_p95_ms": ("history by several fields, p95", -50),
    "apscheduler": ("fires a second against APScheduler", 5),
}


PARTS: Mapping[str, Callable[[Run[Sizes]], Awaitable[None]]] = {
    "due": due_at_once,
    "replay": replay,
    "inserts": inserts,
    "history": history,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="smaller sizes, under a minute")
    arguments.add_argument("--json", action="store_true", help="print the figures as JSON, last on standard output")
    arguments.add_argument("--part", action="append", choices=PARTS, help="only this; repeatable")
    chosen = arguments.parse_args()
    with scratch_server() as url:
        run = Run(url, QUICK if chosen.quick else FULL, digits=3)
        for name in chosen.part or PARTS:
            uvloop.run(PARTS[name](run))  # as the product does
    figures = found(run)
    print_rounds(run, digits=2)
    print_targets(figures, TARGETS)
    if chosen.json:
        print_json(figures, medians=run.medians(), digits=2)


if __name__ == "__main__":
    main()
