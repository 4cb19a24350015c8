"""An idle worker sleeps: its loops wake for work, not by the clock."""

import asyncio
from contextlib import suppress
from unittest.mock import Mock

import pytest

from headrace.tasks.registry import Registry
from headrace.tasks.worker import starts
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.slots import Load


class CountedStarts(starts.Starts):
    shown = 0

    async def _show(self) -> None:
        self.shown += 1


async def test_starts_are_looked_for_only_while_tasks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "_EVERY_SECONDS", 0.001)
    load = Load(WorkerConfig(), Registry())
    counted = CountedStarts(load, Mock())
    loop = asyncio.create_task(counted.run())
    try:
        await asyncio.sleep(0.05)
        assert counted.shown == 0
        load.running.set()
        async with asyncio.timeout(30):
            while not counted.shown:
                await asyncio.sleep(0.001)
    finally:
        loop.cancel()
        with suppress(asyncio.CancelledError):
            await loop
