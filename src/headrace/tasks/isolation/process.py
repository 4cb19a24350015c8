"""One child process, seen from the worker: started, spoken to, killed, waited for."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from headrace import logs
from headrace.tasks.errors import LeaseLost
from headrace.tasks.isolation import wire
from headrace.tasks.isolation.environment import clean_environment
from headrace.tasks.isolation.errors import CrashCause, ProgramBroken
from headrace.tasks.isolation.guardian import Guardian
from headrace.tasks.isolation.limits import SET_FROM_OUTSIDE
from headrace.tasks.isolation.output import Forward, Output
from headrace.tasks.isolation.wire import Message
from headrace.tasks.registry import TaskType

# From closing its connection until it is killed: time for what the program registered with atexit.
_FAREWELL = 1.0
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class ChildKind:
    """The parameters of a child process. Types with equal ones share children."""

    environment: tuple[str, ...] = ()
    network: bool = True
    files: bool = True
    folder: str = ""  # where it may work that has no files otherwise

    @classmethod
    def of(cls, task_type: TaskType, folder: str = "") -> "ChildKind":
        return cls(
            tuple(sorted(task_type.environment)),
            task_type.network,
            task_type.files,
            "" if task_type.files else folder,
        )


class Child:
    """A child process. Its creator must ``retire`` it."""

    def __init__(self, kind: ChildKind, guardian: Guardian, forward: Forward) -> None:
        self.loaded: set[str] = set()  # addresses of handlers
        self.missing: Sequence[str] = ()  # what its kernel could not take from it, see sandbox.py
        self.runs = 0
        self.tenant: str | None = None  # the only one that it serves, from its first task on
        self.clean = True  # not in the midst of a task
        self.limited_from_outside = SET_FROM_OUTSIDE and not kind.files
        self.killed = False  # by us
        self.memory_at_first: int | None = None
        self.memory = 0
        self.output = Output(forward)
        self._guardian = guardian
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._pidfd = -1
        self._ours, theirs = socket.socketpair()
        # A child that can open no file receives open files; others have no use for a second socket.
        self._files: socket.socket | None = None
        their_files: socket.socket | None = None
        if not kind.files:
            self._files, their_files = socket.socketpair()
        passed = [each.fileno() for each in (theirs, their_files) if each is not None]
        try:
            # In this thread, and not in one of a pool: the kernel ties a child's life to the thread that started it.
            self._process = subprocess.Popen(  # noqa: S603 - our own module and our own interpreter
                [
                    sys.executable,
                    "-P",  # the current folder may hold any user's json.py
                    "-m",
                    "headrace.tasks.isolation",
                    str(os.getpid()),
                    "network" if kind.network else "no-network",
                    "files" if kind.files else "no-files",
                    kind.folder,
                    *map(str, passed),
                ],
                stdin=subprocess.DEVNULL,
                stdout=self.output.sink,
                stderr=self.output.sink,
                pass_fds=passed,
                start_new_session=True,
                env=clean_environment(kind.environment),
            )
        except BaseException:
            self._ours.close()
            if self._files is not None:
                self._files.close()
            self.output.close()
            raise
        finally:
            theirs.close()
            if their_files is not None:
                their_files.close()
            self.output.close_sink()
        self.pid = self._process.pid
        guardian.watch(self.pid)
        self._watch()

    async def start(self, path: Sequence[str], *, within: timedelta) -> None:
        """Wait until it is up; ``ProgramBroken`` says why it is not."""
        self._reader, self._writer = await asyncio.open_unix_connection(sock=self._ours)
        await self.say({"do": "begin", "path": list(path), "logs": logs.chosen()})
        self.missing = (await self._answer("A child process", within, "started"))["missing"]

    async def load(self, address: str, *, within: timedelta) -> None:
        """Have it import a handler; ``ProgramBroken`` says why it could not, and it is not ``clean`` then."""
        if address in self.loaded:
            return
        self.clean = False
        self.output.restart()
        await self.say({"do": "load", "address": address})
        await self._answer(address, within, "loaded")
        self.loaded.add(address)
        self.clean = True

    async def _answer(self, what: str, within: timedelta, done: str) -> Message:
        try:
            async with asyncio.timeout(within.total_seconds()):
                while (answer := await self.hear()) is not None and answer["say"] == "call":
                    self.refuse(answer)
        except TimeoutError:
            raise ProgramBroken(
                f"{what} could not be {done} within {within.total_seconds():g} s.{self.last_lines()}"
            ) from None
        except wire.Unintelligible:
            answer = None
        if answer is None:
            await asyncio.wait([self.exited], timeout=_FAREWELL)
            raise ProgramBroken(f"{what} could not be {done}: its process {self.fate()}.{self.last_lines()}")
        if answer["say"] != "ready":
            raise ProgramBroken(f"{what} could not be {done}: {answer['error']}")
        self.memory = answer["memory"]
        return answer

    def tell(self, message: Message) -> None:
        """Send a message without waiting; that it died meanwhile is noticed elsewhere."""
        assert self._writer is not None
        with contextlib.suppress(ConnectionError):
            self._writer.write(wire.pack(message))

    async def say(self, message: Message) -> None:
        """Send a message, as fast as the child takes it."""
        assert self._writer is not None
        self.tell(message)
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def hear(self) -> Message | None:
        """The next message, None when it has closed the connection."""
        assert self._reader is not None
        return await wire.read(self._reader)

    def refuse(self, call: Message) -> None:
        """Answer the report of a thread that outlived its task."""
        self.tell({"do": "reply", "call": call["call"], "refused": wire.pack_refusal(LeaseLost())})

    def hand_over(self, descriptors: Sequence[int]) -> None:
        """Pass it open files, for the next run."""
        if descriptors:
            assert self._files is not None, "only types with files=False are handed open files"
            with contextlib.suppress(ConnectionError):  # it died: noticed elsewhere
                socket.send_fds(self._files, [b"f"], descriptors)

    def begin(self) -> int:
        """A new task; gives the number of this run."""
        self.clean = False
        self.runs += 1
        self.output.restart()
        return self.runs

    def end(self, memory: int) -> None:
        """The task is over and this child ready for another."""
        self.clean = True
        self.memory = memory
        if self.memory_at_first is None:
            # The first task loads what all of them need (a model, a cache): only growth beyond that is a leak.
            self.memory_at_first = memory

    def grown(self) -> int:
        return self.memory - (self.memory if self.memory_at_first is None else self.memory_at_first)

    def kill(self) -> None:
        """Kill it with all it started."""
        if not self.exited.done():
            self.killed = True
            self._kill_group()

    async def retire(self) -> None:
        """End it: gently if it has nothing to do. Afterwards there is no process, no descriptor and no group left."""
        try:
            if not self.clean:
                self.kill()
            await self._hang_up()
            await asyncio.wait([self.exited], timeout=_FAREWELL)
        finally:
            self.kill()
        await self.exited
        await self._reap_group()
        self.output.close()

    async def _hang_up(self) -> None:
        if self._files is not None:
            self._files.close()
        if self._writer is None:
            self._ours.close()
            return
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def fate(self) -> str:
        """How it ended, as the end of a sentence."""
        if not self.exited.done():
            return "closed its connection to the worker"
        status = self.exited.result()
        if status >= 0:
            return f"exited with status {status}"
        name = _signal_name(-status)
        if -status == signal.SIGKILL and not self.killed:
            return f"was killed by {name}, and not by its worker: the memory ran out, or another process killed it"
        if -status == signal.SIGXCPU:
            return f"was killed by {name}: it used more CPU time than it may"
        return f"was killed by {name}"

    def cause(self) -> CrashCause:
        """The cause of its death, as far as its status shows."""
        status = self.exited.result() if self.exited.done() else 0
        if -status == signal.SIGXCPU:
            return CrashCause.TIME
        return CrashCause.MEMORY if -status == signal.SIGKILL and not self.killed else CrashCause.ITSELF

    def last_lines(self) -> str:
        lines = self.output.last_lines()
        return f" It wrote last:\n{lines}" if lines else ""

    def _watch(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # not Linux, or an old one
            self._poll_exit()
        else:
            self._loop.add_reader(self._pidfd, self._ended)

    def _poll_exit(self) -> None:
        if self._process.poll() is None:
            self._loop.call_later(_POLL, self._poll_exit)
        else:
            self._ended()

    def _ended(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        # As long as it is not waited for, its number is no other group's.
        self._kill_group()
        self._guardian.forget(self.pid)
        status = self._process.wait()
        if not self.exited.done():
            self.exited.set_result(status)

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _reap_group(self) -> None:
        """Reap orphans of its task that became ours: as the first process of a container we inherit them."""
        for _ in range(100):
            try:
                pid, _status = os.waitpid(-self.pid, os.WNOHANG)  # noqa: ASYNC222 - it does not wait
            except ChildProcessError:
                return
            if pid == 0:
                await asyncio.sleep(_POLL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
