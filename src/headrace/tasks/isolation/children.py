"""Handlers in child processes: they can be killed, limited in memory and time, and crash alone.

A child is a fresh interpreter that imports the user's program by its address; nothing of the running loop is forked.
It is started when first needed, stays for the next tasks, and is replaced after ``recycle_after`` of them, when its
memory has grown, and after every crash or kill.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from typing import Any

from headrace import logs
from headrace.tasks.context import Facts, Reporter
from headrace.tasks.errors import TaskCanceled
from headrace.tasks.isolation.errors import ProgramBroken
from headrace.tasks.isolation.guardian import Guardian
from headrace.tasks.isolation.output import Forward, to_stderr
from headrace.tasks.isolation.performing import perform
from headrace.tasks.isolation.process import Child
from headrace.tasks.model import Claimed
from headrace.tasks.registry import TaskType

log = logs.get(__name__)

_LONGEST_PAUSE = 60.0


class Children:
    """Up to ``size`` child processes of one program.

    ``env`` is their whole environment; None is the worker's own. ``growth_limit`` is how many bytes a child may hold
    on to beyond what it had after its first task. Belongs to the loop it is first used on; ``close`` it there.
    """

    def __init__(
        self,
        registry_address: str,
        *,
        size: int,
        recycle_after: int = 100,
        growth_limit: int = 512 * 1024 * 1024,
        start_within: timedelta = timedelta(seconds=60),
        env: Mapping[str, str] | None = None,
        forward: Forward = to_stderr,
    ) -> None:
        if size < 1 or recycle_after < 1:
            raise ValueError("size and recycle_after must be at least 1")
        self._address = registry_address
        self._size = size
        self._recycle_after = recycle_after
        self._growth_limit = growth_limit
        self._start_within = start_within
        self._env = env
        self._forward = forward
        self._guardian = Guardian()
        self._idle: list[Child] = []
        self._live: set[Child] = set()  # idle or busy
        self._starting = 0  # how many are on their way
        self._loading: set[Child] = set()  # those of them whose process is there
        self._kept_warm = 0  # how many there shall be, even if nobody waits
        self._waiting: deque[asyncio.Future[Child]] = deque()
        self._background: set[asyncio.Task[None]] = set()
        self._broken: ProgramBroken | None = None
        self._failures = 0
        self._retry_at = 0.0
        self._one_is_gone = asyncio.Event()
        self._closed = False

    @property
    def pids(self) -> frozenset[int]:
        """The processes that are there, for metrics and tests."""
        return frozenset(child.pid for child in self._live)

    async def prepare(self, count: int | None = None) -> None:
        """Start children before they are needed; ``ProgramBroken`` if the program cannot be loaded."""
        self._kept_warm = min(self._size, max(self._kept_warm, count or self._size))
        self._give_back(await self._take(asyncio.Event()))
        self._balance()
        while len(self._live) < self._kept_warm and self._starting:
            await asyncio.wait(self._background, return_when=asyncio.FIRST_COMPLETED)

    async def run(
        self,
        task_type: TaskType,
        claimed: Claimed,
        facts: Facts,
        reporter: Reporter,
        *,
        stop: asyncio.Event,
        grace: timedelta,
        result_limit: int,
        on_start: Callable[[], None] = lambda: None,
    ) -> Any:
        """Run a task's handler in a child and give its result, as plain JSON values that fit ``result_limit`` bytes.
        ``on_start`` is called when there is a child for it: before, it waits its turn.

        Raises what errors.py lists, and what handlers raise on purpose. Set ``stop`` to have it stop: an async handler
        is canceled, another gets ``TaskCanceled`` at its next report; after ``grace`` it is killed with everything it
        started (``Killed``). Canceling this call kills it at once.
        """
        assert task_type.name == claimed.task_type
        child = await self._take(stop)
        while child.exited.done():  # just now, by somebody's hand: no reason to spend an attempt
            self._give_back(child)
            child = await self._take(stop)
        try:
            on_start()
            return await perform(child, claimed, facts, reporter, stop=stop, grace=grace, result_limit=result_limit)
        finally:
            self._give_back(child)

    async def close(self) -> None:
        """End all children, those at work by force, and wait until nothing is left of them."""
        self._closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(TaskCanceled())
        for child in list(self._idle):
            self._let_go(child)
        for child in self._live | self._loading:
            child.kill()  # whoever runs or loads it lets it go
        while self._background or self._live:
            self._one_is_gone.clear()
            await self._one_is_gone.wait()
        await self._guardian.close()

    async def _take(self, stop: asyncio.Event) -> Child:
        if self._closed:
            raise RuntimeError("these children are closed")
        if self._idle:
            return self._idle.pop()  # the one that was used last: the others' memory may be paged out
        asked = asyncio.create_task(stop.wait())
        given: asyncio.Future[Child] = asyncio.get_running_loop().create_future()
        self._waiting.append(given)
        self._balance()
        try:
            either: list[asyncio.Future[Any]] = [given, asked]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not given.done():
                raise TaskCanceled
        except BaseException:
            if not given.cancel() and given.exception() is None:
                self._give_back(given.result())
            raise
        finally:
            asked.cancel()
        return await given

    def _give_back(self, child: Child) -> None:
        used_up = child.runs >= self._recycle_after or child.grown() > self._growth_limit
        if child.clean and not used_up and not self._closed and not child.exited.done():
            self._offer(child)
        else:
            self._let_go(child)

    def _offer(self, child: Child) -> None:
        """Give it to who waits longest, else keep it."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(child)
                return
        self._idle.append(child)

    def _let_go(self, child: Child) -> None:
        if not child.clean:
            child.kill()  # now: a canceled run must not go on until the background comes to it
        self._live.discard(child)
        if child in self._idle:
            self._idle.remove(child)
        self._spawn(child.retire())
        self._balance()

    def _balance(self) -> None:
        """Start what is missing. Until a first child has come up they are tried one at a time, with growing pauses."""
        self._waiting = deque(waiting for waiting in self._waiting if not waiting.done())
        if self._closed:
            return
        busy = len(self._live) - len(self._idle)
        wanted = min(self._size, max(self._kept_warm, busy + len(self._waiting)))
        missing = wanted - len(self._live) - self._starting
        if self._broken is not None:
            if time.monotonic() < self._retry_at:
                self._refuse_if_hopeless()
                return
            missing = min(missing, 1 - self._starting)
        elif not self._live:
            missing = min(missing, 1 - self._starting)
        for _ in range(missing):
            self._starting += 1
            self._spawn(self._start())

    def _refuse_if_hopeless(self) -> None:
        if self._live or self._starting or self._broken is None:
            return
        pause = timedelta(seconds=max(0.0, self._retry_at - time.monotonic()))
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(ProgramBroken(self._broken.message, retry_after=pause))
        self._waiting.clear()

    async def _start(self) -> None:
        child = None
        try:
            if self._closed:
                return
            child = Child(self._address, self._env, self._guardian, self._forward)
            self._loading.add(child)
            await child.load(within=self._start_within)
        except Exception as exc:  # noqa: BLE001 - whatever it is, who waits for this child gets to hear it
            if not self._closed:
                self._note_failure(exc)
        except BaseException:
            if child is not None:
                child.kill()
            raise
        else:
            self._welcome(child)
        finally:
            self._starting -= 1
            if child is not None:
                self._loading.discard(child)
            self._balance()
        if child is not None and child not in self._live:
            await child.retire()

    def _welcome(self, child: Child) -> None:
        self._broken, self._failures = None, 0
        if self._closed or child.exited.done():
            return
        self._live.add(child)
        self._kept_warm = max(self._kept_warm, len(self._live))
        child.exited.add_done_callback(lambda _: self._forget_if_idle(child))
        self._offer(child)

    def _note_failure(self, exc: Exception) -> None:
        reason = f"A child process could not be started: {type(exc).__name__}: {exc}"
        message = exc.message if isinstance(exc, ProgramBroken) else reason
        if self._broken is None or self._broken.message != message:
            log.error("isolation.program_broken", address=self._address, error=message)
        self._broken = ProgramBroken(message)
        pause = min(_LONGEST_PAUSE, 2.0**self._failures)
        self._failures += 1
        self._retry_at = time.monotonic() + pause

    def _forget_if_idle(self, child: Child) -> None:
        if child in self._idle:
            # It died with nothing to do. Replacing it ahead could go on for ever; the next task starts another.
            self._kept_warm = max(0, self._kept_warm - 1)
            self._let_go(child)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: "asyncio.Task[None]") -> None:
        self._background.discard(task)
        self._one_is_gone.set()
