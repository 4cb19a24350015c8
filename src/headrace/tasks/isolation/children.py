"""Handlers in child processes: they can be killed, limited in memory and time, and crash alone.

A child is a fresh interpreter that imports a handler by its address; nothing of the running loop is forked. It is
started when first needed, stays for the next tasks, and is replaced after ``recycle_after`` of them, when its memory
has grown, and after every crash or kill. Types share children if they agree in the parameters of a process: its
environment, and whether there is a network.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.tasks.context import Facts, Reporter
from headrace.tasks.errors import TaskCanceled
from headrace.tasks.isolation.guardian import Guardian
from headrace.tasks.isolation.output import Forward, to_stderr
from headrace.tasks.isolation.performing import perform
from headrace.tasks.isolation.pool import Pool, PoolConfig
from headrace.tasks.isolation.process import Child, ChildKind
from headrace.tasks.isolation.program import search_path
from headrace.tasks.model import Claimed
from headrace.tasks.registry import TaskType


class Children:
    """Up to ``size`` child processes, for any types. Belongs to the loop it is first used on; ``close`` it there.

    ``path`` is their module search path; by default that of this process and the current folder. ``folder`` is
    where children without file access (``files=False``) may create and open files whose names they know. ``spare``
    children are kept ready for the next tenant.
    """

    def __init__(
        self,
        *,
        size: int,
        path: Sequence[str] | None = None,
        recycle_after: int = 1000,
        growth_limit: int = 512 * 1024 * 1024,
        start_within: timedelta = timedelta(seconds=60),
        forward: Forward = to_stderr,
        folder: Path | None = None,
        spare: int = 0,
    ) -> None:
        if size < 1 or recycle_after < 1:
            raise ValueError("size and recycle_after must be at least 1")
        self._config = PoolConfig(
            size=size,
            path=search_path() if path is None else path,
            recycle_after=recycle_after,
            growth_limit=growth_limit,
            start_within=start_within,
            forward=forward,
            spare=spare,
        )
        self._folder = "" if folder is None else str(folder)
        self._guardian = Guardian()
        self._pools: dict[ChildKind, Pool] = {}
        self._turns = asyncio.Semaphore(size)
        self._closed = False

    @property
    def pids(self) -> frozenset[int]:
        """The processes that are there, for metrics and tests."""
        return frozenset().union(*(pool.pids for pool in self._pools.values()))

    async def prepare(self, count: int | None = None, kind: ChildKind | None = None) -> None:
        """Start children before they are needed; ``ProgramBroken`` if none can be started."""
        await self._pool(kind or ChildKind()).prepare(count)

    async def run(
        self,
        task_type: TaskType,
        claimed: Claimed,
        facts: Facts,
        reporter: Reporter,
        *,
        stop: asyncio.Event,
        grace: Callable[[], timedelta],
        result_limit: int,
        on_start: Callable[[], None] = lambda: None,
        tenant: str | None = None,
    ) -> Any:
        """Run a task's handler in a child and give its result, as plain JSON values that fit ``result_limit`` bytes.
        ``on_start`` is called when a child is assigned: before that it waits its turn. A child that has served one
        ``tenant`` serves no other: leftovers of one tenant's file never meet another's.

        Raises the errors of errors.py and the handlers' own exceptions. Set ``stop`` to stop it: an async handler
        is canceled, another gets ``TaskCanceled`` at its next report; after ``grace``, read when the stop comes, it is
        killed with everything it started (``Killed``). Canceling this call kills it at once.
        """
        assert task_type.name == claimed.task_type
        if self._closed:
            raise RuntimeError("these children are closed")
        pool = self._pool(ChildKind.of(task_type, self._folder))
        child = await self._take_unless_stopped(pool, task_type.address, tenant, stop)
        try:
            on_start()
            return await perform(
                child, task_type, claimed, facts, reporter, stop=stop, grace=grace, result_limit=result_limit
            )
        finally:
            self._give_back(pool, child)

    def forget(self, tenant: str) -> None:
        """Retire the idle children that have served this tenant; fresh ones take their place."""
        for pool in self._pools.values():
            pool.forget(tenant)

    async def close(self) -> None:
        """End all children, those at work by force, and wait until nothing is left of them."""
        self._closed = True
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))
        await self._guardian.close()

    def _pool(self, kind: ChildKind) -> Pool:
        if kind not in self._pools:
            self._pools[kind] = Pool(kind, self._config, self._guardian)
        return self._pools[kind]

    async def _take_unless_stopped(self, pool: Pool, address: str, tenant: str | None, stop: asyncio.Event) -> Child:
        task = asyncio.create_task(self._take(pool, address, tenant))
        stop_requested = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([task, stop_requested], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise TaskCanceled
            return task.result()
        except asyncio.CancelledError:
            if task.done() and not task.cancelled() and task.exception() is None:
                self._give_back(pool, task.result())
            raise
        finally:
            stop_requested.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    def _give_back(self, pool: Pool, child: Child) -> None:
        pool.give_back(child)
        self._turns.release()

    async def _take(self, pool: Pool, address: str, tenant: str | None) -> Child:
        """A child and a turn; both are to be given back."""
        await self._turns.acquire()
        try:
            self._make_room_in(pool)
            return await pool.take(address, tenant)
        except BaseException:
            self._turns.release()
            raise

    def _make_room_in(self, pool: Pool) -> None:
        """Before one more is started, one of another kind goes that has nothing to do."""
        if pool.has_idle or sum(each.population for each in self._pools.values()) < self._config.size:
            return
        for other in self._pools.values():
            if other is not pool and other.has_idle:
                other.shed()
                return
