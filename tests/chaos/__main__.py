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
from contextlib import suppress
from pathlib import Path

import structlog

from headrace.database import Database, DatabaseConfig
from headrace.errors import HeadraceError, Unavailable
from tests.chaos import faults, reading
from tests.chaos.load import USES, Load, Promises, keep_using
from tests.chaos.report import Report
from tests.chaos.site import SETTINGS, TABLES, Site, small_disk
from tests.e2e.program import run_program
from tests.outbox.hearing import want
from tests.races.engine_stand import ROOT, Mortal, line_to, mortal_server

DRAIN = 120.0  # seconds that the site has to come to rest
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


async def run(mortal: Mortal, logs: Path, disk: Path | None, *, seed: int, seconds: float) -> Report:
    planned, promises, calm = faults.plan(seed, seconds), Promises(), asyncio.Event()
    report = Report(seed, seconds, promises)
    token = await asyncio.to_thread(operator_key, mortal.url)
    async with await connected(mortal.url) as db:
        await want(db)  # so that there are events to read
    async with line_to(mortal.url) as line:
        site = Site(mortal, line, logs, disk=disk)
        keeping = asyncio.create_task(site.keep_up())
        load = Load(site, promises, token, calm)
        users = [
            asyncio.create_task(keep_using(load, name, number, seed)) for name in USES for number in range(OF_EACH)
        ]
        try:
            await harm(site, planned, report)
            calm.set()
            site.heal()
            _, late = await asyncio.wait(users, timeout=60)
            for task in late:
                report.broken.append("somebody was never answered: " + str(task.get_coro()))
            await come_to_rest(mortal, report)
        finally:
            keeping.cancel()
            for task in users:
                task.cancel()
            results = await asyncio.gather(*users, return_exceptions=True)
            report.ends = await asyncio.to_thread(site.end)
            report.broken += [f"left running: {each}" for each in await asyncio.to_thread(site.left_running)]
        report.broken += [f"a user fell: {each!r}" for each in results if isinstance(each, Exception)]
        report.fallen = Counter(site.fallen)
        await read(mortal, site, report)
    return report


async def come_to_rest(mortal: Mortal, report: Report) -> None:
    """Stop the schedules and wait until nothing waits or runs any more."""
    began = time.monotonic()
    async with await connected(mortal.url) as db:
        for sql in reading.CALM:
            while True:
                with suppress(Unavailable):
                    await db.fetch_alone(sql)
                    break
                await asyncio.sleep(0.2)
        while time.monotonic() < began + DRAIN:
            with suppress(Unavailable):
                if not await db.fetch_alone(reading.RESTLESS):
                    break
            await asyncio.sleep(0.3)
        else:
            left = [dict(row) for row in await db.fetch_alone(reading.RESTLESS)]
            report.broken.append(f"not at rest after {DRAIN:.0f} s: {left[:5]}")
    report.rest_s = time.monotonic() - began


async def connected(url: str) -> Database:
    while True:
        with suppress(HeadraceError):
            return await Database.connect(DatabaseConfig(url, role="chaos"))
        await asyncio.sleep(0.3)


async def read(mortal: Mortal, site: Site, report: Report) -> None:
    async with await connected(mortal.url) as db:
        report.broken += [str(each) for each in await reading.broken(db, report.promises, site.journal)]
        report.figures = await reading.figures(db)
        report.histories = await reading.histories(db, report.broken)


def operator_key(url: str) -> str:
    """A user of the API, and a session of theirs; an API key would be as good."""
    settings = {**SETTINGS, "HEADRACE_DATABASE_URL": url}
    made = run_program("admin", "create", "chaos", "--json", folder=ROOT, settings=settings)
    assert made.code == 0, made.err
    return reading.session_of(url, settings, made.out)


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
        asyncio.run(mortal.run(TABLES))
        report = asyncio.run(run(mortal, logs, folder if mounted else None, seed=seed, seconds=60 * chosen.minutes))
    (logs / "report").write_text(report.text())
    sys.stdout.write(f"{report.text()}what every process said: {logs.relative_to(ROOT)}\n")
    return 1 if report.all_broken else 0


if __name__ == "__main__":
    sys.exit(main())
