"""The heartbeat, in a thread and on a connection of its own: a handler that keeps the event loop busy does not lose the
worker its lease. A loop that does not turn at all for minutes is another matter: then the heart stops, too."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import asyncpg

from headrace import logs
from headrace.database import DatabaseConfig, connect_alone
from headrace.errors import HeadraceError
from headrace.tasks.worker import store
from headrace.tasks.worker.store import Counts, Identity

log = logs.get(__name__)

_STUCK_AFTER_S = 300.0


class Heartbeat:
    """Beats for one worker until it is stopped or given up.

    ``alive_until`` is when the lease ends at the latest by our own clock, counted from before the beat was sent.
    """

    def __init__(
        self, config: DatabaseConfig, worker: Identity, lease: timedelta, counts: Callable[[], Counts]
    ) -> None:
        self._config = config.for_role("heartbeat")
        self._worker = worker
        self._lease = lease.total_seconds()
        self._counts = counts
        self._stop = threading.Event()
        self._seen = time.monotonic()
        self.margin = lease / 5  # for what runs to stop before the lease ends
        self.alive_until = time.monotonic() + self._lease
        self.given_up = False
        self._thread = threading.Thread(target=self._run, name="headrace-heart", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def loop_turned(self) -> None:
        """The event loop reports that it is alive."""
        self._seen = time.monotonic()

    @property
    def lost(self) -> bool:
        """Whether what runs has to stop: we were given up, or by our own clock the lease ends within the margin."""
        return self.given_up or time.monotonic() >= self.alive_until - self.margin.total_seconds()

    async def stop(self) -> None:
        self._stop.set()
        await asyncio.to_thread(self._thread.join, 5)

    def _run(self) -> None:
        try:
            asyncio.run(self._beat_on())
        except Exception:
            log.exception("worker.heart_failed", worker_id=self._worker.id)

    async def _beat_on(self) -> None:
        while not self._stop.is_set() and not self.given_up:
            try:
                async with connect_alone(self._config) as connection:
                    await self._beat_over(connection)
            except (HeadraceError, asyncpg.PostgresError, OSError, TimeoutError) as exc:
                log.warning("worker.heartbeat_failed", worker_id=self._worker.id, error=type(exc).__name__)
                await asyncio.sleep(min(0.5, self._lease / 10))

    async def _beat_over(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        while not self._stop.is_set():
            if time.monotonic() - self._seen > _STUCK_AFTER_S:
                log.error("worker.loop_stuck", worker_id=self._worker.id)
                self.given_up = True
                return
            sent = time.monotonic()
            # A line on which no answer comes is given up soon: the next connection may find another host.
            beat = await connection.fetchval(
                store.BEAT, self._worker.number, *store.beat_arguments(self._counts()), timeout=self._lease / 3
            )
            if beat is None:
                self.given_up = True
                return
            self.alive_until = sent + self._lease
            await asyncio.to_thread(self._stop.wait, self._lease / 3)
