"""Processes that carry deletions out and are killed: ``python -m tests.races.deletion_process DATABASE_URL``.

Reads a line ``NUMBER before|after`` and starts a process that kills itself (SIGKILL) around the commit of its
transaction of that number; ``0 never`` starts one that is left alone. Prints how it ended: the signal, negative, or 0.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from headrace.accounts.config import DeletionConfig
from headrace.accounts.deletion.machine import Deletions
from headrace.assembly.erasers import erasers
from headrace.assembly.files import files_of
from headrace.assembly.tasks import open_tasks
from headrace.database import Database, DatabaseConfig, Tx
from headrace.settings import load


class Mortal(Database):
    """Counts transactions, and ends the process around the commit of one of them."""

    count = 0
    number = 0
    when = "never"

    @asynccontextmanager
    async def transaction(self, **options: Any) -> AsyncIterator[Tx]:
        self.count += 1
        mine = self.count == self.number
        async with super().transaction(**options) as tx:
            yield tx
            if mine and self.when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)


async def carry_out(url: str, number: int, when: str) -> None:
    async with await Mortal.connect(DatabaseConfig(url, role="deletions", pool_max=2)) as db:
        db.number, db.when = number, when
        # Leases that are over at once: nobody waits for those of the dead.
        chosen = load()
        steps = erasers(open_tasks(chosen), lambda: files_of(chosen))
        machine = Deletions(db, steps, DeletionConfig(lease=timedelta(0)))
        while await machine.run_once():
            pass


def main(url: str) -> None:
    for line in sys.stdin:
        number, when = line.split()
        child = os.fork()  # nothing of asyncio has begun here
        if child == 0:
            os.dup2(2, 1)  # its logs are not what is read from here
            asyncio.run(carry_out(url, int(number), when))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
