"""What a worker does right now, in a line: moving in a terminal, JSON for programs, a log line in a while otherwise."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Protocol

import orjson
from rich.live import Live
from rich.text import Text

from headrace import logs
from headrace.cli.output import as_log, err, out
from headrace.database import Database
from headrace.errors import HeadraceError
from headrace.settings import Settings

log = logs.get(__name__)

_MAX_COUNTED = 100_000


@dataclass(frozen=True, slots=True)
class Totals:
    """The finished and running tasks of one or several worker processes since their start."""

    running: int = 0
    finished: int = 0
    failed: int = 0
    lost: int = 0

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(
            self.running + other.running,
            self.finished + other.finished,
            self.failed + other.failed,
            self.lost + other.lost,
        )

    @property
    def without_running(self) -> "Totals":
        """What remains of a process that has ended."""
        return Totals(0, self.finished, self.failed, self.lost)


@dataclass(frozen=True, slots=True)
class Figures:
    processes: int
    per_second: float
    waiting: int | None  # None while the database does not answer
    totals: Totals

    def as_fields(self) -> dict[str, object]:
        return {
            "processes": self.processes,
            "per_second": round(self.per_second, 1),
            "waiting": self.waiting,
            **asdict(self.totals),
        }


class Display(Protocol):
    every: float
    wants_waiting: bool

    def show(self, figures: Figures) -> None: ...


# -- measuring


ReadFigures = Callable[[], tuple[int, Totals]]
"""The number of processes, and their totals."""

# Tasks that could start now; counted up to a limit, because the last digit of millions is useless.
WAITING = f"""
SELECT count(*) FROM (
  SELECT FROM headrace.task_queue AS q
  JOIN headrace.task_lanes AS lane ON lane.id = q.lane_id
  WHERE q.worker IS NULL AND q.run_at <= now() AND ($1::text[] IS NULL OR lane.queue = ANY ($1))
  LIMIT {_MAX_COUNTED}
) AS waiting
"""


@asynccontextmanager
async def reporting(
    display: Display, read: ReadFigures, db: Database, queues: Sequence[str] | None, *, stop: asyncio.Event
) -> AsyncIterator[None]:
    """Show the figures meanwhile. When the reader of a pipe closes it, ``stop`` is set."""
    loop = asyncio.create_task(_report(display, read, db, queues, stop))
    try:
        yield
    finally:
        loop.cancel()
        with suppress(asyncio.CancelledError):
            await loop


async def _report(
    display: Display, read: ReadFigures, db: Database, queues: Sequence[str] | None, stop: asyncio.Event
) -> None:
    _, before = read()
    then = time.monotonic()
    while True:
        await asyncio.sleep(display.every)
        processes, totals = read()
        now = time.monotonic()
        rate = max(0.0, (totals.finished - before.finished) / (now - then))
        before, then = totals, now
        waiting = await _count_waiting(db, queues) if display.wants_waiting else None
        try:
            display.show(Figures(processes, rate, waiting, totals))
        except BrokenPipeError:
            stop.set()
            return


async def _count_waiting(db: Database, queues: Sequence[str] | None) -> int | None:
    try:
        [row] = await db.fetch_alone(WAITING, queues)
    except HeadraceError:
        return None
    return int(row["count"])


# -- showing


class JsonLines:
    """One JSON object a line on standard output."""

    every = 2.0
    wants_waiting = True

    def show(self, figures: Figures) -> None:
        line = {"at": datetime.now(UTC), **figures.as_fields()}
        try:
            sys.stdout.write(orjson.dumps(line).decode() + "\n")
            sys.stdout.flush()
        except BrokenPipeError:  # otherwise the interpreter would complain about it once more at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise


class LogLines:
    """A log line when there is something to tell."""

    every = 5.0
    wants_waiting = True

    def __init__(self) -> None:
        self._last: dict[str, object] = {}

    def show(self, figures: Figures) -> None:
        fields = figures.as_fields()
        if fields != self._last:
            log.info("worker.figures", **fields)
        self._last = fields


class LiveLine:
    """A line at the foot of the terminal."""

    every = 1.0
    wants_waiting = True

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, figures: Figures) -> None:
        totals = figures.totals
        waiting = "?" if figures.waiting is None else f"{figures.waiting:,}{'+' * (figures.waiting >= _MAX_COUNTED)}"
        parts = [
            f"{figures.per_second:,.0f} tasks/s",
            f"{totals.running:,} running",
            f"{waiting} waiting",
            f"{totals.finished:,} done",
        ]
        if totals.failed:
            parts.append(f"{totals.failed:,} failed")
        if figures.processes != 1:
            parts.append(f"{figures.processes} processes")
        self._live.update(Text.assemble(("● ", "green"), (" · ".join(parts), "dim")), refresh=True)


class PipeLines:
    """For a supervisor at the other end of a pipe, which counts the queue for all of its children."""

    every = 0.5
    wants_waiting = False

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.set_blocking(descriptor, False)

    def show(self, figures: Figures) -> None:
        with suppress(BlockingIOError):  # it does not read at the moment; the next line says the same and more
            os.write(self._descriptor, orjson.dumps(asdict(figures.totals)) + b"\n")


@contextmanager
def display_for(settings: Settings, *, json: bool, pipe: int | None = None) -> Iterator[Display]:
    """The display that fits where standard output and standard error go."""
    if pipe is not None:
        yield PipeLines(pipe)
    elif json:
        yield JsonLines()
    elif as_log() or not err.is_terminal:
        yield LogLines()
    else:
        with Live(console=err, auto_refresh=False, transient=True, redirect_stdout=out.is_terminal) as live:
            # Log and print output meanwhile goes above the line: through the stream that Rich has put in place.
            logs.configure(format=settings.log_format, level=settings.log_level)
            yield LiveLine(live)
        logs.configure(format=settings.log_format, level=settings.log_level)
