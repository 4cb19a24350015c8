"""Workers for tests: real ones, in this process, on a database of their own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import ids
from headrace.database import Database, Row
from headrace.tasks.catalog import RegistryCatalog
from headrace.tasks.execution import Backoff
from headrace.tasks.followers import Followers
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.submit import Submitter
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker
from tests.open_types import OpenRegistry

AT_ONCE = Backoff(first=timedelta(milliseconds=1), jitter=0)


class Bench:
    """A database, a registry, and the verbs that tests need around them."""

    def __init__(self, db: Database, scratch: Path) -> None:
        self.db = db
        self.registry: Registry = OpenRegistry()
        self.followers = Followers()
        self.scratch = scratch
        self._submitter: Submitter | None = None

    @property
    def submitter(self) -> Submitter:
        if self._submitter is None:
            self._submitter = Submitter(RegistryCatalog(self.registry), self.followers)
        return self._submitter

    async def submit(self, name: str, payload: Any = None, *, user_id: str = ids.SYSTEM_USER, **spec: Any) -> str:
        async with self.db.transaction() as tx:
            return await self.submitter.submit(tx, TaskSpec(name, payload, **spec), user_id=user_id)

    async def user(self, name: str) -> str:
        from tests.edge import stand

        return await stand.user(self.db, name)

    async def row(self, task_id: str) -> Row:
        async with self.db.transaction() as tx:
            found = await tx.fetchrow("SELECT * FROM headrace.tasks WHERE id = $1", task_id)
        assert found is not None
        return found

    async def logged(self, task_id: str) -> list[tuple[int, str]]:
        async with self.db.transaction() as tx:
            rows = await tx.fetch(
                "SELECT attempt, status FROM headrace.task_logs WHERE task_id = $1 ORDER BY id", task_id
            )
        return [(row["attempt"], row["status"]) for row in rows]

    async def over(self, *task_ids: str, seconds: float = 60) -> list[Row]:
        """Wait until all of these are over."""
        return [await self.until(task_id, lambda row: row["finished_at"] is not None, seconds) for task_id in task_ids]

    async def until(self, task_id: str, fits: Callable[[Row], bool], seconds: float = 60) -> Row:
        async with asyncio.timeout(seconds):
            while not fits(row := await self.row(task_id)):
                await asyncio.sleep(0.01)
            return row

    def worker(self, **config: Any) -> Worker:
        chosen: dict[str, Any] = {
            "concurrency": 10,
            "lease": timedelta(seconds=5),
            "poll_every": timedelta(milliseconds=100),
            "scratch": self.scratch,
        }
        return Worker(self.db, self.registry, self.followers, WorkerConfig(**chosen | config))

    @asynccontextmanager
    async def working(self, **config: Any) -> AsyncIterator[Worker]:
        """A worker that is stopped in good order at the end."""
        worker, stop = self.worker(**config), asyncio.Event()
        running = asyncio.create_task(worker.run(stop))
        try:
            yield worker
        finally:
            stop.set()
            await running

    async def cancel_running(self, task_id: str) -> None:
        """What the cancel verb does to a task that a worker holds."""
        async with self.db.transaction() as tx:
            await tx.execute("UPDATE headrace.task_queue SET cancel_requested = true WHERE task_id = $1", task_id)
            await tx.execute("SELECT pg_notify('headrace_cancel', '')")


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Bench:
    return Bench(db, tmp_path)
