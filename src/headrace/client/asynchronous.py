"""The client for programs with an event loop."""

import asyncio
import inspect
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, Self

import httpx2

from headrace import ids
from headrace.client.accounts import ApiKeys, Users
from headrace.client.bulk import Bulk, Operations
from headrace.client.connection import Connection
from headrace.client.errors import Unreachable
from headrace.client.files import Files
from headrace.client.generated.answers import (
    Capabilities,
    EventType,
    LogLine,
    Me,
    Queue,
    QueueRules,
    Step,
    Task,
    TaskType,
    Why,
    Worker,
)
from headrace.client.generated.operators import (
    Archives,
    Audit,
    Configs,
    Deletions,
    Ledger,
    Outbox,
    Partitions,
    Plans,
    Risks,
    Sessions,
    Settings,
)
from headrace.client.inbox import Notifications
from headrace.client.locks import Locks
from headrace.client.orders import NewTask
from headrace.client.removals import Removals
from headrace.client.retrying import RetryPolicy
from headrace.client.schedules import Executions, Schedules
from headrace.client.streaming import ServerEvent, read_events
from headrace.client.subscriptions import Payments, Subscriptions
from headrace.client.usage import Usage
from headrace.client.verbs import Verbs, given, part
from headrace.client.webhooks import Webhooks
from headrace.deadlines import deadline
from headrace.errors import HeadraceError

OnProgress = Callable[[Task], Awaitable[None] | None]

_BATCH = 1000  # tasks that the server accepts in one request
# The first event is immediate; if it is delayed (by a buffering proxy), streams are not usable.
_FIRST_EVENT = timedelta(seconds=5)
_HEARTBEAT_TIMEOUT = timedelta(seconds=40)  # the server sends a heartbeat every 10 s
_RECONNECT_PAUSE_S = (0.5, 1.5)
_POLL_FIRST_S, _POLL_LAST_S = 0.1, 2.0


class Client(Verbs):
    """A client of one server with one API key. Its own verbs are about tasks; ``schedules``, ``executions``, ``locks``,
    ``bulk``, ``files``, ``removals``, ``usage``, ``plans``, ``subscriptions``, ``payments``, ``webhooks``,
    ``notifications``, ``users``, ``api_keys`` and ``sessions`` have theirs, and for administrators ``operations``,
    ``deletions``, ``ledger``, ``audit``, ``configs``, ``settings``, ``outbox``, ``archives``, ``partitions`` and
    ``risks``. Submits are idempotent: retries create one task.

    Every verb raises the errors of ``headrace.client.errors``; requests to a busy (429, 503) or unreachable server are
    retried first, with growing pauses.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: timedelta = timedelta(seconds=30),
        retry: RetryPolicy | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        connection = Connection(base_url, api_key, timeout=timeout, retry=retry or RetryPolicy(), transport=transport)
        super().__init__(connection)
        self.schedules = Schedules(connection)
        self.executions = Executions(connection)
        self.locks = Locks(connection)
        self.usage = Usage(connection)
        self.bulk = Bulk(connection)
        self.operations = Operations(connection)
        self.plans = Plans(connection)
        self.subscriptions = Subscriptions(connection)
        self.payments = Payments(connection)
        self.webhooks = Webhooks(connection)
        self.notifications = Notifications(connection)
        self.files = Files(connection)
        self.removals = Removals(connection)
        self.users = Users(connection)
        self.api_keys = ApiKeys(connection)
        self.sessions = Sessions(connection)
        self.deletions = Deletions(connection)
        self.ledger = Ledger(connection)
        self.audit = Audit(connection)
        self.configs = Configs(connection)
        self.settings = Settings(connection)
        self.outbox = Outbox(connection)
        self.archives = Archives(connection)
        self.partitions = Partitions(connection)
        self.risks = Risks(connection)

    async def close(self) -> None:
        """Close its connections."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- submitting

    async def submit(
        self,
        type: str,  # noqa: A002 - the API's word
        payload: Any = None,
        *,
        title: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        max_attempts: int | None = None,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - the task's, not this call's
        limit_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Task:
        """Submit one task. With your own ``key`` it is submitted once even if your program restarts."""
        new = NewTask(
            type, payload, title, queue, priority, run_at, max_attempts, timeout, limit_key, labels=labels or {}
        )
        return Task.of(await self._create("/v1/tasks", new.as_json(), key))

    async def submit_many(self, tasks: Sequence[NewTask], *, key: str | None = None) -> Sequence[str]:
        """Submit tasks in this order; returns their ids. Each thousand is accepted completely or not at all.

        An error after a part was accepted has those ids in ``details["submitted_ids"]``. After a temporary error
        (``Exhausted``, ``Unavailable``), the same call with the key in ``details["key"]`` continues within a day;
        otherwise submit the rest in a new call.
        """
        chosen = key or ids.new("key")
        made: list[str] = []
        for start in range(0, len(tasks), _BATCH):
            body = {"tasks": [task.as_json() for task in tasks[start : start + _BATCH]]}
            part = chosen if len(tasks) <= _BATCH else f"{chosen}:{start // _BATCH}"
            try:
                made += (await self._create("/v1/tasks/batch", body, part))["ids"]
            except HeadraceError as exc:
                exc.details = {**exc.details, "submitted_ids": made, "key": chosen}
                if made:
                    exc.message += (
                        f" {len(made):,} of {len(tasks):,} tasks were submitted: "
                        "details['submitted_ids'] has their ids."
                    )
                    exc.args = (exc.message,)
                raise
        return made

    # -- reading

    async def get(self, task_id: str) -> Task:
        """One task, with its payload and its result."""
        return Task.of(await self._get(f"/v1/tasks/{part(task_id)}"))

    async def steps(self, task_id: str, *, failed: bool = False) -> Sequence[Step]:
        """The steps of every attempt, or only ``failed`` ones, in their order."""
        asked = {"failed": failed or None}
        return [Step.of(item) async for item in self._pages(f"/v1/tasks/{part(task_id)}/steps", asked)]

    async def why(self, task_id: str) -> Why:
        """Why a task is not running."""
        return Why.of(await self._get(f"/v1/tasks/{part(task_id)}/why"))

    async def logs(self, task_id: str) -> AsyncGenerator[LogLine, None]:
        """Ends of attempts and log lines of the handler, oldest first."""
        async for item in self._pages(f"/v1/tasks/{part(task_id)}/logs"):
            yield LogLine.of(item)

    async def queues(self) -> Sequence[Queue]:
        """Waiting and running tasks of each queue."""
        return [Queue.of(item) for item in (await self._get("/v1/queues"))["items"]]

    async def workers(self) -> Sequence[Worker]:
        """Workers that have not ended. For administrators."""
        return [Worker.of(item) for item in (await self._get("/v1/workers"))["items"]]

    async def task_types(self) -> Sequence[TaskType]:
        """All registered task types."""
        return [TaskType.of(item) for item in (await self._get("/v1/task-types"))["items"]]

    async def me(self) -> Me:
        """The user and credentials of this client."""
        return Me.of(await self._get("/v1/me"))

    async def capabilities(self) -> Capabilities:
        """What this installation offers the caller: its version, limits and public configs."""
        return Capabilities.of(await self._get("/v1/capabilities"))

    async def event_types(self) -> Sequence[EventType]:
        """All event types for webhooks and brokers."""
        return [EventType.of(item) for item in (await self._get("/v1/event-types"))["items"]]

    # -- waiting

    async def wait(
        self, task_id: str, *, within: timedelta | None = None, on_progress: OnProgress | None = None
    ) -> Task:
        """Wait until a task ends and return it with its result or error; ``TimeoutError`` if that takes too long.

        ``on_progress`` is called with the task after every change.
        """
        async with deadline(task_id, within), aclosing(self.follow(task_id)) as states:
            async for task in states:
                callback_result = on_progress(task) if on_progress is not None else None
                if inspect.isawaitable(callback_result):
                    await callback_result
        return task

    async def follow(self, task_id: str) -> AsyncGenerator[Task, None]:
        """Yield the task now and after every change; the last one has ended and is complete.

        Uses server-sent events, or polling where a proxy does not pass them.
        """
        last_id: str | None = None
        streams_work = False
        while True:
            try:
                async with aclosing(self._events(task_id, last_id)) as events:
                    async for event in events:
                        streams_work, last_id = True, event.id or last_id
                        if event.kind == "end":
                            yield await self.get(task_id)
                            return
                        task = Task.of(json.loads(event.data)) if event.kind == "task" else None
                        if task is not None and not task.is_over:  # the end is yielded once, with payload and result
                            yield task
            except (Unreachable, _NoStream):
                if not streams_work:
                    break
            # The server ends streams after a while, or was restarted: poll, and reconnect after the last event.
            if (task := await self.get(task_id)).is_over:
                yield task
                return
            await asyncio.sleep(random.uniform(*_RECONNECT_PAUSE_S))  # noqa: S311 - spreads load, guards nothing
        async for task in self._poll(task_id):
            yield task

    async def _events(self, task_id: str, last_id: str | None) -> AsyncGenerator[ServerEvent, None]:
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        path = f"/v1/tasks/{part(task_id)}/events"
        async with self._connection.stream(path, headers=headers, read_timeout=_HEARTBEAT_TIMEOUT) as response:
            if response.status_code == httpx2.codes.NO_CONTENT:
                yield ServerEvent("end", "", last_id)
                return
            if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                raise _NoStream  # reading the task itself raises the error
            async with aclosing(read_events(response.aiter_bytes())) as events:
                try:
                    async with asyncio.timeout(_FIRST_EVENT.total_seconds()):
                        first = await anext(events)
                except (TimeoutError, StopAsyncIteration):
                    raise _NoStream from None
                yield first
                async for event in events:
                    yield event

    async def _poll(self, task_id: str) -> AsyncGenerator[Task, None]:
        version, pause = -1, _POLL_FIRST_S
        while True:
            task = await self.get(task_id)
            if task.version != version:
                version, pause = task.version, _POLL_FIRST_S
                yield task
            if task.is_over:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _POLL_LAST_S)

    # -- changing

    async def cancel(self, task_id: str, *, version: int | None = None) -> Task:
        """Cancel a task; a running one is asked to stop and ends soon after. With a ``version`` only if it matches."""
        return Task.of(await self._change(f"/v1/tasks/{part(task_id)}/cancel", version, safe=True))

    async def retry(self, task_id: str, *, version: int | None = None) -> Task:
        """Retry a failed or canceled task."""
        return Task.of(await self._change(f"/v1/tasks/{part(task_id)}/retry", version, safe=version is not None))

    async def delete(self, task_id: str) -> None:
        """Delete an ended task."""
        await self._connection.request("DELETE", f"/v1/tasks/{part(task_id)}", safe=False)

    async def pause(self, queue: str, *, create: bool = False) -> QueueRules:
        """Pause a queue; ``create`` allows an unknown one. For administrators."""
        asked = given({"create": create or None})
        return QueueRules.of(await self._change(f"/v1/queues/{part(queue)}/pause", None, safe=True, params=asked))

    async def resume(self, queue: str) -> QueueRules:
        """Resume a paused queue. For administrators."""
        return QueueRules.of(await self._change(f"/v1/queues/{part(queue)}/resume", None, safe=True))

    async def limit(self, queue: str, max_running: int | None, *, create: bool = False) -> QueueRules:
        """Limit a queue's concurrently running tasks; None for no limit. For administrators."""
        path, body = f"/v1/queues/{part(queue)}/limit", {"max_running": max_running}
        asked = given({"create": create or None})
        return QueueRules.of(await self._change(path, None, safe=True, method="PUT", body=body, params=asked))

    # -- listing; last, because `list` is shadowed from here on

    async def list(
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
    ) -> AsyncGenerator[Task, None]:
        """Your tasks, newest first, without payloads and results; fetched page by page.

        ``user_id`` is for administrators: one user, or ``"*"`` for all. ``title`` and ``error`` are substrings of the
        title and of the error's code or message; ``key`` is the idempotency key of the submission.
        """
        asked = {
            "status": [status] if isinstance(status, str) else status,
            "type": type,
            "queue": queue,
            "created_after": created_after,
            "created_before": created_before,
            "user_id": user_id,
            "title": title,
            "label": [f"{name}={value}" for name, value in (labels or {}).items()] or None,
            "key": key,
            "error": error,
        }
        async for item in self._pages("/v1/tasks", asked):
            yield Task.of(item)


class _NoStream(Exception):
    """Server-sent events do not work on this connection."""
