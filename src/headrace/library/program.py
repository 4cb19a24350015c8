"""Headrace for the program that embeds it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from typing import Any, Self

from headrace import ids
from headrace.assembly.followers import followers
from headrace.database import Database, DatabaseConfig, DatabaseUnavailable, Tx
from headrace.deadlines import deadline
from headrace.errors import Invalid
from headrace.library.connections import fetch, fetch_blocking
from headrace.library.standard_logging import use_standard_logging
from headrace.library.submission import as_parameters, as_row, refusals, spec_of, submit_statement
from headrace.tasks.catalog import RegistryCatalog, declare_types
from headrace.tasks.errors import TaskNotFound
from headrace.tasks.model import Task, TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.store.tasks import find_task
from headrace.tasks.submit import SubmitConfig, Submitter
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker

_POLL_FIRST_S, _POLL_LAST_S = 0.02, 1.0


class NoRegistry(Invalid):
    """A worker needs task types: Headrace(database_url, registry)."""

    code = "no_registry"


class Headrace:
    """Submits into a database, waits for tasks, and runs a worker, all inside your program.

    Opened with ``async with`` (or at the first call that needs it), it keeps a small pool of its own and tells the
    database of the registry's types. What is submitted with ``connection=`` goes through that connection alone, and is
    there when, and only when, its transaction is committed.
    """

    def __init__(
        self,
        database_url: str,
        registry: Registry | None = None,
        *,
        user_id: str = ids.SYSTEM_USER,
        payload_limit: int = 256 * 1024,
        pool_max: int = 10,
    ) -> None:
        use_standard_logging()
        self._config = DatabaseConfig(database_url, role="program", pool_min=0, pool_max=pool_max)
        self._registry = registry
        self._user_id = user_id
        self._payload_limit = payload_limit
        self._followers = followers()
        self._submitter = Submitter(
            RegistryCatalog(registry or Registry()), self._followers, SubmitConfig(payload_limit=payload_limit)
        )
        self._db: Database | None = None
        self._opening = asyncio.Lock()

    # -- life

    async def __aenter__(self) -> Self:
        await self._database()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._db is not None:
            await self._db.close()
            self._db = None

    async def _database(self) -> Database:
        async with self._opening:
            if self._db is None:
                db = await Database.connect(self._config)
                try:
                    if self._registry is not None:
                        async with db.transaction() as tx:
                            await declare_types(tx, self._registry)
                except BaseException:
                    await db.close()
                    raise
                self._db = db
            return self._db

    @contextmanager
    def _naming_the_address(self) -> Iterator[None]:
        """Whose server answers requests says no more than that its database is away; a program may know which."""
        try:
            yield
        except DatabaseUnavailable as exc:
            place = self._config.place
            raise DatabaseUnavailable(f"{exc.message} It is PostgreSQL at {place}.", place=place) from exc

    # -- submitting

    async def submit(
        self,
        type: str,  # noqa: A002 - the API's word
        payload: Any = None,
        *,
        connection: Any = None,
        key: str | None = None,
        user_id: str | None = None,
        title: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        max_attempts: int | None = None,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - the task's, not this call's
        limit_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        trace_id: str | None = None,
    ) -> str:
        """Submit one task and give its id; with a ``key`` the same one again, also under a race.

        ``connection`` is one of asyncpg, psycopg 3 (async or not) or SQLAlchemy (async or not, or a session), and the
        task belongs to its transaction. Without it the task is there when this returns.
        """
        options = {
            "title": title,
            "queue": queue,
            "priority": priority,
            "run_at": run_at,
            "max_attempts": max_attempts,
            "timeout": timeout,
            "limit_key": limit_key,
            "labels": labels,
            "trace_id": trace_id,
            "idempotency_key": key,
        }
        specs = [spec_of(type, payload, options)]
        return (await self.submit_many(specs, connection=connection, user_id=user_id))[0]

    async def submit_many(
        self, specs: Sequence[TaskSpec], *, connection: Any = None, user_id: str | None = None
    ) -> Sequence[str]:
        """Submit them all or none, in this order; gives their ids."""
        with self._naming_the_address():
            return await self._submit_many(specs, connection=connection, user_id=user_id)

    async def _submit_many(self, specs: Sequence[TaskSpec], *, connection: Any, user_id: str | None) -> Sequence[str]:
        if connection is None and self._registry is not None and all(spec.type in self._registry for spec in specs):
            return await self._submitter.submit_now(await self._database(), specs, user_id=user_id or self._user_id)
        parameters = list(as_parameters(self._rows(specs, user_id)))
        with refusals():
            if connection is not None:
                return [task_id for each in parameters for task_id in await fetch(connection, submit_statement, each)]
            async with (await self._database()).transaction() as tx:
                return [task_id for each in parameters for task_id in await fetch(tx, submit_statement, each)]

    def submit_blocking(
        self, specs: TaskSpec | Sequence[TaskSpec], *, connection: Any, user_id: str | None = None
    ) -> Sequence[str]:
        """``submit_many`` for code without an event loop, on a blocking connection of psycopg 3 or SQLAlchemy."""
        rows = self._rows([specs] if isinstance(specs, TaskSpec) else specs, user_id)
        with refusals():
            return [
                task_id
                for each in as_parameters(rows)
                for task_id in fetch_blocking(connection, submit_statement, each)
            ]

    def _rows(self, specs: Sequence[TaskSpec], user_id: str | None) -> list[bytes]:
        owner = user_id or self._user_id
        return [
            as_row(spec, user_id=owner, registry=self._registry, payload_limit=self._payload_limit) for spec in specs
        ]

    # -- waiting

    async def get(self, task_id: str) -> Task:
        async with (await self._database()).transaction(readonly=True) as tx:
            return await _get(tx, task_id)

    async def wait(
        self, task_id: str, *, within: timedelta | None = None, on_progress: Callable[[Task], None] | None = None
    ) -> Task:
        """Wait until a task is over and give it, with its result or error; ``TimeoutError`` if that takes too long.

        ``on_progress`` is called with the task whenever something about it has changed.
        """
        seen, pause = -1, _POLL_FIRST_S
        async with deadline(task_id, within):
            while True:
                task = await self.get(task_id)
                if task.version != seen and on_progress is not None:
                    on_progress(task)
                if task.status.is_over:
                    return task
                pause = _POLL_FIRST_S if task.version != seen else min(pause * 1.3, _POLL_LAST_S)
                seen = task.version
                await asyncio.sleep(pause)

    # -- working

    async def run_worker(self, config: WorkerConfig | None = None, *, stop: asyncio.Event | None = None) -> None:
        """Run the registry's tasks until ``stop`` is set, or until this is canceled; both end it in good order."""
        if self._registry is None:
            raise NoRegistry
        stop = stop or asyncio.Event()
        worker = Worker(await self._database(), self._registry, self._followers, config or WorkerConfig())
        running = asyncio.create_task(worker.run(stop))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            stop.set()
            await running
            raise

    @asynccontextmanager
    async def working(self, config: WorkerConfig | None = None) -> AsyncIterator[None]:
        """A worker in the background, stopped in good order at the end."""
        # No TaskGroup: it would wrap what the body raises.
        stop = asyncio.Event()
        running = asyncio.create_task(self.run_worker(config, stop=stop))
        try:
            yield
        finally:
            stop.set()
            await running


async def _get(tx: Tx, task_id: str) -> Task:
    task = await find_task(tx, task_id)
    if task is None:
        raise TaskNotFound
    return task
