"""Whoever sends on what a consumer has written: to a receiver of webhooks, to a broker."""

import asyncio
from typing import Protocol


class Sender(Protocol):
    """Claims rows of its consumer with leases of its own, sends, and records. Runs beside the relay in every relay
    process, on the same loop; other processes have theirs."""

    async def run(self, stop: asyncio.Event) -> None:
        """Send until ``stop``; then finish or give back what is under way, and return. Whatever goes wrong outside is
        this sender's to wait for: what it raises ends the process."""
