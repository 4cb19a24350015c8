"""``make soak minutes=30``: mixed load on a `headrace up`, sampled; fails if a figure rises more than it may."""

import argparse
import asyncio
import logging
import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

import orjson
import structlog

from headrace.errors import Unavailable
from tests.chaos import reading
from tests.chaos.load import Load, keep_using
from tests.chaos.resting import LONGEST_READ, come_to_rest, connected
from tests.chaos.site import TABLES
from tests.chaos.world import settle, world_in
from tests.races.engine_stand import ROOT, Mortal, mortal_server, own_folder
from tests.soak import figures
from tests.soak.load import USES
from tests.soak.report import Soaked
from tests.soak.site import Undisturbed

EVERY = 20.0  # seconds between two samples
OF_EACH = 2


async def watch(site: Undisturbed, soaked: Soaked, every: float) -> None:
    began = time.monotonic()
    async with await connected(site.mortal.url) as db:
        while (at := time.monotonic() - began) < soaked.seconds:
            with suppress(Unavailable):
                sampled, tables = await figures.sample(site, db)
                soaked.times.append(at)
                soaked.samples.append(sampled)
                soaked.tables.append(tables)
            await asyncio.sleep(max(0.1, began + at + every - time.monotonic()))


async def run(mortal: Mortal, logs: Path, home: Path, *, seconds: float, seed: int) -> Soaked:
    soaked, calm = Soaked(seconds), asyncio.Event()
    async with world_in(logs / "world") as world:
        site = Undisturbed(mortal, logs, home, world.settings)
        await asyncio.to_thread(settle, world, mortal.url, site.settings)
        await asyncio.to_thread(site.start)
        load = Load(site, soaked.promises, world, calm)
        users = [
            asyncio.create_task(keep_using(load, name, number, seed), name=f"{name} {number}")
            for name in USES
            for number in range(OF_EACH)
        ]
        try:
            await watch(site, soaked, min(EVERY, seconds / 12))
            calm.set()
            _, late = await asyncio.wait(users, timeout=60)
            soaked.broken += [f"a request was never answered: {task.get_name()}" for task in late]
            soaked.broken += await come_to_rest(mortal.url, world)
        finally:
            for task in users:
                task.cancel()
            ended = await asyncio.gather(*users, return_exceptions=True)
            code = await asyncio.to_thread(site.end)
        soaked.broken += [f"a user fell: {each!r}" for each in ended if isinstance(each, Exception)]
        soaked.broken += [f"up ended with {code}"] if code else []
        soaked.broken += [f"the log has an error: {line[:300]}" for line in site.complaints()[:5]]
        async with await connected(mortal.url, patience=LONGEST_READ) as db:
            soaked.judged = await reading.judged(db)
            found = await reading.broken(db, soaked.promises, site.journal, world, site.files)
            soaked.broken += [str(each) for each in found]
    return soaked


def main() -> int:
    arguments = argparse.ArgumentParser(prog="make soak", description=__doc__)
    arguments.add_argument("--minutes", type=float, default=30.0)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    sys.stdout.write(f"soak for {chosen.minutes:g} minutes\n")
    sys.stdout.flush()
    os.chdir(ROOT)
    logs = ROOT / "build" / "soak"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    with own_folder() as folder, mortal_server(folder) as mortal:
        asyncio.run(mortal.run(TABLES))
        soaked = asyncio.run(run(mortal, logs, folder, seconds=60 * chosen.minutes, seed=chosen.seed))
    told = zip(soaked.times, soaked.samples, strict=True)
    (logs / "samples.jsonl").write_bytes(b"".join(orjson.dumps({"at": at, **each}) + b"\n" for at, each in told))
    (logs / "report").write_text(soaked.text())
    sys.stdout.write(f"{soaked.text()}samples, report and log: {logs.relative_to(ROOT)}\n")
    return 1 if soaked.failures else 0


if __name__ == "__main__":
    sys.exit(main())
