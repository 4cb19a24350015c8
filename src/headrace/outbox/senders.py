"""The sender contract: sends the rows of a consumer to webhook receivers or a broker."""

import asyncio
from typing import Protocol


class Sender(Protocol):
    """Claims its consumer's rows with its own leases, sends them, and records the results. Runs beside the relay in
    every relay process, on the same event loop."""

    async def run(self, stop: asyncio.Event) -> None:
        """Send until ``stop``; then finish or release what is under way, and return. The sender itself waits out
        external failures: an exception ends the process."""
