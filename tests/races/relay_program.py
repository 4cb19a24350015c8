"""Relays that are killed: ``python -m tests.races.relay_program DATABASE_URL``.

Reads a line ``NUMBER before|after`` and starts a relay that kills itself (SIGKILL) around the commit of its transaction
of that number; ``0 never`` starts one that relays everything. Prints how it ended: the signal, negative, or 0.
"""

import asyncio
import os
import sys
from datetime import timedelta

from headrace.database import DatabaseConfig
from headrace.outbox.relay import Relay, RelayConfig, RetryConfig
from tests.outbox.recording import Recording, relay_all
from tests.races.deletion_process import Mortal

# Leases and delays that are over at once: nobody waits for those of the dead.
HASTY = RelayConfig(
    batch=4, chain=2, lease=timedelta(0), retries=RetryConfig(first=timedelta(0), longest=timedelta(0), max_tries=50)
)


async def relay(url: str, number: int, when: str) -> None:
    async with await Mortal.connect(DatabaseConfig(url, role="relay", pool_max=2)) as db:
        db.number, db.when = number, when
        await relay_all(Relay(db, [Recording(), Recording("second", interests=["thing.*"])], HASTY))


def main(url: str) -> None:
    for line in sys.stdin:
        number, when = line.split()
        child = os.fork()  # nothing of asyncio has begun here
        if child == 0:
            os.dup2(2, 1)  # its logs are not what is read from here
            asyncio.run(relay(url, int(number), when))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
