"""From settings to a relay at work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from headrace.assembly.connections import FROZEN_FOR, RELAY_POOL
from headrace.assembly.consumers import consumers, open_senders
from headrace.assembly.deployment import Deployment
from headrace.assembly.secret_key import secret_key
from headrace.outbox.loop import LoopConfig, RelayLoop
from headrace.outbox.relay import Relay, RelayConfig, RetryConfig
from headrace.settings import Settings


def relay_config(chosen: Settings) -> RelayConfig:
    return RelayConfig(batch=chosen.relay_batch, retries=RetryConfig(max_tries=chosen.relay_max_tries))


@asynccontextmanager
async def relaying(chosen: Settings, deployment: Deployment) -> AsyncIterator[RelayLoop]:
    """A relay and its senders at work on a few connections of their own."""
    # One that is frozen while it fans out must not keep the rows from the others for long.
    config = replace(deployment.app.for_role("relay"), pool_max=RELAY_POOL, idle_in_transaction_timeout=FROZEN_FOR)
    wanted = consumers(chosen)
    stop = asyncio.Event()
    async with (
        await deployment.connect(config) as db,
        open_senders(chosen, db, secret_key(chosen)) as senders,
        asyncio.TaskGroup() as group,
    ):
        relay = RelayLoop(
            db,
            Relay(db, wanted, relay_config(chosen)),
            wanted,
            senders,
            LoopConfig(poll_every=chosen.relay_poll_interval, listen=chosen.relay_listen),
        )
        running = group.create_task(relay.run(stop))
        try:
            yield relay
        finally:
            stop.set()
            await asyncio.wait([running])
