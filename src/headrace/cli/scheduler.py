"""``headrace scheduler``: fire schedules when they are due, and take care of the rest."""

import asyncio
import os
from contextlib import ExitStack

from headrace import __version__, migrations
from headrace.cli.maintenance import maintenance_loops
from headrace.cli.metrics import metrics_served
from headrace.cli.output import LOOKING, progress, say
from headrace.cli.signals import stop_on_signals
from headrace.cli.waiting import until_reachable
from headrace.cli.wiring import Deployment, database_of, load_settings, run, scheduling
from headrace.figures import Meters
from headrace.settings import Settings


def scheduler() -> None:
    """Fire schedules when they are due, and do the maintenance that an API does. Any number share the work."""
    settings = load_settings()
    with ExitStack() as stack:
        with progress(LOOKING) as report:
            deployment = stack.enter_context(database_of(settings, role="scheduler", report=report))
            run(until_reachable(lambda: migrations.verify_current(deployment.app), say=say))
        fired = run(_fire(settings, deployment))
    say(f"stopped; {fired:,} runs fired")


async def _fire(settings: Settings, deployment: Deployment) -> int:
    stop: asyncio.Event = stop_on_signals(at_once=lambda: os._exit(130))
    meters = Meters("scheduler", __version__)
    async with (
        maintenance_loops(settings, deployment) as reaper,
        scheduling(settings, deployment) as firing,
        metrics_served(settings, deployment, meters),
    ):
        meters.add(reaper.read_figures)
        meters.add(firing.read_figures)
        say("firing schedules; Ctrl-C stops")
        await stop.wait()
    return firing.fired
