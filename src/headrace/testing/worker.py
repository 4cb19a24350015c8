"""A worker for tests in its own thread, for tests with and without an event loop."""

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

_NO_BACKOFF = Backoff(first=timedelta(0))
_DEFAULT_TIMEOUT = timedelta(seconds=60)


class TestWorker:
    """A worker that runs a registry's tasks during a test. Its verbs block and need no event loop.

    >>> task = worker.run("greet", {"name": "Ada"})
    >>> assert task.result == "Hello, Ada!"

    Failed attempts are retried without a pause, regardless of the type's backoff.
    """

    __test__ = False  # not a test class for pytest

    def __init__(self, database_url: str, registry: Registry, *, scratch: Path) -> None:
        self._hr = Headrace(database_url, _without_backoff(registry), pool_max=5, files_url=str(scratch / "files"))
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
        within: timedelta = _DEFAULT_TIMEOUT,
        **options: Any,
    ) -> Task:
        """Submit a task, wait until it ends, and return it; ``options`` are those of ``Headrace.submit``."""
        return self.wait(self.submit(type, payload, **options), within=within)

    def submit(self, type: str, payload: Any = None, **options: Any) -> str:  # noqa: A002 - the API's word
        """Submit a task and return its id; ``options`` are those of ``Headrace.submit``."""
        return self._wait_for(self._hr.submit(type, payload, **options))

    def wait(self, task_id: str, *, within: timedelta = _DEFAULT_TIMEOUT) -> Task:
        """Wait until a task ends and return it; ``TimeoutError`` if that takes too long."""
        return self._wait_for(self._hr.wait(task_id, within=within))

    def get(self, task_id: str) -> Task:
        """The task in its present state."""
        return self._wait_for(self._hr.get(task_id))

    def cancel(self, task_id: str) -> Task:
        """Cancel a task; a running one receives a stop request."""
        return self._wait_for(self._hr.cancel(task_id))

    def retry(self, task_id: str) -> Task:
        """Retry a failed or canceled task."""
        return self._wait_for(self._hr.retry(task_id))


def _without_backoff(registry: Registry) -> Registry:
    """A copy of the registry without pauses between attempts; the original stays open for more types."""
    copy = Registry()
    for declared in registry:
        copy.add(replace(declared, backoff=_NO_BACKOFF))
    return copy
