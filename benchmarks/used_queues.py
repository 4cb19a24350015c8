"""Draining, submitting and picking up: Headrace beside the other queues, each through its public interface."""

import asyncio
import json
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from benchmarks import node_peers, ours, peers
from benchmarks.draining import EMPTY
from benchmarks.processes import Worker
from benchmarks.report import Run
from benchmarks.scratch import reset
from benchmarks.usage import cpu_seconds, server_pid, tree_cpu_seconds
from headrace import Headrace, ids

if TYPE_CHECKING:
    from benchmarks.used import Sizes

TASK = "noop.told"  # the default: its events are told to whoever listens
PATIENCE_S = 120.0
_EMPTY = {**EMPTY, "headrace": EMPTY["ours"], **node_peers.EMPTY, "graphile-default": node_peers.EMPTY["graphile"]}
_NODE = ("graphile", "graphile-default", "pgboss")
# What the operator drops who does not need these lists; `headrace indexes` does it.
LEAN_INDEXES = ("idx_tasks_status_updated_at", "idx_tasks_user_status_created_at")
HISTORY = """
INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, status, attempt, progress, queued_at, started_at,
                            finished_at, created_at, updated_at)
SELECT 'tsk_' || lpad(n::text, 26, '0'), $1, 'noop', 'noop', '{"n": 1}', 'SUCCEEDED', 1, 100, at, at, at, at, at
FROM (SELECT n, now() - n * interval '1 second' AS at FROM generate_series(1, $2::integer) AS n) AS old
"""


@dataclass
class Drained:
    rate: float
    cpu_us: float


async def fill(url: str, who: str, count: int) -> float:
    """Submit in bulk, a thousand a call; gives the seconds it took."""
    if who == "headrace":
        return await ours.fill(url, count, TASK, rows=1000)
    if who == "pgqueuer":
        started = time.perf_counter()
        await peers.fill_pgqueuer(url, count)
        return time.perf_counter() - started
    if who == "procrastinate":
        started = time.perf_counter()
        await peers.fill_procrastinate(url, count)
        return time.perf_counter() - started
    return float(await asyncio.to_thread(node_peers.call, who, "fill", url, count))


async def settle(url: str, *, analyze: bool = True) -> None:
    connection = await asyncpg.connect(url)
    try:
        if analyze:
            await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


async def clear(url: str) -> None:
    """Empty everybody's tables: nobody's history is in the way of the next."""
    await reset(url)
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("TRUNCATE pgqueuer, pgqueuer_log")
        for schema, statement in (("graphile_worker", node_peers.CLEAR["graphile"]), ("pgboss", "TRUNCATE pgboss.job")):
            if await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", schema):
                await connection.execute(statement)
    finally:
        await connection.close()


async def drain(url: str, who: str, count: int, *, processes: int = 1) -> Drained:
    """Tasks a second of so many workers over what waits, and the processor time of workers and PostgreSQL a task."""
    server = await server_pid(url)
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, str(number)) for number in range(processes)]
        if who in _NODE:
            commands = [node_peers.command(who, "work", url, count, file) for file in files]
            workers = [stack.enter_context(Worker.running(command)) for command in commands]
        else:
            workers = [stack.enter_context(Worker(who, url)) for _ in files]
        connection = await asyncpg.connect(url)
        used = tree_cpu_seconds(server) + sum(cpu_seconds(worker.pid) for worker in workers)
        before = await connection.fetchval(_LINES)
        started = time.perf_counter()
        for worker in workers:
            worker.go()
        while not (await _handled(connection, who, files, before, count) and await connection.fetchval(_EMPTY[who])):
            if all(worker.ended for worker in workers):
                raise SystemExit(f"{who}: the workers ended before the work did")
            if time.perf_counter() - started > PATIENCE_S:
                raise SystemExit(f"{who}: not done after {PATIENCE_S} s")
            await asyncio.sleep(0.01)
        seconds = time.perf_counter() - started
        used = tree_cpu_seconds(server) + sum(cpu_seconds(worker.pid) for worker in workers) - used
        await connection.close()
    return Drained(count / seconds, used * 1e6 / count)


_LINES = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM headrace.task_logs_id_seq"


async def _handled(
    connection: "asyncpg.Connection[asyncpg.Record]", who: str, files: list[Path], before: int, count: int
) -> bool:
    """Whether all handlers have run, as far as that can be read for nothing: a look at the table takes the time of
    those who work."""
    if who == "headrace":
        return bool(await connection.fetchval(_LINES) >= before + count)
    if who in _NODE:
        texts = await asyncio.to_thread(lambda: [file.read_text() if file.exists() else "" for file in files])
        # Two workers write every 500, and so up to 499 each stay untold.
        return sum(int(text or 0) for text in texts) >= count - 500 * (len(files) - 1) - (499 if len(files) > 1 else 0)
    return True


async def measure_round(run: "Run[Sizes]") -> None:
    sizes, url = run.sizes, run.url
    for who in ("graphile", "headrace", "pgboss", "pgqueuer"):
        await fill(url, who, 1)
        await drain(url, who, 1)  # the first start makes a schema
        await clear(url)
        await settle(url)
        before, size = await _written(url), await _size(url)
        run.note(f"bulk-{who}", sizes.drained / await fill(url, who, sizes.drained))
        await settle(url)
        found = await drain(url, who, sizes.drained)
        run.note(f"drain1-{who}", found.rate)
        run.note(f"cpu-{who}", found.cpu_us)
        run.note(f"wal-{who}", (await _written(url) - before) / sizes.drained)
        run.note(f"disk-{who}", (await _size(url) - size) / sizes.drained)
        await clear(url)
        await fill(url, who, sizes.drained)
        await settle(url)
        run.note(f"drain2-{who}", (await drain(url, who, sizes.drained, processes=2)).rate)
        await clear(url)
    await measure_submitting(run)


async def measure_submitting(run: "Run[Sizes]") -> None:
    sizes, url = run.sizes, run.url
    for who in ("graphile", "headrace", "pgboss"):
        if who == "headrace":
            seconds = await ours.submit_singly(url, sizes.singles, TASK)
        else:
            seconds = await asyncio.to_thread(node_peers.call, who, "single", url, sizes.singles)
        run.note(f"single-{who}", sizes.singles / seconds)
        await clear(url)
        run.note(f"pickup-{who}", await (pickup_ours(run) if who == "headrace" else pickup_node(run, who)))
        await clear(url)


async def pickup_ours(run: "Run[Sizes]") -> float:
    """Median milliseconds from the call of submit to the handler, of a worker that has nothing else to do."""
    with Worker("headrace", run.url) as worker:
        worker.go()
        await asyncio.sleep(1.5)
        async with Headrace(ours.as_app(run.url).url, ours.registry) as headrace:
            calls = {}
            for n in range(run.sizes.pickups):
                calls[n] = time.time_ns()
                await headrace.submit(TASK, {"n": n})
                await asyncio.sleep(0.03)
        await asyncio.sleep(0.3)
        connection = await asyncpg.connect(run.url)
        results = [json.loads(row[0]) for row in await connection.fetch("SELECT result FROM headrace.tasks")]
        await connection.close()
    return statistics.median((each["at"] - calls[each["n"]]) / 1e6 for each in results)


async def pickup_node(run: "Run[Sizes]", who: str) -> float:
    count = run.sizes.pickups
    with Worker.running(node_peers.command(who, "work", run.url, count), environment={"TIMES": "1"}) as worker:
        worker.go()
        await asyncio.sleep(1.5)
        calls = await asyncio.to_thread(node_peers.call, who, "pickup", run.url, count)
        await asyncio.sleep(0.5)
        worker.close()
        starts = json.loads(worker.line())
    return statistics.median((at - calls[n]) / 1e6 for n, at in starts)


async def measure_lean(run: "Run[Sizes]") -> None:
    """Without the two indexes of ``tasks`` that forbid HOT updates."""
    count = run.sizes.drained
    for who in ("graphile", "headrace"):
        await clear(run.url)
        definitions = await _drop_indexes(run.url) if who == "headrace" else []
        await fill(run.url, who, count)
        await settle(run.url)
        run.note(f"drain1-{who}-lean", (await drain(run.url, who, count)).rate)
        await clear(run.url)
        connection = await asyncpg.connect(run.url)
        for definition in definitions:
            await connection.execute(definition)
        await connection.execute("ALTER TABLE headrace.tasks RESET (fillfactor)")
        await connection.close()


async def _drop_indexes(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'headrace' AND indexname = ANY ($1)", list(LEAN_INDEXES)
        )
        for name in LEAN_INDEXES:
            await connection.execute(f"DROP INDEX headrace.{name}")
        await connection.execute("ALTER TABLE headrace.tasks SET (fillfactor = 50)")
        return [row[0] for row in rows]
    finally:
        await connection.close()


async def measure_history(run: "Run[Sizes]") -> None:
    sizes, url = run.sizes, run.url
    for name in ("drain1-no-history", "drain1-history"):
        await clear(url)
        if name == "drain1-history":
            connection = await asyncpg.connect(url)
            await connection.execute(HISTORY, ids.SYSTEM_USER, sizes.history, timeout=600)
            await connection.close()
        await fill(url, "headrace", sizes.drained)
        await settle(url)
        run.note(name, (await drain(url, "headrace", sizes.drained)).rate)
    await clear(url)


async def measure_slow_peers(run: "Run[Sizes]") -> None:
    """graphile-worker as one gets it, and Procrastinate: hundreds a second, so fewer tasks."""
    count = run.sizes.slow_peers
    for who in ("graphile-default", "procrastinate"):
        await fill(run.url, who, count)
        await settle(run.url)
        run.note(f"drain1-{who}", (await drain(run.url, who, count)).rate)
    await clear(run.url)


async def _written(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"))
    finally:
        await connection.close()


async def _size(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT pg_database_size(current_database())"))
    finally:
        await connection.close()
