"""Processes that contend for one lock: ``python -m tests.races.locks_program DATABASE_URL TTL_MS``.

Each line on standard input is a child more, made by a fork after everything was imported, so that twenty cost what one
does; its process id is printed. A child takes the lock, writes into the books under its fence and under its token, and
lets go, again and again.
"""

import asyncio
import os
import random
import signal
import sys
import traceback
from datetime import timedelta

from headrace import logs
from headrace.database import Database, DatabaseConfig
from headrace.locks import holding
from headrace.locks.errors import LockLost
from headrace.locks.holding import Held

KEY = "the one"

# What stands for a system elsewhere that knows nothing of the lock but the number.
GUARDED = "UPDATE books.guard SET fence = $1, writes = writes + 1 WHERE fence <= $1"
FENCED = "INSERT INTO books.fenced (fence, pid, accepted) VALUES ($1, $2, $3)"
CONFIRMED = "INSERT INTO books.confirmed (fence, pid) VALUES ($1, $2)"


async def contend(database_url: str, ttl: timedelta) -> None:
    config = DatabaseConfig(database_url, role="contender", pool_min=0, pool_max=2)
    async with await Database.connect(config) as db:
        while True:
            try:
                async with holding.hold(db, KEY, ttl=ttl, wait=None, purpose="contention") as lock:
                    for _ in range(random.randint(1, 4)):
                        await write(db, lock)
                        await asyncio.sleep(random.uniform(0, 0.02))
            except LockLost:
                continue


async def write(db: Database, lock: Held) -> None:
    # Shielded: a write under way is not called back by the loss of the lock, as a request to another system is not.
    await asyncio.shield(asyncio.create_task(_write_fenced(db, lock.fence)))
    async with db.transaction() as tx:
        await lock.confirm(tx)
        await tx.execute(CONFIRMED, lock.fence, os.getpid())


async def _write_fenced(db: Database, fence: int) -> None:
    async with db.transaction() as tx:
        accepted = await tx.count(GUARDED, fence) == 1
        await tx.execute(FENCED, fence, os.getpid(), accepted)


def fork(database_url: str, ttl: timedelta) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(contend(database_url, ttl))
        except BaseException:  # noqa: BLE001 - the child's last word
            traceback.print_exc()
        finally:
            os._exit(1)
    return pid


def main(database_url: str, ttl: timedelta) -> None:
    logs.configure(format="json", level="ERROR")  # what is noticed and mended is no news here
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        sys.stdout.write(f"{fork(database_url, ttl)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], timedelta(milliseconds=int(sys.argv[2])))
