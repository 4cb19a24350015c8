"""The heartbeat, in a thread and on a connection of its own: a handler that keeps the event loop busy does not lose the
worker its lease. A loop that does not turn at all for minutes is another matter: then the heart stops, too.

The same connection listens for notifications, which the thread passes on: an idle worker needs no other for them."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import asyncpg

from headrace import logs
from headrace.database import DatabaseConfig, connect_alone
from headrace.errors import HeadraceError
from headrace.tasks.worker import store
from headrace.tasks.worker.feeding import CANCEL_CHANNEL, TASKS_CHANNEL
from headrace.tasks.worker.store import Counts, Identity

log = logs.get(__name__)

_STUCK_AFTER_S = 300.0


class Heartbeat:
    """Beats for one worker until it is stopped or given up.

    ``alive_until`` is when the lease ends at the latest by our own clock, counted from before the beat was sent.
    """

    def __init__(
        self,
        config: DatabaseConfig,
        worker: Identity,
        lease: timedelta,
        counts: Callable[[], Counts],
        *,
        notified: Callable[[str | None], None] | None = None,
    ) -> None:
        """``notified`` is called in the loop of the caller, with the channel; None: some may have been missed."""
        self._config = config.for_role("heartbeat")
        self._worker = worker
        self._lease = lease.total_seconds()
        self._counts = counts
        self._notified = notified if not config.pooled else None
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._stopping: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None  # of the thread
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
        if self._stopping is not None:
            loop, stopping = self._stopping
            with suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(stopping.set)
        await asyncio.to_thread(self._thread.join, 5)

    def _run(self) -> None:
        try:
            asyncio.run(self._beat_on())
        except Exception:
            log.exception("worker.heart_failed", worker_id=self._worker.id)

    async def _beat_on(self) -> None:
        stopping = asyncio.Event()
        self._stopping = (asyncio.get_running_loop(), stopping)
        while not self._stop.is_set() and not self.given_up:
            try:
                async with connect_alone(self._config) as connection:
                    lost = asyncio.Event()
                    connection.add_termination_listener(lambda _, lost=lost: lost.set())
                    async with asyncio.timeout(self._lease / 3):
                        await self._listen(connection)
                    await self._beat_over(connection, stopping, lost)
            except (HeadraceError, asyncpg.PostgresError, OSError, TimeoutError) as exc:
                log.warning("worker.heartbeat_failed", worker_id=self._worker.id, error=type(exc).__name__)
                await asyncio.sleep(min(0.5, self._lease / 10))

    async def _listen(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        if self._notified is None:
            return
        for channel in (TASKS_CHANNEL, CANCEL_CHANNEL):
            await connection.add_listener(channel, lambda _connection, _pid, name, _payload: self._pass_on(name))
        self._pass_on(None)  # what came before

    def _pass_on(self, channel: str | None) -> None:
        assert self._notified is not None
        with suppress(RuntimeError):  # the worker's loop is closed
            self._loop.call_soon_threadsafe(self._notified, channel)

    async def _beat_over(
        self, connection: "asyncpg.Connection[asyncpg.Record]", stopping: asyncio.Event, lost: asyncio.Event
    ) -> None:
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
            waits = [asyncio.ensure_future(event.wait()) for event in (stopping, lost)]
            await asyncio.wait(waits, timeout=self._lease / 3, return_when=asyncio.FIRST_COMPLETED)
            for each in waits:
                each.cancel()
