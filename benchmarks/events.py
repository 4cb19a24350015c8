"""What events cost: to those who work when nobody listens and when somebody does, to those who write, and to relays
with a long history; then what webhooks deliver. See README.md."""

import argparse
import asyncio
import importlib.util
import time
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from benchmarks import ours
from benchmarks.draining import drain_rate, execute
from benchmarks.report import Run, Targets, console, print_json, print_rounds, print_targets
from benchmarks.scratch import analyze, reset, scratch_server
from headrace import ids, outbox
from headrace.database import Database, Tx
from headrace.outbox import Event
from headrace.outbox.consumers import StoredEvent
from headrace.outbox.relay import Relay, RelayConfig


@dataclass(frozen=True)
class Sizes:
    rounds: int
    drain: int
    singles: int
    relayed: int
    history: int
    appended: int


FULL = Sizes(5, 50_000, 1_000, 20_000, 2_000_000, 500)
QUICK = Sizes(2, 8_000, 150, 4_000, 50_000, 100)

NOBODY = "TRUNCATE headrace.event_interests"
# As one endpoint of the user whose tasks they are would have it.
SOMEBODY = f"""
INSERT INTO headrace.event_interests (consumer, key, pattern, user_id)
VALUES ('webhooks', 'whe_bench', 'task.*', '{ids.SYSTEM_USER}')
"""


async def drain(run: Run[Sizes], name: str, task_type: str) -> None:
    await reset(run.url)
    await execute(run.url, "TRUNCATE headrace.outbox_events")
    await ours.fill(run.url, run.sizes.drain, task_type)
    await analyze(run.url)
    run.note(name, await drain_rate(run.url, "ours", run.sizes.drain))


async def drains(run: Run[Sizes]) -> None:
    """The same tasks of a type without events, of a default one that nobody hears of, and of one with an endpoint."""
    for number in range(run.sizes.rounds):
        console.print(f"round {number + 1} of {run.sizes.rounds}")
        await execute(run.url, NOBODY)
        await drain(run, "drain-silent", "noop")
        await drain(run, "drain-unheard", "noop.told")
        await execute(run.url, SOMEBODY)
        await drain(run, "drain-heard", "noop.told")
        await singles(run)
    await execute(run.url, NOBODY)


async def singles(run: Run[Sizes]) -> None:
    """Submits one at a time: a round trip each, whoever listens."""
    for name, task_type, statement in (
        ("single-silent", "noop", NOBODY),
        ("single-unheard", "noop.told", NOBODY),
        ("single-heard", "noop.told", SOMEBODY),
    ):
        await reset(run.url)
        await execute(run.url, NOBODY, statement)
        run.note(name, run.sizes.singles / await ours.submit_singly(run.url, run.sizes.singles, task_type))


class Counting:
    """A consumer that writes nothing: what is measured is the relay."""

    name = "counting"
    interests = ("*",)

    async def receive(self, tx: Tx, events: Sequence[StoredEvent]) -> None: ...


HISTORY = """
INSERT INTO headrace.outbox_events (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json,
                                    status, next_retry_at, published_at, created_at)
SELECT 'evt_old_' || n, 'task.succeeded', 1, 'task', 'tsk_old_' || n / 3, '{"n": 1}', 'PUBLISHED', at, at, at
FROM (SELECT n, now() - n * interval '1 second' AS at FROM generate_series(1, $1::integer) AS n) AS old
"""


async def append(db: Database, count: int) -> None:
    for first in range(0, count, 1000):
        events = [
            Event("task.succeeded", "task", f"tsk_{n // 2}", {"n": n, "text": "x" * 200})
            for n in range(first, min(first + 1000, count))
        ]
        async with db.transaction() as tx:
            await outbox.append(tx, events)


async def relay_rate(db: Database, count: int) -> float:
    """Events a second of one relay over so many that wait."""
    await append(db, count)
    relay = Relay(db, [Counting()], RelayConfig(batch=200))
    started, published = time.perf_counter(), 0
    while published < count:
        published += (await relay.run_once()).published
    return count / (time.perf_counter() - started)


async def history(run: Run[Sizes]) -> None:
    """One relay with an empty table, with a long history, and while a transaction elsewhere keeps a snapshot."""
    async with await Database.connect(ours.as_app(run.url)) as db:
        await execute(run.url, "TRUNCATE headrace.outbox_events")
        for _ in range(run.sizes.rounds):
            await relay_rate(db, run.sizes.relayed // 10)
            run.note("relay", await relay_rate(db, run.sizes.relayed))
        connection = await asyncpg.connect(run.url)
        await connection.execute(HISTORY, run.sizes.history, timeout=600)
        await connection.execute("VACUUM ANALYZE headrace.outbox_events")
        await connection.execute("CHECKPOINT")
        for _ in range(run.sizes.rounds):
            run.note("relay-history", await relay_rate(db, run.sizes.relayed))
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval("SELECT count(*) FROM headrace.event_interests")
            for _ in range(run.sizes.rounds):
                run.note("relay-held", await relay_rate(db, run.sizes.relayed))
        await connection.close()


async def appending(run: Run[Sizes]) -> None:
    """What one event more costs a transaction that writes a row anyway, in microseconds."""
    async with await Database.connect(ours.as_app(run.url)) as db:
        for name, events in (("append-none", 0), ("append-one", 1)):
            started = time.perf_counter()
            for n in range(run.sizes.appended):
                async with db.transaction() as tx:
                    await tx.execute("UPDATE headrace.users SET updated_at = now() WHERE id = $1", ids.SYSTEM_USER)
                    await outbox.append(tx, [Event("thing.moved", "thing", f"t{n}", {"n": n})] * events)
            run.note(name, (time.perf_counter() - started) / run.sizes.appended * 1e6)


async def deliveries(quick: bool) -> dict[str, float]:
    """deliveries_raw, p50_ms, p99_ms and healthy_ratio, once there is what measures them."""
    if importlib.util.find_spec("benchmarks.deliveries") is None:
        console.print("deliveries are not measured: benchmarks/deliveries.py is not there")
        return {}
    found: dict[str, float] = await importlib.import_module("benchmarks.deliveries").measure(quick)
    return found


TARGETS: Targets = {
    "unheard_ratio": ("a drain of a default type that nobody listens to, against events=False", 0.95),
    "heard_ratio": ("the same with one endpoint on task.*", 0.6),
    "history_ratio": ("a relay with a long history of published events, against none", 0.9),
    "held_ratio": ("a relay while a transaction holds a snapshot, against none", 0.8),
    "deliveries_raw": ("deliveries a second, against the bare HTTP client", 0.5),
    "p50_ms": ("commit to receiver, p50 in ms", -15),
    "p99_ms": ("commit to receiver, p99 in ms", -100),
    "healthy_ratio": ("healthy endpoints beside dead ones, against alone", 0.8),
}


def ratios(run: Run[Sizes]) -> dict[str, float]:
    return {
        "unheard_ratio": run.paired("drain-unheard", "drain-silent"),
        "heard_ratio": run.paired("drain-heard", "drain-silent"),
        "history_ratio": run.paired("relay-history", "relay"),
        "held_ratio": run.paired("relay-held", "relay"),
        "append_us": run.median("append-one") - run.median("append-none"),
    }


async def measure(run: Run[Sizes]) -> None:
    await ours.fill(run.url, 10)
    await ours.fill(run.url, 10, "noop.told")
    await drains(run)
    await history(run)
    await appending(run)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="smaller sizes, under a minute")
    arguments.add_argument("--json", action="store_true", help="print the figures as JSON, last on standard output")
    chosen = arguments.parse_args()
    with scratch_server() as url:
        run = Run(url, QUICK if chosen.quick else FULL, digits=1)
        asyncio.run(measure(run))
    found = ratios(run) | asyncio.run(deliveries(chosen.quick))
    print_rounds(run, title="a second (append: µs)", digits=1)
    print_targets(found, TARGETS)
    if chosen.json:
        print_json(found, medians=run.medians(), digits=1)


if __name__ == "__main__":
    main()
