"""A worker for tests, in a thread of its own: tests with an event loop and tests without one use it alike."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

from headrace.library.program import Headrace
from headrace.tasks.execution import Backoff
from headrace.tasks.model import Task
from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import WorkerConfig

T = TypeVar("T")

_AT_ONCE = Backoff(first=timedelta(0))
_WITHIN = timedelta(seconds=60)


class TestWorker:
    """A worker that runs a registry's tasks while a test lasts. Its verbs wait, without an event loop of yours.

    >>> task = worker.run("greet", {"name": "Ada"})
    >>> assert task.result == "Hello, Ada!"

    Failed attempts are tried again without a pause, whatever the type's backoff.
    """

    __test__ = False  # pytest shall not look for tests in it

    def __init__(self, database_url: str, registry: Registry, *, scratch: Path) -> None:
        self._hr = Headrace(database_url, _hasty(registry), pool_max=5, files_url=str(scratch / "files"))
        self._config = WorkerConfig(
            concurrency=10,
            poll_every=timedelta(milliseconds=100),
            shutdown_timeout=timedelta(seconds=5),
            scratch=scratch,
            children=2,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="headrace-test-worker", daemon=True)
        self._open = AsyncExitStack()

    def __enter__(self) -> Self:
        self._thread.start()
        self._wait_for(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._wait_for(self._open.aclose())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _start(self) -> None:
        await self._open.enter_async_context(self._hr)
        await self._open.enter_async_context(self._hr.working(self._config))

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def run(
        self,
        type: str,  # noqa: A002 - the API's word
        payload: Any = None,
        *,
        within: timedelta = _WITHIN,
        **options: Any,
    ) -> Task:
        """Submit a task, wait until it is over, and give it; ``options`` are those of ``Headrace.submit``."""
        return self.wait(self.submit(type, payload, **options), within=within)

    def submit(self, type: str, payload: Any = None, **options: Any) -> str:  # noqa: A002 - the API's word
        """Submit a task and give its id; ``options`` are those of ``Headrace.submit``."""
        return self._wait_for(self._hr.submit(type, payload, **options))

    def wait(self, task_id: str, *, within: timedelta = _WITHIN) -> Task:
        """Wait until a task is over and give it; ``TimeoutError`` if that takes too long."""
        return self._wait_for(self._hr.wait(task_id, within=within))

    def get(self, task_id: str) -> Task:
        """The task as it is now."""
        return self._wait_for(self._hr.get(task_id))

    def cancel(self, task_id: str) -> Task:
        """Cancel a task; one that runs is told to stop."""
        return self._wait_for(self._hr.cancel(task_id))

    def retry(self, task_id: str) -> Task:
        """Run a task again that failed or was canceled."""
        return self._wait_for(self._hr.retry(task_id))


def _hasty(registry: Registry) -> Registry:
    """The same types without pauses between attempts; and whoever has the registry may go on adding to it."""
    copy = Registry()
    for declared in registry:
        copy.add(replace(declared, backoff=_AT_ONCE))
    return copy
