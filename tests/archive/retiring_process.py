"""A process that retires a month and kills itself after a step: OWNER_URL FOLDER TABLE MONTH STEP."""

import asyncio
import os
import signal
import sys
from datetime import date

from headrace.archive.retiring import retire_month
from headrace.audit import Who
from headrace.database import DatabaseConfig
from headrace.storage import Storage, StorageConfig


def main() -> None:
    owner, folder, table, month, last = sys.argv[1:]

    def die(step: str) -> None:
        if step == last:
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(
        retire_month(
            DatabaseConfig(owner),
            Storage(StorageConfig(f"file://{folder}")),
            table,
            date.fromisoformat(month),
            who=Who.system(),
            on_step=die,
        )
    )


if __name__ == "__main__":
    main()
