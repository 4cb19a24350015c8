"""The verbs of schedules, runs and locks for programs without an event loop; they are described at their twins."""

from __future__ import annotations  # a verb is called list

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from headrace.client.locks import MAX_RELEASE_SECONDS, Locks
from headrace.client.model import Execution, Lock, NewSchedule, RunWhy, Schedule, Statistics
from headrace.client.schedules import Executions, Schedules

T = TypeVar("T")


class Loop(Protocol):
    def run(self, work: Coroutine[Any, Any, T]) -> T: ...
    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]: ...
    def iterate(self, items: AsyncGenerator[T, None]) -> Iterator[T]: ...


class SyncSchedules:
    def __init__(self, loop: Loop, schedules: Schedules) -> None:
        self._loop = loop
        self._schedules = schedules

    def create(self, schedule: NewSchedule, *, key: str | None = None) -> Schedule:
        return self._loop.run(self._schedules.create(schedule, key=key))

    def get(self, schedule_id: str) -> Schedule:
        return self._loop.run(self._schedules.get(schedule_id))

    def update(self, schedule_id: str, *, version: int | None = None, **changes: Any) -> Schedule:
        return self._loop.run(self._schedules.update(schedule_id, version=version, **changes))

    def enable(self, schedule_id: str, *, version: int | None = None) -> Schedule:
        return self._loop.run(self._schedules.enable(schedule_id, version=version))

    def disable(self, schedule_id: str, *, version: int | None = None, cancel_pending: bool = False) -> Schedule:
        return self._loop.run(self._schedules.disable(schedule_id, version=version, cancel_pending=cancel_pending))

    def delete(self, schedule_id: str, *, version: int | None = None) -> None:
        self._loop.run(self._schedules.delete(schedule_id, version=version))

    def run(self, schedule_id: str, *, key: str | None = None) -> Execution:
        return self._loop.run(self._schedules.run(schedule_id, key=key))

    def upcoming(self, schedule_id: str, *, count: int = 5) -> Sequence[datetime]:
        return self._loop.run(self._schedules.upcoming(schedule_id, count=count))

    def preview(
        self,
        *,
        cron: str | None = None,
        interval: int | None = None,
        timezone: str = "UTC",
        after: datetime | None = None,
        count: int = 5,
    ) -> Sequence[datetime]:
        return self._loop.run(
            self._schedules.preview(cron=cron, interval=interval, timezone=timezone, after=after, count=count)
        )

    def statistics(self, schedule_id: str) -> Statistics:
        return self._loop.run(self._schedules.statistics(schedule_id))

    def list(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the API's word
        enabled: bool | None = None,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        user_id: str | None = None,
    ) -> Iterator[Schedule]:
        return self._loop.iterate(
            self._schedules.list(type=type, enabled=enabled, name=name, labels=labels, user_id=user_id)
        )


class SyncExecutions:
    def __init__(self, loop: Loop, executions: Executions) -> None:
        self._loop = loop
        self._executions = executions

    def get(self, execution_id: str) -> Execution:
        return self._loop.run(self._executions.get(execution_id))

    def cancel(self, execution_id: str) -> Execution:
        return self._loop.run(self._executions.cancel(execution_id))

    def why(self, execution_id: str) -> RunWhy:
        return self._loop.run(self._executions.why(execution_id))

    def list(
        self,
        *,
        schedule_id: str | None = None,
        status: str | Sequence[str] | None = None,
        trigger: str | None = None,
        type: str | None = None,  # noqa: A002 - the API's word
        due_after: datetime | None = None,
        due_before: datetime | None = None,
        user_id: str | None = None,
    ) -> Iterator[Execution]:
        return self._loop.iterate(
            self._executions.list(
                schedule_id=schedule_id,
                status=status,
                trigger=trigger,
                type=type,
                due_after=due_after,
                due_before=due_before,
                user_id=user_id,
            )
        )


class SyncLocks:
    def __init__(self, loop: Loop, locks: Locks) -> None:
        self._loop = loop
        self._locks = locks

    @contextmanager
    def hold(
        self,
        key: str,
        *,
        ttl: timedelta = timedelta(seconds=30),
        purpose: str | None = None,
        wait: timedelta | None = timedelta(0),
        holder: str | None = None,
    ) -> Iterator[Lock]:
        """Like its twin, except that a block without an event loop cannot be canceled. ``LockLost`` is raised at its
        end; a long block should call ``renew`` in between."""
        taken: Future[Lock] = Future()
        over, gone = asyncio.Event(), threading.Event()

        async def keep() -> None:
            try:
                async with self._locks.hold(key, ttl=ttl, purpose=purpose, wait=wait, holder=holder) as lock:
                    taken.set_result(lock)
                    await over.wait()
            finally:
                gone.set()

        keeping = self._loop.start(keep())
        both: list[Future[Any]] = [taken, keeping]
        try:
            futures.wait(both, return_when=futures.FIRST_COMPLETED)
        except BaseException:  # Ctrl-C while it waits for the lock
            keeping.cancel()
            gone.wait(MAX_RELEASE_SECONDS)
            raise
        if not taken.done():
            keeping.result()
        try:
            yield taken.result()
        finally:
            self._loop.run(_set(over))
            futures.wait([keeping])
        keeping.result()  # unless the block has failed: then its error is raised

    def acquire(
        self,
        key: str,
        *,
        ttl: timedelta = timedelta(seconds=30),
        wait: timedelta = timedelta(0),
        purpose: str | None = None,
        holder: str | None = None,
        once: str | None = None,
    ) -> Lock:
        return self._loop.run(self._locks.acquire(key, ttl=ttl, wait=wait, purpose=purpose, holder=holder, once=once))

    def renew(self, lock: Lock, *, ttl: timedelta | None = None) -> Lock:
        return self._loop.run(self._locks.renew(lock, ttl=ttl))

    def release(self, lock: Lock) -> Lock:
        return self._loop.run(self._locks.release(lock))

    def force_release(self, key: str, *, user_id: str | None = None) -> Lock:
        return self._loop.run(self._locks.force_release(key, user_id=user_id))

    def list(
        self,
        *,
        key: str | None = None,
        holder: str | None = None,
        status: str | None = None,
        user_id: str | None = None,
    ) -> Iterator[Lock]:
        return self._loop.iterate(self._locks.list(key=key, holder=holder, status=status, user_id=user_id))


async def _set(event: asyncio.Event) -> None:
    event.set()
