"""Handlers that do not run on the loop: in threads and in child processes (see headrace.tasks.isolation)."""

import asyncio
from typing import TYPE_CHECKING, Any

from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.reporting import LeaseReporter

if TYPE_CHECKING:
    from headrace.tasks.worker.runs import Run


class Isolated:
    """The worker's threads and children, made when first needed."""

    def __init__(self, config: WorkerConfig, registry: Registry) -> None:
        self._config = config
        self._registry = registry

    async def run(self, run: "Run", reporter: LeaseReporter) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        await asyncio.sleep(0)
