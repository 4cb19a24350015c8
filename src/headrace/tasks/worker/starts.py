"""Shows that tasks run which take longer than a moment; shorter ones are written once, with their end."""

import asyncio
import time
from collections.abc import Callable, Sequence

from headrace import logs
from headrace.errors import HeadraceError, Unavailable
from headrace.tasks.worker.reporting import LeaseReporter
from headrace.tasks.worker.runs import Run
from headrace.tasks.worker.slots import Load

log = logs.get(__name__)

_EVERY_SECONDS = 0.05
_SHOW_AFTER_SECONDS = 0.1
# A handler may have locked its claim in its own transaction at the very moment when its start is written.
_PATIENCE_SECONDS = 5.0


class Starts:
    """Writes the starts of one worker's runs, in a loop of its own: it waits for the database, and nothing for it."""

    def __init__(self, load: Load, reporter: Callable[[], LeaseReporter]) -> None:
        self._load = load
        self._reporter = reporter

    async def run(self) -> None:
        while True:
            await self._load.running.wait()
            await asyncio.sleep(_EVERY_SECONDS)
            try:
                await self._show()
            except HeadraceError as exc:
                log.warning("worker.starts_unwritten", error=exc.code)

    async def _show(self) -> None:
        since = time.monotonic() - _SHOW_AFTER_SECONDS
        unseen = [
            run
            for run in self._load.runs.values()
            if run.started < since
            and not run.waiting
            and not run.claimed.start_reported
            and not run.start_refused
            # The handler's own transaction keeps its claim locked until it commits; no other start waits for it.
            and not run.claimed.finishing
        ]
        if unseen:
            await self._write(unseen)

    async def _write(self, runs: Sequence[Run]) -> None:
        """Write these starts. One that a follower refuses is written with the end; none of the others suffers."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._reporter().start([run.claimed for run in runs])
        except TimeoutError:
            if len(runs) > 1:
                for run in runs:
                    await self._write([run])
            # One alone is tried again in the next round.
        except Unavailable:
            raise
        except Exception:
            if len(runs) > 1:
                for run in runs:
                    await self._write([run])
                return
            log.exception("task.start_refused", task_id=runs[0].claimed.task_id)
            runs[0].start_refused = True
