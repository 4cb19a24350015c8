"""``headrace scheduler``: fire schedules when they are due, and take care of the rest."""

import asyncio
import os

from headrace import __version__
from headrace.assembly.deployment import Deployment
from headrace.assembly.maintenance import maintenance_loops
from headrace.assembly.metrics import metrics_served
from headrace.assembly.scheduler import scheduling
from headrace.cli.output import say
from headrace.cli.session import current_database, load_settings, run
from headrace.cli.signals import stop_on_signals
from headrace.figures import Meters
from headrace.settings import Settings


def scheduler() -> None:
    """Fire schedules when they are due, and do the maintenance that an API does. Any number share the work."""
    settings = load_settings()
    with current_database(settings, role="scheduler") as deployment:
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
