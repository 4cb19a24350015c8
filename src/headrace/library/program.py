"""The class with which a program embeds Headrace."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from typing import Any, Self

from headrace import ids
from headrace.assembly import library
from headrace.connections import transaction_of
from headrace.database import Database, DatabaseConfig, Tx
from headrace.database_errors import DatabaseUnavailable
from headrace.deadlines import deadline
from headrace.errors import Invalid
from headrace.library.acting import caller_for
from headrace.library.connections import fetch, fetch_blocking
from headrace.library.standard_logging import use_standard_logging
from headrace.library.submission import How, UnknownType, as_parameters, as_row, refusals, spec_of, submit_statement
from headrace.library.waiting import Waits
from headrace.tasks import service
from headrace.tasks.catalog import declare_types
from headrace.tasks.errors import TaskNotFound
from headrace.tasks.model import Task, TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.store.tasks import find_task
from headrace.tasks.worker.config import WorkerConfig


class NoRegistry(Invalid):
    """A worker needs task types: Headrace(database_url, registry)."""

    code = "no_registry"


class Headrace:
    """Submits into a database, waits for tasks, cancels them and runs a worker, all inside your program.

    >>> async with Headrace("postgresql://…", registry) as hr:
    ...     async with pool.acquire() as connection, connection.transaction():
    ...         await connection.execute("INSERT INTO orders …")
    ...         await hr.submit("order.ship", {"order": 7}, connection=connection)

    Opened with ``async with`` (or at the first call that needs it), it keeps a small connection pool and declares the
    registry's types in the database. ``registry`` is needed to run a worker, and to validate payloads locally.
    ``user_id`` is the owner of submitted tasks; by default the system. ``files_url`` is where ``context.save_result``
    stores files: the same folder or ``s3://bucket/prefix`` as the API's ``HEADRACE_FILES_URL``.

    Every verb with ``connection=`` works in the open transaction of that connection and takes effect with its commit.
    The connection is one of asyncpg, psycopg 3 (async or not) or SQLAlchemy (async or not, or a session).
    """

    def __init__(
        self,
        database_url: str,
        registry: Registry | None = None,
        *,
        user_id: str = ids.SYSTEM_USER,
        payload_limit: int = 256 * 1024,
        pool_max: int = 10,
        files_url: str | None = None,
    ) -> None:
        use_standard_logging()
        self._config = DatabaseConfig(database_url, role="program", pool_min=0, pool_max=pool_max)
        self._registry = registry
        self._user_id = user_id
        self._payload_limit = payload_limit
        self._files_url = files_url
        self._tasks = library.open_tasks(registry, payload_limit=payload_limit)
        self._db: Database | None = None
        self._opening = asyncio.Lock()
        self._waits = Waits()

    # -- life

    async def __aenter__(self) -> Self:
        await self._database()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections; the next call opens new ones."""
        waits, self._waits = self._waits, Waits()
        await waits.close()
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
        """Add the database's address to connection errors: unlike clients of a server, the program may see it."""
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
        unknown_type: UnknownType = "refuse",
        trusted: bool = False,
    ) -> str:
        """Submit one task and return its id. Idempotent by ``key``, also under a race.

        With ``connection`` the task belongs to its transaction; without it the task is committed when this returns.
        Omitted options are those of the type (``Registry.task``).

        An undeclared type is refused; with ``unknown_type="wait"`` the task waits until a program declares it. The user
        of ``user_id`` must be allowed to submit the type; ``trusted`` skips this check.
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
        (task_id,) = await self.submit_many(
            specs, connection=connection, user_id=user_id, unknown_type=unknown_type, trusted=trusted
        )
        return task_id

    async def submit_many(
        self,
        specs: Sequence[TaskSpec],
        *,
        connection: Any = None,
        user_id: str | None = None,
        unknown_type: UnknownType = "refuse",
        trusted: bool = False,
    ) -> Sequence[str]:
        """Submit all tasks or none, in this order; returns their ids."""
        with self._naming_the_address():
            return await self._submit_many(specs, connection, user_id, unknown_type, trusted=trusted)

    async def _submit_many(
        self,
        specs: Sequence[TaskSpec],
        connection: Any,
        user_id: str | None,
        unknown_type: UnknownType,
        *,
        trusted: bool,
    ) -> Sequence[str]:
        if connection is None and self._registry is not None and all(spec.type in self._registry for spec in specs):
            return await self._tasks.submitter.submit_now(
                await self._database(), specs, user_id=user_id or self._user_id, trusted=trusted
            )
        parameters = list(as_parameters(self._rows(specs, user_id, unknown_type, trusted=trusted)))
        with refusals():
            if connection is not None:
                return [task_id for each in parameters for task_id in await fetch(connection, submit_statement, each)]
            async with (await self._database()).transaction() as tx:
                return [task_id for each in parameters for task_id in await fetch(tx, submit_statement, each)]

    def submit_blocking(
        self,
        specs: TaskSpec | Sequence[TaskSpec],
        *,
        connection: Any,
        user_id: str | None = None,
        unknown_type: UnknownType = "refuse",
        trusted: bool = False,
    ) -> Sequence[str]:
        """``submit_many`` for code without an event loop, on a blocking connection of psycopg 3 or SQLAlchemy."""
        rows = self._rows([specs] if isinstance(specs, TaskSpec) else specs, user_id, unknown_type, trusted=trusted)
        with refusals():
            return [
                task_id
                for each in as_parameters(rows)
                for task_id in fetch_blocking(connection, submit_statement, each)
            ]

    def _rows(
        self, specs: Sequence[TaskSpec], user_id: str | None, unknown_type: UnknownType, *, trusted: bool
    ) -> list[bytes]:
        owner = user_id or self._user_id
        how = How(owner, trusted or owner == ids.SYSTEM_USER, unknown_type)
        return [as_row(spec, how, registry=self._registry, payload_limit=self._payload_limit) for spec in specs]

    # -- reading

    async def get(self, task_id: str, *, connection: Any = None, user_id: str | None = None) -> Task:
        """One task, with its payload and its result; ``TaskNotFound`` if there is none.

        With a ``user_id`` only that user's tasks are found.
        """
        found = await self.find(task_id, connection=connection, user_id=user_id)
        if found is None:
            raise TaskNotFound
        return found

    async def find(self, task_id: str, *, connection: Any = None, user_id: str | None = None) -> Task | None:
        """Like ``get``, but None if there is no such task."""
        async with self._transaction(connection, readonly=True) as tx:
            found = await find_task(tx, task_id)
        return found if found is None or user_id in (None, found.user_id) else None

    async def wait(
        self, task_id: str, *, within: timedelta | None = None, on_progress: Callable[[Task], None] | None = None
    ) -> Task:
        """Wait until a task ends and return it with its result or error; ``TimeoutError`` if that takes too long.

        ``on_progress`` is called with the task after every change.
        """
        async with deadline(task_id, within):
            db = await self._database()
            seen = None if on_progress is None else -1
            while True:
                task = await self._waits.until_changed(db, task_id, seen=seen)
                if on_progress is not None:
                    on_progress(task)
                if task.status.is_over:
                    return task
                seen = task.version

    # -- changing

    async def cancel(
        self, task_id: str, *, connection: Any = None, user_id: str | None = None, version: int | None = None
    ) -> Task:
        """Cancel a task: a waiting one ends with the commit, a running one receives a stop request and ends soon after.

        Idempotent; ``TaskOver`` if it ended otherwise before. With a ``user_id`` the user cancels an own task;
        otherwise the system any task. With a ``version`` only this version is canceled (``PreconditionFailed``). It is
        audited like a request over the API.
        """
        async with self._transaction(connection) as tx:
            caller = await caller_for(tx, user_id)
            return await service.cancel_task(tx, self._tasks, caller, task_id, expected=version)

    async def retry(
        self, task_id: str, *, connection: Any = None, user_id: str | None = None, version: int | None = None
    ) -> Task:
        """Retry a failed or canceled task: it is queued again, with all its attempts.

        ``TaskNotOver`` while it waits or runs; ``TaskOver`` if it succeeded. Otherwise like ``cancel``.
        """
        async with self._transaction(connection) as tx:
            caller = await caller_for(tx, user_id)
            return await service.retry_task(tx, self._tasks, caller, task_id, expected=version)

    @asynccontextmanager
    async def _transaction(self, connection: Any, *, readonly: bool = False) -> AsyncIterator[Tx]:
        """The caller's own transaction, or one of ours."""
        if connection is not None:
            yield await transaction_of(connection)
            return
        async with (await self._database()).transaction(readonly=readonly) as tx:
            yield tx

    # -- working

    async def run_worker(self, config: WorkerConfig | None = None, *, stop: asyncio.Event | None = None) -> None:
        """Run the registry's tasks until ``stop`` is set or this is canceled; both stop it gracefully."""
        if self._registry is None:
            raise NoRegistry
        stop = stop or asyncio.Event()
        db = await self._database()
        chosen = config or WorkerConfig()
        working = library.run_worker(db, self._registry, self._tasks, chosen, files_url=self._files_url, stop=stop)
        running = asyncio.create_task(working)
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            stop.set()
            await running
            raise

    @asynccontextmanager
    async def working(self, config: WorkerConfig | None = None) -> AsyncIterator[None]:
        """Run a worker in the background, stopped gracefully at the end."""
        # No TaskGroup, which would wrap exceptions of the body.
        stop = asyncio.Event()
        running = asyncio.create_task(self.run_worker(config, stop=stop))
        try:
            yield
        finally:
            stop.set()
            await running
