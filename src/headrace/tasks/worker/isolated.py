"""Handlers that do not run on the loop: in threads and in child processes, made when first needed."""

import asyncio
from typing import TYPE_CHECKING, Any

from headrace.tasks.context import Reporter
from headrace.tasks.errors import TaskCanceled
from headrace.tasks.isolation.children import Children
from headrace.tasks.isolation.threads import Threads, run_in_thread
from headrace.tasks.worker.config import WorkerConfig

if TYPE_CHECKING:
    from headrace.tasks.worker.runs import Run


class Isolated:
    """The worker's threads and children. ``run`` comes back at the latest when the grace of a stop is over."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._threads: Threads | None = None
        self._children: Children | None = None

    async def run(self, run: "Run", reporter: Reporter) -> Any:
        if run.task_type.isolation == "process":
            run.facts.scratch_made = True  # a child that uses its folder does not tell
            return await self._in_child(run, reporter)
        return await self._in_thread(run, reporter)

    async def _in_child(self, run: "Run", reporter: Reporter) -> Any:
        if self._children is None:
            self._children = Children(size=self._config.children)
        return await self._children.run(
            run.task_type,
            run.claimed,
            run.facts,
            reporter,
            stop=run.stop,
            grace=lambda: run.grace,
            result_limit=self._config.result_limit,
            on_start=run.begin,
        )

    async def _in_thread(self, run: "Run", reporter: Reporter) -> Any:
        if self._threads is None:
            self._threads = Threads(self._config.slots("thread"))
        payload = run.task_type.check_payload(run.claimed.payload)
        loop = asyncio.get_running_loop()
        work = asyncio.ensure_future(
            run_in_thread(self._threads, run.task_type, run.claimed, payload, run.facts, reporter, loop)
        )
        stop_requested = asyncio.ensure_future(run.stop.wait())
        try:
            await asyncio.wait({work, stop_requested}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await asyncio.wait({work}, timeout=run.grace.total_seconds())
            if not work.done():
                raise TaskCanceled  # a thread cannot be killed: it continues, and its work does not count
            return work.result()
        finally:
            stop_requested.cancel()
            work.cancel()

    async def close(self) -> None:
        if self._threads is not None:
            self._threads.close()
        if self._children is not None:
            await self._children.close()
