"""``headrace relay``: deliver events to webhooks, notifications and brokers."""

import asyncio
import os

from headrace import __version__
from headrace.assembly.deployment import Deployment
from headrace.assembly.metrics import metrics_served
from headrace.assembly.relay import relaying
from headrace.cli.output import say
from headrace.cli.session import current_database, load_settings, run
from headrace.cli.signals import stop_on_signals
from headrace.figures import Meters
from headrace.outbox.relay import Relayed
from headrace.settings import Settings


def relay() -> None:
    """Give events to webhooks, notifications and brokers, and send them. Any number share the work."""
    settings = load_settings()
    with current_database(settings, role="relay") as deployment:
        done = run(_relay(settings, deployment))
    say(f"stopped; {done.published:,} events published, {done.failed:,} to be tried again, {done.dead:,} given up")


async def _relay(settings: Settings, deployment: Deployment) -> Relayed:
    meters = Meters("relay", __version__)
    async with relaying(settings, deployment) as working, metrics_served(settings, deployment, meters):
        meters.add(working.read_figures)
        # Not before: while the database is waited for, a signal ends it as it ends anything.
        stop: asyncio.Event = stop_on_signals(at_once=lambda: os._exit(130))
        say("relaying events; Ctrl-C stops")
        await stop.wait()
    return working.relayed
