"""A relay process: passes events to consumers while there are any, sleeps, and is woken by new ones.

NOTIFY makes it fast; polling makes it correct. Before it sleeps it says so in its row and polls once more: a writer of
events wakes relays only if one sleeps, because NOTIFY takes a lock of the whole server.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from headrace import ids, logs
from headrace.database import Database
from headrace.figures import Figure, Kind
from headrace.loops import FailuresLogged, Waker, pause, persist, repeat
from headrace.outbox import interests, presence
from headrace.outbox.consumers import Consumer
from headrace.outbox.interests import EventWritersBusy, Interest
from headrace.outbox.relay import Relay, Relayed
from headrace.outbox.senders import Sender

log = logs.get(__name__)

CHANNEL = "headrace_events"
_RETRY_PAUSE_S = 0.5
# A writer that read the row before the relay reported to be asleep commits within this time, or the next poll finds it.
_RECHECK_DELAY_S = 0.02
# After this many busy rounds in a row a relay reports to be awake; for single events it does not.
_BUSY_ROUNDS = 3
_HEARTBEAT_INTERVAL = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class LoopConfig:
    poll_every: timedelta = timedelta(seconds=1)  # for lost notifications
    listen: bool = True


async def declare_interests(db: Database, consumers: Sequence[Consumer]) -> None:
    """Store the static interests of consumers. An operator withdraws those of a consumer that was removed for good: no
    relay knows whether another one still runs it."""
    for consumer in consumers:
        async with db.transaction() as tx:
            await interests.declare(tx, consumer.name, "", [Interest(pattern) for pattern in consumer.interests])
    async with db.transaction(readonly=True) as tx:
        known = await interests.list_consumers(tx)
    for name in sorted(set(known) - {consumer.name for consumer in consumers}):
        # That consumer never receives the events that this relay publishes.
        log.error(
            "relay.consumer_unknown", consumer=name, mend=f"set it up here, too, or: headrace outbox withdraw {name}"
        )


class RelayLoop:
    """A relay and its senders, running until they are stopped."""

    def __init__(
        self,
        db: Database,
        relay: Relay,
        consumers: Sequence[Consumer],
        senders: Sequence[Sender] = (),
        config: LoopConfig | None = None,
    ) -> None:
        self._db = db
        self._relay = relay
        self._consumers = consumers
        self._senders = senders
        self._config = config or LoopConfig()
        self._waker = Waker()
        self._id = ids.new("rly")
        self._asleep = False
        self.relayed = Relayed()

    def read_figures(self) -> list[Figure]:
        """What this relay has done, for `/metrics`."""
        done = self.relayed
        return [
            Figure(
                "headrace_relay_events_total",
                "Events that this relay published, failed to publish and will retry (failed), or gave up (dead).",
                ("result",),
                {("published",): done.published, ("failed",): done.failed, ("dead",): done.dead},
                kind=Kind.COUNTER,
            )
        ]

    async def run(self, stop: asyncio.Event) -> None:
        """Relay until ``stop``; finishes the batch under way, and the senders finish or release theirs."""
        beside: list[Callable[[], Awaitable[None]]] = [lambda: self._declare(), lambda: self._heartbeat_loop()]
        if self._config.listen:
            beside.append(lambda: self._waker.listen(self._db, CHANNEL))
        async with asyncio.TaskGroup() as group:
            sending = [group.create_task(sender.run(stop)) for sender in self._senders]
            loops = [
                group.create_task(persist(each, failed="relay.failed", pause=timedelta(seconds=_RETRY_PAUSE_S)))
                for each in beside
            ]
            try:
                await self._relay_until(stop)
                await asyncio.gather(*sending)
            finally:
                for each in loops:
                    each.cancel()
        await self._leave()

    async def _relay_until(self, stop: asyncio.Event) -> None:
        busy = 0  # consecutive rounds that found events
        while not stop.is_set():
            self._waker.clear()
            done = await self._run_once_safely()
            if done is None:
                await pause(_RETRY_PAUSE_S, stop=stop)
            elif done != Relayed():
                busy += 1
                if busy == _BUSY_ROUNDS:
                    await self._report_state(asleep=False)
            else:
                busy = 0
                if self._asleep:
                    await self._waker.wait(self._config.poll_every.total_seconds(), stop=stop)
                else:
                    await self._report_state(asleep=True)
                    await self._waker.wait(_RECHECK_DELAY_S, stop=stop)

    async def _run_once_safely(self) -> Relayed | None:
        """What was done; None after a failure."""
        with FailuresLogged("relay.failed"):
            done = await self._relay.run_once()
            self.relayed += done
            return done
        return None

    async def _report_state(self, *, asleep: bool) -> None:
        """Write heartbeat and idle flag. If the write fails, the next heartbeat repeats it."""
        self._asleep = asleep
        with FailuresLogged("relay.failed"):
            await self._write_heartbeat()

    async def _write_heartbeat(self) -> None:
        await presence.write_heartbeat(
            self._db, self._id, host=socket.gethostname()[:255], pid=os.getpid(), asleep=self._asleep
        )

    async def _declare(self) -> None:
        """Declare static interests, retrying while another transaction stays open."""
        while True:
            try:
                return await declare_interests(self._db, self._consumers)
            except EventWritersBusy:
                log.warning("relay.interests_wait")
            await asyncio.sleep(_RETRY_PAUSE_S)

    async def _heartbeat_loop(self) -> None:
        await repeat(self._write_heartbeat, _HEARTBEAT_INTERVAL, failed="relay.beat_failed")

    async def _leave(self) -> None:
        with FailuresLogged("relay.failed"):  # its row expires within a minute
            await presence.remove(self._db, self._id)
