"""Headrace as people use it, beside the queues that they compare it with: `make bench name=used`. See README.md.

Everybody works through their public interface on one PostgreSQL, in rounds that alternate.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import node_peers, peers, used_queues, used_site
from benchmarks.report import Run, Targets, console, print_json, print_rounds, print_targets
from benchmarks.scratch import scratch_server

TARGETS: Targets = {
    "drain1_pgboss": ("one worker against pg-boss", 1.25),
    "drain2_pgboss": ("two workers against pg-boss's two", 1.2),
    "drain1_graphile": ("one worker against graphile-worker, tuned", 0.85),
    "drain2_graphile": ("two workers against graphile-worker's two, tuned", 0.85),
    "drain1_graphile_lean": ("the same as drain1_graphile without the two indexes of tasks", 1.0),
    "bulk_graphile": ("tasks submitted in bulk a second, against graphile-worker", 0.8),
    "single_graphile": ("tasks submitted one by one a second, against graphile-worker", 1.1),
    "pickup_graphile": ("from the call of submit to the handler, against graphile-worker", -1.15),
    "cpu_graphile": ("processor time a task of worker and PostgreSQL, against graphile-worker", -1.5),
    "history_1m": ("a drain with finished tasks in the table, against none", 0.85),
    "rest_raw": ("POST /v1/tasks with a key a second, against a bare route, 1 connection", 0.4),
    "rest8_raw": ("the same with 8 connections", 0.4),
    "wait_p50_ms": ("from a task's end until wait() returns it, 250 tasks a second", -8),
    "wait_p99_ms": ("the same, of a hundred the slowest", -50),
    "idle_cpu": ("processor seconds a minute of ten idle workers and PostgreSQL", -0.8),
    "idle_connections": ("connections of ten idle workers", -20),
    "iso_per_s": ('tasks a second with isolation="process"', 1000),
    "disk_b": ("bytes on disk a task", -1250),
    "wal_b": ("bytes of WAL a task, submitting and running", -3000),
}


@dataclass(frozen=True)
class Sizes:
    rounds: int
    drained: int
    slow_peers: int  # tasks for queues that run hundreds a second
    singles: int
    pickups: int
    history: int
    requests: int
    waited: int
    idle_workers: int
    idle_seconds: float
    isolated: int


FULL = Sizes(5, 30_000, 1_000, 500, 60, 1_000_000, 1_500, 2_500, 10, 60.0, 5_000)
QUICK = Sizes(1, 5_000, 40, 100, 15, 20_000, 100, 250, 10, 4.0, 400)
PARTS = ("queues", "lean", "history", "rest", "wait", "idle", "isolated")


async def measure(run: Run[Sizes], parts: Sequence[str]) -> None:
    sizes = run.sizes
    node_peers.install()
    await peers.install_pgqueuer(run.url)
    await peers.install_procrastinate(run.url)
    for number in range(sizes.rounds):
        console.print(f"round {number + 1} of {sizes.rounds}")
        if "queues" in parts:
            await used_queues.measure_round(run)
        if "lean" in parts:
            await used_queues.measure_lean(run)
        if "history" in parts:
            await used_queues.measure_history(run)
        if "rest" in parts:
            await used_site.measure_rest(run)
        if "isolated" in parts:
            await used_site.measure_isolated(run)
    if "queues" in parts:
        await used_queues.measure_slow_peers(run)
    if "wait" in parts:
        await used_site.measure_waiting(run)
    if "idle" in parts:
        await used_site.measure_idle(run)


def ratios(run: Run[Sizes]) -> dict[str, float]:
    pairs = {
        "drain1_pgboss": ("drain1-headrace", "drain1-pgboss"),
        "drain2_pgboss": ("drain2-headrace", "drain2-pgboss"),
        "drain1_graphile": ("drain1-headrace", "drain1-graphile"),
        "drain2_graphile": ("drain2-headrace", "drain2-graphile"),
        "drain1_graphile_lean": ("drain1-headrace-lean", "drain1-graphile-lean"),
        "bulk_graphile": ("bulk-headrace", "bulk-graphile"),
        "single_graphile": ("single-headrace", "single-graphile"),
        "pickup_graphile": ("pickup-headrace", "pickup-graphile"),
        "cpu_graphile": ("cpu-headrace", "cpu-graphile"),
        "history_1m": ("drain1-history", "drain1-no-history"),
        "rest_raw": ("rest1-headrace", "rest1-bare"),
        "rest8_raw": ("rest8-headrace", "rest8-bare"),
    }
    found = {name: run.paired(*pair) for name, pair in pairs.items() if pair[0] in run.figures}
    for name in ("wait_p50_ms", "wait_p99_ms", "idle_cpu", "idle_connections", "iso_per_s"):
        if name in run.figures:
            found[name] = run.median(name)
    for name, figure in (("disk_b", "disk-headrace"), ("wal_b", "wal-headrace")):
        if figure in run.figures:
            found[name] = run.median(figure)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="smaller sizes, under a minute")
    arguments.add_argument("--json", action="store_true", help="print the figures as JSON, last on standard output")
    arguments.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    chosen = arguments.parse_args()
    with scratch_server() as url:
        run = Run(url, QUICK if chosen.quick else FULL, digits=2)
        asyncio.run(measure(run, chosen.part or PARTS))
    found = ratios(run)
    print_rounds(run, title="tasks a second; cpu: µs a task; wal, disk: bytes a task; pickup, wait: ms", digits=1)
    print_targets(found, TARGETS)
    if chosen.json:
        print_json(found, medians={name: run.median(name) for name in run.figures if name not in found}, digits=1)


if __name__ == "__main__":
    main()
