"""One process of a benchmark: ``python -m benchmarks.drainer WHO URL``. Says ``ready``, works from the line ``go`` on,
and ends when its standard input does."""

import asyncio
import logging
import os
import sys
import traceback

import uvloop

from benchmarks import ours, raw
from headrace import logs


async def main(who: str, url: str, *arguments: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)
    end = loop.run_in_executor(None, sys.stdin.read)
    end.add_done_callback(lambda _: stop.set())
    match who:
        case "ours":
            await ours.work(url, stop)
        case "headrace":
            await ours.work_as_used(url, stop)
        case "raw-narrow" | "raw-plain":
            await raw.drain(url, who.removeprefix("raw-"))
        case "raw-pickup":
            await raw.pick_up(url, stop)
        case "scheduler" | "schedule-worker":
            from benchmarks import clockwork

            await (clockwork.schedule if who == "scheduler" else clockwork.work)(url, stop)
        case "blocking":
            from benchmarks import blocking

            await blocking.work(url, stop)
        case "apscheduler":
            from benchmarks import apscheduling

            await apscheduling.fire(url, stop, *map(float, arguments))
        case _:
            from benchmarks import peers

            await (peers.work_pgqueuer if who == "pgqueuer" else peers.work_procrastinate)(url, stop)
    await end


async def or_die(*arguments: str) -> None:
    try:
        await main(*arguments)
    except BaseException:  # noqa: BLE001 - it ends the process
        # At once: the thread that reads standard input would hold up the end, and others wait for its lines.
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    logs.configure(format="json", level="ERROR")
    logging.getLogger("pgqueuer").setLevel(logging.ERROR)
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    uvloop.run(or_die(*sys.argv[1:]))
