"""The children of one kind: started when first needed, used again, replaced."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace import logs
from headrace.tasks.errors import TaskCanceled
from headrace.tasks.isolation.errors import ProgramBroken
from headrace.tasks.isolation.failures import Failures
from headrace.tasks.isolation.guardian import Guardian
from headrace.tasks.isolation.output import Forward
from headrace.tasks.isolation.process import Child, ChildKind

log = logs.get(__name__)

_START = "start"  # what fails when there is no process at all, whatever it should load


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """``path`` is the children's module search path; ``growth_limit`` is how many bytes a child may grow beyond its
    size after its first task."""

    size: int
    path: Sequence[str]
    recycle_after: int
    growth_limit: int
    start_within: timedelta
    forward: Forward
    spare: int = 0  # how many children without a tenant are kept ready beside those that serve one


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    child: "asyncio.Future[Child]"
    tenant: str | None

    def takes(self, child: Child) -> bool:
        return child.tenant in (None, self.tenant)


class Pool:
    """Up to ``size`` children. Belongs to the loop it is first used on; ``close`` it there."""

    def __init__(self, kind: ChildKind, config: PoolConfig, guardian: Guardian) -> None:
        self._kind = kind
        self._config = config
        self._size = config.size
        self._guardian = guardian
        self._known: dict[str, None] = {}  # addresses that were loaded, for those to come
        self._first_load: dict[str, asyncio.Lock] = {}
        self._failures = Failures()
        self._weakness_logged = False
        self._idle: list[Child] = []
        self._live: set[Child] = set()  # idle or busy
        self._starting = 0  # number of children that are starting
        self._loading: set[Child] = set()  # those with a process
        self._kept_warm = 0  # minimum number of children, even without demand
        self._waiting: deque[_Waiting] = deque()
        self._background: set[asyncio.Task[None]] = set()
        self._one_is_gone = asyncio.Event()
        self._closed = False

    @property
    def pids(self) -> frozenset[int]:
        """The processes that are there, for metrics and tests."""
        return frozenset(child.pid for child in self._live)

    async def prepare(self, count: int | None = None) -> None:
        """Start children before they are needed; ``ProgramBroken`` if none can be started."""
        self._kept_warm = min(self._size, max(self._kept_warm, count or self._size))
        self.give_back(await self._take(None))
        self._balance()
        while len(self._live) < self._kept_warm and self._starting:
            await asyncio.wait(self._background, return_when=asyncio.FIRST_COMPLETED)

    @property
    def population(self) -> int:
        """How many children there are, those on their way included."""
        return len(self._live) + self._starting

    @property
    def has_idle(self) -> bool:
        return bool(self._idle)

    def shed(self) -> None:
        """Let an idle child go, to make room for one of another kind."""
        if self._idle:
            self._kept_warm = max(0, self._kept_warm - 1)
            self._retire(self._idle[0])

    def forget(self, tenant: str) -> None:
        """Let go what serves this tenant and has nothing to do; others are started in its place, for anybody."""
        for child in [each for each in self._idle if each.tenant == tenant]:
            self._retire(child)

    async def take(self, address: str, tenant: str | None = None) -> Child:
        """A child that has loaded the handler; to be given back. ``ProgramBroken`` if it cannot be loaded. From its
        first task on it serves this tenant alone.

        Until it was loaded once, one child tries at a time, and the others hear of its failure.
        """
        if address in self._known:
            return await self._take_loaded(address, tenant)
        async with self._first_load.setdefault(address, asyncio.Lock()):
            return await self._take_loaded(address, tenant)

    async def _take_loaded(self, address: str, tenant: str | None) -> Child:
        self._failures.refuse(address)
        child = await self._take(tenant)
        try:
            while child.exited.done():  # killed just now, from outside: no reason to spend an attempt
                self.give_back(child)
                child = await self._take(tenant)
            await child.load(address, within=self._config.start_within)
        except ProgramBroken as exc:
            self._failures.note(address, exc.message)
            self._known.pop(address, None)
            self.give_back(child)
            self._failures.refuse(address)
            raise
        except BaseException:
            self.give_back(child)
            raise
        self._failures.forget(address)
        self._known[address] = None
        child.tenant = tenant
        if self._config.spare:
            self._balance()
        return child

    def give_back(self, child: Child) -> None:
        """Keep it for the next, unless it has to go."""
        config = self._config
        used_up = child.runs >= config.recycle_after or child.grown() > config.growth_limit
        if child.clean and not used_up and not self._closed and not child.exited.done():
            self._offer(child)
        else:
            self._retire(child)

    async def close(self) -> None:
        """End all children, those at work by force, and wait until nothing is left of them."""
        self._closed = True
        for waiting in self._waiting:
            if not waiting.child.done():
                waiting.child.set_exception(TaskCanceled())
        for child in list(self._idle):
            self._retire(child)
        for child in self._live | self._loading:
            child.kill()  # the run or load that holds it releases it
        while self._background or self._live:
            self._one_is_gone.clear()
            await self._one_is_gone.wait()

    async def _take(self, tenant: str | None) -> Child:
        if self._closed:
            raise TaskCanceled
        assigned: asyncio.Future[Child] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(assigned, tenant)
        # The one that was used last: the others' memory may be paged out. The tenant's own before an unassigned one.
        fit = [each for each in self._idle if waiting.takes(each)]
        if fit:
            child = next((each for each in reversed(fit) if each.tenant == tenant), fit[-1])
            self._idle.remove(child)
            return child
        self._waiting.append(waiting)
        if self._idle and self.population >= self._size:
            self._retire(self._idle[0])  # another tenant's, to make room
        self._balance()
        try:
            return await assigned
        except BaseException:
            if assigned.done() and not assigned.cancelled() and assigned.exception() is None:
                self.give_back(assigned.result())
            raise

    def _offer(self, child: Child) -> None:
        """Pass it to the longest waiting request it fits, else keep it; another tenant's is retired to make room."""
        self._waiting = deque(waiting for waiting in self._waiting if not waiting.child.done())
        for waiting in self._waiting:
            if waiting.takes(child):
                self._waiting.remove(waiting)
                waiting.child.set_result(child)
                return
        if self._waiting:
            self._retire(child)
        else:
            self._idle.append(child)

    def _retire(self, child: Child) -> None:
        if not child.clean:
            child.kill()  # now: a canceled run must not continue until the background comes to it
        self._live.discard(child)
        if child in self._idle:
            self._idle.remove(child)
        self._spawn(child.retire())
        self._balance()

    def _balance(self) -> None:
        """Start missing children. Until a first child has come up they are tried one at a time, with growing pauses."""
        self._waiting = deque(waiting for waiting in self._waiting if not waiting.child.done())
        if self._closed:
            return
        fresh = sum(child.tenant is None for child in self._idle)
        spare = self._config.spare if self._live else 0
        wanted = min(self._size, max(self._kept_warm, len(self._live) - fresh + len(self._waiting) + spare))
        missing = wanted - len(self._live) - self._starting
        if self._failures.pausing(_START):
            self._refuse_if_hopeless()
            return
        if not self._live or self._failures.known(_START):
            missing = min(missing, 1 - self._starting)
        for _ in range(missing):
            self._starting += 1
            self._spawn(self._start())

    def _refuse_if_hopeless(self) -> None:
        if self._live or self._starting:
            return
        for waiting in self._waiting:
            if not waiting.child.done():
                waiting.child.set_exception(self._failures.error(_START))
        self._waiting.clear()

    async def _start(self) -> None:
        child = None
        try:
            if self._closed:
                return
            child = Child(self._kind, self._guardian, self._config.forward)
            self._loading.add(child)
            await child.start(self._config.path, within=self._config.start_within)
            await self._load_ahead(child)
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

    async def _load_ahead(self, child: Child) -> None:
        """What the others have loaded, so that the next task need not wait for it."""
        try:
            for address in list(self._known):
                await child.load(address, within=self._config.start_within)
        except ProgramBroken:
            self._known.clear()  # the program has changed: the next task reports what is wrong

    def _welcome(self, child: Child) -> None:
        self._failures.forget(_START)
        if child.missing and not self._weakness_logged:
            self._weakness_logged = True
            log.warning("isolation.sandbox_incomplete", missing=", ".join(child.missing))
        if self._closed or child.exited.done() or not child.clean:
            return
        self._live.add(child)
        self._kept_warm = max(self._kept_warm, len(self._live))
        child.exited.add_done_callback(lambda _: self._forget_if_idle(child))
        self._offer(child)

    def _note_failure(self, exc: Exception) -> None:
        reason = f"A child process could not be started: {type(exc).__name__}: {exc}"
        self._failures.note(_START, exc.message if isinstance(exc, ProgramBroken) else reason)

    def _forget_if_idle(self, child: Child) -> None:
        if child in self._idle:
            # It died idle. Replacing it ahead could loop for ever; the next task starts another.
            self._kept_warm = max(0, self._kept_warm - 1)
            self._retire(child)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: "asyncio.Task[None]") -> None:
        self._background.discard(task)
        self._one_is_gone.set()
