"""Several worker processes under one roof: started, restarted when they crash, stopped together.

Each child has a pipe on which it tells its figures. When the supervisor dies, be it by SIGKILL, the pipe breaks and the
children stop by themselves, in good order.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import orjson
import typer
from rich.text import Text

from headrace import logs
from headrace.cli.figures import Totals
from headrace.cli.output import err, say

log = logs.get(__name__)

_FIRST_DELAY_S = 0.5
_MAX_DELAY_S = 30.0
# A process that has lived for this long starts with the first delay again.
_STEADY_S = 60.0
_LINE_LIMIT = 1 << 20


class Supervisor:
    """Keeps ``count`` processes of ``command`` running. The first must come up before the others are started."""

    def __init__(
        self, command: Sequence[str], count: int, *, relay: bool = False, environment: Mapping[str, str] | None = None
    ) -> None:
        self._command = list(command)
        self._count = count
        self._relay = relay  # print their output line by line, above a live line
        self._environment = {**os.environ, **(environment or {})}
        self._children: dict[int, asyncio.subprocess.Process] = {}
        self._totals: dict[int, Totals] = {}
        self._past = Totals()
        self._stopping = asyncio.Event()
        self._first_is_up = asyncio.Event()

    def totals(self) -> tuple[int, Totals]:
        return len(self._children), sum(self._totals.values(), start=self._past)

    async def run(self) -> None:
        """Run until ``stop``; raises ``typer.Exit`` with the first child's code if it never comes up."""
        keepers = [asyncio.create_task(self._keep(0))]
        first_is_up = asyncio.create_task(self._first_is_up.wait())
        try:
            await asyncio.wait({keepers[0], first_is_up}, return_when=asyncio.FIRST_COMPLETED)
            if self._first_is_up.is_set():
                keepers += [asyncio.create_task(self._keep(slot)) for slot in range(1, self._count)]
            await asyncio.gather(*keepers)
        finally:
            first_is_up.cancel()
            for keeper in keepers:
                keeper.cancel()

    def stop(self) -> None:
        """Ask every child to stop in good order."""
        self._stopping.set()
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End every child at once; their tasks are recovered by their leases."""
        self._stopping.set()
        self._signal(signal.SIGKILL)

    async def until_up(self) -> None:
        await self._first_is_up.wait()

    async def _keep(self, slot: int) -> None:
        delay = _FIRST_DELAY_S
        while not self._stopping.is_set():
            started = time.monotonic()
            code = await self._live(slot)
            if self._stopping.is_set():
                return
            if not self._first_is_up.is_set():
                raise typer.Exit(_exit_code(code))
            if time.monotonic() - started > _STEADY_S:
                delay = _FIRST_DELAY_S
            log.warning("worker.process_ended", process=slot + 1, how=_how(code), restart_in=delay)
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._stopping.wait()
            delay = min(delay * 2, _MAX_DELAY_S)

    async def _live(self, slot: int) -> int:
        """One child from its start to its end; gives its exit code, negative for a signal."""
        reading, writing = os.pipe()
        stream = asyncio.subprocess.PIPE if self._relay else None
        try:
            child = await asyncio.create_subprocess_exec(
                *self._command,
                "--figures-fd",
                str(writing),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                pass_fds=(writing,),
                env=self._environment,
                limit=_LINE_LIMIT,
                start_new_session=True,  # Ctrl-C is for the supervisor, which passes it on once
            )
        finally:
            os.close(writing)
        self._children[slot] = child
        if self._stopping.is_set():  # asked while it was being started
            self._signal(signal.SIGTERM)
        readers = [asyncio.create_task(self._hear(slot, reading))]
        readers += [asyncio.create_task(_print_lines(each)) for each in (child.stdout, child.stderr) if each]
        try:
            await asyncio.gather(*readers)
            return await child.wait()
        finally:
            for reader in readers:
                reader.cancel()
            self._children.pop(slot, None)
            self._past += self._totals.pop(slot, Totals()).without_running

    async def _hear(self, slot: int, descriptor: int) -> None:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
        )
        try:
            async for line in reader:
                self._totals[slot] = Totals(**orjson.loads(line))
                self._first_is_up.set()
        finally:
            transport.close()

    def _signal(self, which: signal.Signals) -> None:
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.send_signal(which)


async def _print_lines(stream: asyncio.StreamReader) -> None:
    while True:
        try:
            line = await stream.readline()
        except ValueError:  # longer than anybody reads
            continue
        if not line:
            return
        err.print(Text.from_ansi(line.decode(errors="replace").rstrip("\n")), soft_wrap=True)


@asynccontextmanager
async def supervised(supervisor: Supervisor, *, stop: asyncio.Event) -> AsyncIterator[None]:
    """The processes: up at the beginning (unless ``stop`` comes first), stopped in good order at the end."""
    running = asyncio.create_task(supervisor.run())
    waits = [asyncio.create_task(supervisor.until_up()), asyncio.create_task(stop.wait())]
    try:
        await asyncio.wait({running, *waits}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield
    finally:
        for each in waits:
            each.cancel()
        supervisor.stop()
        if not running.done():
            await running


def worker_command(address: str | None, *options: str) -> list[str]:
    return [sys.executable, "-m", "headrace", "worker", *([] if address is None else [address]), *options]


def _exit_code(code: int) -> int:
    # It has said itself what is wrong, unless it had no chance to.
    if code < 0:
        say(f"headrace: the worker process was ended by {_how(code)} before it was up")
    return code if code > 0 else 1


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
