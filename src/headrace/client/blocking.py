"""What the client without an event loop has by hand: its loop, and the verbs with a callback or a block."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic
from typing import Any, Generic, Self, TypeVar

from headrace.client.asynchronous import Client
from headrace.client.generated.answers import Lock, Task
from headrace.client.locks import DEFAULT_TTL, MAX_RELEASE_SECONDS, Locks
from headrace.deadlines import not_over

T = TypeVar("T")
VerbsT = TypeVar("VerbsT")


class Loop:
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


class Blocking(Generic[VerbsT]):
    """Verbs that run on a loop in another thread."""

    def __init__(self, verbs: VerbsT, loop: Loop) -> None:
        self._verbs = verbs
        self._loop = loop


class BlockingClient(Blocking[Client]):
    """The client's life, and ``wait``, whose callback runs in the caller's thread."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, Loop())

    def close(self) -> None:
        """Close its connections."""
        self._loop.run(self._verbs.close())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(
        self,
        task_id: str,
        *,
        within: timedelta | None = None,
        on_progress: Callable[[Task], None] | None = None,
    ) -> Task:
        """Wait until a task ends and return it with its result or error; ``TimeoutError`` if that takes too long.

        ``on_progress`` is called with the task after every change, in the caller's own thread.
        """
        ends_at = None if within is None else monotonic() + within.total_seconds()
        states = self._verbs.follow(task_id)
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


class BlockingLocks(Blocking[Locks]):
    """``hold``, whose block runs in the caller's thread."""

    @contextmanager
    def hold(
        self,
        key: str,
        *,
        ttl: timedelta = DEFAULT_TTL,
        purpose: str | None = None,
        wait: timedelta | None = timedelta(0),
        holder: str | None = None,
    ) -> Iterator[Lock]:
        """Hold a lock while the block runs. ``LockHeld`` unless it is free within ``wait`` (None: no limit).

        It is renewed in the background. A block without an event loop cannot be canceled: if the lock is lost,
        ``LockLost`` is raised at the block's end. A long block should call ``renew`` in between. The target of the
        block's writes can refuse a late holder by ``lock.fence``.
        """
        taken: Future[Lock] = Future()
        over, gone = asyncio.Event(), threading.Event()

        async def keep() -> None:
            try:
                async with self._verbs.hold(key, ttl=ttl, purpose=purpose, wait=wait, holder=holder) as lock:
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


async def _set(event: asyncio.Event) -> None:
    event.set()
