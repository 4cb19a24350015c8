"""The client for programs without an event loop: verbs run on a loop in a background thread."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Self, TypeVar

import httpx2

from headrace.client.accounts import Me
from headrace.client.asynchronous import Client
from headrace.client.model import EventType, LogLine, NewTask, Queue, QueueRules, Step, Task, TaskType, Why, Worker
from headrace.client.retrying import RetryPolicy
from headrace.client.synchronous_accounts import SyncApiKeys, SyncUsers
from headrace.client.synchronous_bulk import SyncBulk, SyncOperations
from headrace.client.synchronous_files import SyncFiles
from headrace.client.synchronous_removals import SyncRemovals
from headrace.client.synchronous_schedules import SyncExecutions, SyncLocks, SyncSchedules
from headrace.client.synchronous_subscriptions import SyncPayments, SyncPlans, SyncSubscriptions
from headrace.client.synchronous_usage import SyncUsage
from headrace.client.synchronous_webhooks import SyncNotifications, SyncWebhooks
from headrace.deadlines import not_over

T = TypeVar("T")


class _Loop:
    """An event loop in a thread, for the lifetime of the client. Usable from any thread, also beside another loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="headrace-client", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("This client is closed: create another one.")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        running = self.start(work)
        try:
            return running.result()
        except BaseException:  # Ctrl-C: the request must not continue in the background
            running.cancel()
            raise

    def iterate(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        try:
            while True:
                try:
                    yield self.run(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            self.run(_close(items))

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(items: AsyncGenerator[T, None], within: float | None = None) -> T:
    async with asyncio.timeout(within):
        return await anext(items)


async def _close(items: AsyncGenerator[Any, None]) -> None:
    while getattr(items, "ag_running", False):  # noqa: ASYNC110 - waits until the interrupted step ends
        await asyncio.sleep(0.001)
    await items.aclose()


class SyncClient:
    """``Client`` without ``await``; its verbs are described there."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: timedelta = timedelta(seconds=30),
        retry: RetryPolicy | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._client = Client(base_url, api_key, timeout=timeout, retry=retry, transport=transport)
        self._loop = _Loop()
        self.schedules = SyncSchedules(self._loop, self._client.schedules)
        self.executions = SyncExecutions(self._loop, self._client.executions)
        self.locks = SyncLocks(self._loop, self._client.locks)
        self.usage = SyncUsage(self._loop, self._client.usage)
        self.bulk = SyncBulk(self._loop, self._client.bulk)
        self.operations = SyncOperations(self._loop, self._client.operations)
        self.plans = SyncPlans(self._loop, self._client.plans)
        self.subscriptions = SyncSubscriptions(self._loop, self._client.subscriptions)
        self.payments = SyncPayments(self._loop, self._client.payments)
        self.webhooks = SyncWebhooks(self._loop, self._client.webhooks)
        self.notifications = SyncNotifications(self._loop, self._client.notifications)
        self.files = SyncFiles(self._loop, self._client.files)
        self.removals = SyncRemovals(self._loop, self._client.removals)
        self.users = SyncUsers(self._loop, self._client.users)
        self.api_keys = SyncApiKeys(self._loop, self._client.api_keys)

    def close(self) -> None:
        self._loop.run(self._client.close())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(
        self,
        type: str,  # noqa: A002 - the API's word
        payload: Any = None,
        *,
        title: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        max_attempts: int | None = None,
        timeout: timedelta | None = None,
        limit_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Task:
        return self._loop.run(
            self._client.submit(
                type,
                payload,
                title=title,
                queue=queue,
                priority=priority,
                run_at=run_at,
                max_attempts=max_attempts,
                timeout=timeout,
                limit_key=limit_key,
                labels=labels,
                key=key,
            )
        )

    def submit_many(self, tasks: Sequence[NewTask], *, key: str | None = None) -> Sequence[str]:
        return self._loop.run(self._client.submit_many(tasks, key=key))

    def get(self, task_id: str) -> Task:
        return self._loop.run(self._client.get(task_id))

    def steps(self, task_id: str, *, failed: bool = False) -> Sequence[Step]:
        return self._loop.run(self._client.steps(task_id, failed=failed))

    def why(self, task_id: str) -> Why:
        return self._loop.run(self._client.why(task_id))

    def logs(self, task_id: str) -> Iterator[LogLine]:
        return self._loop.iterate(self._client.logs(task_id))

    def queues(self) -> Sequence[Queue]:
        return self._loop.run(self._client.queues())

    def workers(self) -> Sequence[Worker]:
        return self._loop.run(self._client.workers())

    def task_types(self) -> Sequence[TaskType]:
        return self._loop.run(self._client.task_types())

    def me(self) -> Me:
        return self._loop.run(self._client.me())

    def event_types(self) -> Sequence[EventType]:
        return self._loop.run(self._client.event_types())

    def wait(
        self,
        task_id: str,
        *,
        within: timedelta | None = None,
        on_progress: Callable[[Task], None] | None = None,
    ) -> Task:
        """As ``Client.wait``; ``on_progress`` is called in the caller's own thread."""
        ends_at = None if within is None else monotonic() + within.total_seconds()
        states = self._client.follow(task_id)
        try:
            while True:
                left = None if ends_at is None else ends_at - monotonic()
                try:
                    task = self._loop.run(_next(states, left))
                except TimeoutError as exc:
                    raise exc if within is None else not_over(task_id, within) from exc
                if on_progress is not None:
                    on_progress(task)
                if task.is_over:
                    return task
        finally:
            self._loop.run(_close(states))

    def follow(self, task_id: str) -> Iterator[Task]:
        return self._loop.iterate(self._client.follow(task_id))

    def cancel(self, task_id: str, *, version: int | None = None) -> Task:
        return self._loop.run(self._client.cancel(task_id, version=version))

    def retry(self, task_id: str, *, version: int | None = None) -> Task:
        return self._loop.run(self._client.retry(task_id, version=version))

    def delete(self, task_id: str) -> None:
        self._loop.run(self._client.delete(task_id))

    def pause(self, queue: str, *, create: bool = False) -> QueueRules:
        return self._loop.run(self._client.pause(queue, create=create))

    def resume(self, queue: str) -> QueueRules:
        return self._loop.run(self._client.resume(queue))

    def limit(self, queue: str, max_running: int | None, *, create: bool = False) -> QueueRules:
        return self._loop.run(self._client.limit(queue, max_running, create=create))

    def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        type: str | None = None,  # noqa: A002 - the API's word
        queue: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        user_id: str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        key: str | None = None,
        error: str | None = None,
    ) -> Iterator[Task]:
        return self._loop.iterate(
            self._client.list(
                status=status,
                type=type,
                queue=queue,
                created_after=created_after,
                created_before=created_before,
                user_id=user_id,
                title=title,
                labels=labels,
                key=key,
                error=error,
            )
        )
