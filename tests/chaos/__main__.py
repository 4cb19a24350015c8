"""``make chaos minutes=3 seed=7``: harm the site while it works, let it come to rest, and read what broke."""

import argparse
import asyncio
import logging
import os
import random
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import structlog

from tests.chaos import faults, reading
from tests.chaos.load import Load, Promises, keep_using
from tests.chaos.loads import USES
from tests.chaos.report import Report
from tests.chaos.resting import LONGEST_READ, come_to_rest, connected
from tests.chaos.site import SLOW_COMMITS, TABLES, Site, small_disk
from tests.chaos.world import World, settle, world_in
from tests.races.engine_stand import ROOT, Mortal, line_to, mortal_server

OF_EACH = 2  # users who do each kind of thing


async def harm(site: Site, planned: list[faults.Planned], report: Report) -> None:
    began = time.monotonic()

    async def one(each: faults.Planned) -> None:
        try:
            done = await faults.do(site, each)
        except Exception as exc:  # noqa: BLE001 - the database may be away just now: that fault comes to nothing
            done = f"came to nothing: {type(exc).__name__}"
        report.fault(each, done)

    async with asyncio.TaskGroup() as doing:
        for each in planned:
            await asyncio.sleep(max(0.0, began + each.at - time.monotonic()))
            doing.create_task(one(each))


async def run(mortal: Mortal, logs: Path, home: Path, *, mounted: bool, seed: int, seconds: float) -> Report:
    planned, promises, calm = faults.plan(seed, seconds), Promises(), asyncio.Event()
    report = Report(seed, seconds, promises)
    async with line_to(mortal.url) as line, world_in(logs / "world") as world:
        site = Site(mortal, line, logs, home=home, disk=home if mounted else None, more=world.settings)
        await asyncio.to_thread(settle, world, mortal.url, site.settings(mortal.url))
        keeping = asyncio.create_task(site.keep_up())
        load = Load(site, promises, world, calm)
        users = [
            asyncio.create_task(keep_using(load, name, number, seed), name=f"{name} {number}")
            for name in USES
            for number in range(OF_EACH)
        ]
        try:
            await harm(site, planned, report)
            calm.set()
            site.heal()
            _, late = await asyncio.wait(users, timeout=60)
            for task in late:
                report.broken.append(f"a request was never answered: {task.get_name()}")
            began = time.monotonic()
            report.broken += await come_to_rest(mortal.url, world)
            report.rest_s = time.monotonic() - began
        finally:
            keeping.cancel()
            for task in users:
                task.cancel()
            results = await asyncio.gather(*users, return_exceptions=True)
            report.ends = await asyncio.to_thread(site.end)
            report.broken += [f"left running: {each}" for each in await asyncio.to_thread(site.left_running)]
        report.broken += [f"a user fell: {each!r}" for each in results if isinstance(each, Exception)]
        report.fallen = Counter(site.fallen)
        await read(mortal, site, world, report)
    return report


async def read(mortal: Mortal, site: Site, world: World, report: Report) -> None:
    async with await connected(mortal.url, patience=LONGEST_READ) as db:
        report.judged = await reading.judged(db)
        report.details = await reading.details(db)
        found = await reading.broken(db, report.promises, site.journal, world, site.files)
        report.broken += [str(each) for each in found]
        report.figures = await reading.figures(db)
        report.histories = await reading.histories(db, report.broken)


def main() -> int:
    arguments = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    arguments.add_argument("--minutes", type=float, default=3.0)
    arguments.add_argument("--seed", type=int, default=None)
    chosen = arguments.parse_args()
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    # Our own client's troubles with the database are the point, and nobody's news.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    sys.stdout.write(f"chaos for {chosen.minutes:g} minutes with seed {seed}\n")
    sys.stdout.flush()
    os.chdir(ROOT)
    logs = ROOT / "build" / "chaos" / str(seed)
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    with small_disk() as (folder, mounted), mortal_server(folder) as mortal:
        asyncio.run(mortal.run(TABLES + SLOW_COMMITS))
        report = asyncio.run(run(mortal, logs, folder, mounted=mounted, seed=seed, seconds=60 * chosen.minutes))
    (logs / "report").write_text(report.text())
    sys.stdout.write(f"{report.text()}what every process said: {logs.relative_to(ROOT)}\n")
    return 1 if report.all_broken else 0


if __name__ == "__main__":
    sys.exit(main())
