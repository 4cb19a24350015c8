"""A relay and a sender of webhooks, to be killed and frozen: ``python -m tests.races.sender_program DATABASE_URL``."""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from datetime import timedelta

from headrace.assembly.waiting import until_reachable
from headrace.database import Database, DatabaseConfig
from headrace.outbox.loop import LoopConfig, RelayLoop
from headrace.outbox.relay import Relay, RelayConfig, RetryConfig
from headrace.webhooks.config import RetrySchedule
from headrace.webhooks.consumer import WebhookConsumer
from headrace.webhooks.sending import Sender
from tests.webhooks import stand

# Short leases: nobody waits for those of the dead. Longer than the endpoints' timeout of a second all the same.
HASTY = replace(
    stand.QUICK,
    lease=timedelta(seconds=4),
    margin=timedelta(milliseconds=500),
    breaker_threshold=1_000_000,
    max_losses=100,
    retries=RetrySchedule(delays=(timedelta(milliseconds=10),)),
)
READY = "sender {} is ready to be stopped"
RELAY = RelayConfig(lease=timedelta(seconds=2), retries=RetryConfig(first=timedelta(milliseconds=50), max_tries=1000))


async def main(url: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(READY.format(os.getpid()), flush=True)  # noqa: T201 - for the test that starts this
    config = DatabaseConfig(url, role="relay", pool_max=6)
    async with await until_reachable(lambda: Database.connect(config), notify=print) as db:
        http = stand.http_client()
        consumers = [WebhookConsumer()]
        sender = Sender(db, http, stand.HOOKS.keyring, HASTY)
        loop = RelayLoop(
            db, Relay(db, consumers, RELAY), consumers, [sender], LoopConfig(poll_every=timedelta(milliseconds=100))
        )
        await loop.run(stop)
        await http.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
