"""Handlers that are not async, in threads: bounded, and replaced when they do not come back.

A thread cannot be killed. A handler that does not stop when asked is abandoned when its caller stops waiting: it
continues as a zombie, its reports are refused, its result is dropped, and another thread takes its place, so that a
worker loses no capacity to it. For more than that use ``isolation="process"``.
"""

import asyncio
import contextlib
import contextvars
import itertools
import queue
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Any

from headrace import logs
from headrace.tasks.context import BlockingTaskContext, Facts, Reporter
from headrace.tasks.errors import LeaseLost
from headrace.tasks.isolation.endings import describe
from headrace.tasks.isolation.errors import HandlerFailed
from headrace.tasks.isolation.stopping import StopOnce
from headrace.tasks.model import Claimed
from headrace.tasks.registry import TaskType

log = logs.get(__name__)


async def run_in_thread(
    pool: "Threads",
    task_type: TaskType,
    claimed: Claimed,
    payload: Any,
    facts: Facts,
    reporter: Reporter,
    loop: asyncio.AbstractEventLoop,
) -> Any:
    """Call the handler in a thread of the pool and give its result; its exceptions pass unchanged.

    ``facts.cancel`` asks it to stop. Canceling this call abandons it: at once if it has not
    begun, else it becomes a zombie.
    """
    job = _Job(loop)
    context = BlockingTaskContext(facts, _Reports(job, claimed, facts, reporter))
    job.work = lambda: task_type.handler(context, payload)
    pool.submit(job)
    try:
        return await job.done
    except asyncio.CancelledError:
        if pool.abandon(job):
            log.warning("thread.abandoned", task_id=claimed.task_id, task_type=claimed.task_type, zombies=pool.zombies)
        raise


class Threads:
    """At most ``size`` threads that serve, started when needed, beside the zombies. Daemons: none holds up an exit."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError("size must be at least 1")
        self._size = size
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._serving: set[threading.Thread] = set()
        self._unclaimed = 0  # jobs in the queue, less the threads that wait for one
        self._names = itertools.count(1)
        self._zombies = 0
        self._abandoned = 0
        self._closed = False

    @property
    def zombies(self) -> int:
        """Threads that still run after their callers stopped waiting."""
        return self._zombies

    @property
    def abandoned(self) -> int:
        """How many became zombies since the start, those included that have ended since."""
        return self._abandoned

    def submit(self, job: "_Job") -> None:
        with self._lock:
            if self._closed:
                raise RuntimeError("these threads are closed")
            self._unclaimed += 1
            try:
                self._grow()
            except RuntimeError:  # the system has no thread left; those that are here will come to it
                if not self._serving:
                    self._unclaimed -= 1
                    raise
            self._jobs.put(job)

    def abandon(self, job: "_Job") -> bool:
        """Expect nothing more of a job; True if it is running and so leaves a zombie."""
        with self._lock:
            was, job.state = job.state, _State.ABANDONED
            if was is not _State.RUNNING:
                return False
            assert job.thread is not None
            self._serving.discard(job.thread)
            self._zombies += 1
            self._abandoned += 1
            self._grow()
            return True

    def close(self) -> None:
        """Send the threads home. The idle ones are gone when this returns; busy ones go when they are done."""
        with self._lock:
            self._closed = True
            threads = list(self._serving)
            for _ in threads:
                self._jobs.put(None)
        deadline = time.monotonic() + 0.2
        for thread in threads:
            thread.join(timeout=max(0.0, deadline - time.monotonic()))

    def _grow(self) -> None:
        if self._unclaimed > 0 and len(self._serving) < self._size and not self._closed:
            thread = threading.Thread(target=self._serve, name=f"headrace-task-{next(self._names)}", daemon=True)
            thread.start()
            self._serving.add(thread)
            self._unclaimed -= 1  # the new thread will claim one

    def _serve(self) -> None:
        me = threading.current_thread()
        while (job := self._jobs.get()) is not None:
            if self._begin(job, me):
                ending = job.perform()
                with self._lock:
                    if job.state is _State.ABANDONED:
                        self._zombies -= 1
                        return
                    job.state = _State.OVER
                job.tell(ending)
                # No reference to the task may stay in this frame while the thread waits for the next.
                del ending
            del job
            with self._lock:
                self._unclaimed -= 1
        with self._lock:
            self._serving.discard(me)

    def _begin(self, job: "_Job", thread: threading.Thread) -> bool:
        with self._lock:
            if job.state is not _State.WAITING:
                return False
            job.state, job.thread = _State.RUNNING, thread
            return True


class _State(Enum):
    WAITING = 1
    RUNNING = 2
    OVER = 3
    ABANDONED = 4


class _Job:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.done: asyncio.Future[Any] = loop.create_future()
        self.work: Callable[[], Any] = lambda: None
        self.state = _State.WAITING
        self.thread: threading.Thread | None = None
        self._context = contextvars.copy_context()

    def perform(self) -> "tuple[Any, BaseException | None]":
        try:
            return self._context.run(self.work), None
        except (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, asyncio.CancelledError) as exc:
            # To the loop these mean something else than that a handler failed; some would end the worker.
            return None, HandlerFailed(type(exc).__name__, str(exc), describe(exc))
        except BaseException as exc:  # noqa: BLE001 - it is the caller's
            return None, exc

    def tell(self, ending: "tuple[Any, BaseException | None]") -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no caller waits
            self.loop.call_soon_threadsafe(self._set, ending)

    def _set(self, ending: "tuple[Any, BaseException | None]") -> None:
        result, error = ending
        if self.done.done():
            return
        if error is None:
            self.done.set_result(result)
        else:
            self.done.set_exception(error)


class _Reports:
    """``BlockingReporter`` that hops to the loop, as long as a caller waits for the job."""

    def __init__(self, job: _Job, claimed: Claimed, facts: Facts, reporter: Reporter) -> None:
        self._job = job
        self._claimed = claimed
        self._reporter = reporter
        self._stop = StopOnce(facts.cancel)

    def call(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        if self._job.state is not _State.RUNNING:
            raise LeaseLost("No caller waits for this task any more: nothing can be reported for it.")
        self._stop.check(verb)
        report = getattr(self._reporter, verb)(self._claimed, *args, **kwargs)
        try:
            return asyncio.run_coroutine_threadsafe(report, self._job.loop).result()
        except RuntimeError:
            if not self._job.loop.is_closed():
                raise
            report.close()
            raise LeaseLost("The worker has stopped.") from None
