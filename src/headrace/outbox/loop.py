"""A relay process: gives events to consumers as long as there are any, sleeps, and is woken when there are new ones.

Being woken makes it fast; looking every so often makes it right. Before it sleeps it says so in its row, and looks once
more: whoever writes an event wakes only if somebody sleeps, because waking takes a lock of the whole server.
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
_AFTER_TROUBLE_S = 0.5
# After it has said that it sleeps: a writer that had looked before commits within this, or is found by the next look.
_LOOK_AGAIN_S = 0.02
# A relay that finds something round after round need not be woken; for one event now and then it stays as it is.
_BUSY_ROUNDS = 3
_BEAT = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class LoopConfig:
    poll_every: timedelta = timedelta(seconds=1)  # the longest sleep, for a notification that was lost
    listen: bool = True


async def declare_interests(db: Database, consumers: Sequence[Consumer]) -> None:
    """Store what consumers want always. One that is gone for good wants nothing: an operator withdraws it, for nobody
    else knows whether another relay still has it."""
    for consumer in consumers:
        async with db.transaction() as tx:
            await interests.declare(tx, consumer.name, "", [Interest(pattern) for pattern in consumer.interests])
    async with db.transaction(readonly=True) as tx:
        known = await interests.list_consumers(tx)
    for name in sorted(set(known) - {consumer.name for consumer in consumers}):
        # What this relay publishes, that consumer never gets.
        log.error(
            "relay.consumer_unknown", consumer=name, mend=f"set it up here, too, or: headrace outbox withdraw {name}"
        )


class RelayLoop:
    """A relay and its senders, at work until they are stopped."""

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
                "Events that this relay published, or could not and will try again (failed), or gave up (dead).",
                ("result",),
                {("published",): done.published, ("failed",): done.failed, ("dead",): done.dead},
                kind=Kind.COUNTER,
            )
        ]

    async def run(self, stop: asyncio.Event) -> None:
        """Relay until ``stop``; what is under way is finished, and the senders finish or give back theirs."""
        beside: list[Callable[[], Awaitable[None]]] = [lambda: self._declare(), lambda: self._beat()]
        if self._config.listen:
            beside.append(lambda: self._waker.listen(self._db, CHANNEL))
        async with asyncio.TaskGroup() as group:
            sending = [group.create_task(sender.run(stop)) for sender in self._senders]
            loops = [
                group.create_task(persist(each, failed="relay.failed", pause=timedelta(seconds=_AFTER_TROUBLE_S)))
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
        busy = 0  # rounds in a row that found something
        while not stop.is_set():
            self._waker.clear()
            done = await self._run_once_safely()
            if done is None:
                await pause(_AFTER_TROUBLE_S, stop=stop)
            elif done != Relayed():
                busy += 1
                if busy == _BUSY_ROUNDS:
                    await self._say(asleep=False)
            else:
                busy = 0
                if self._asleep:
                    await self._waker.wait(self._config.poll_every.total_seconds(), stop=stop)
                else:
                    await self._say(asleep=True)
                    await self._waker.wait(_LOOK_AGAIN_S, stop=stop)

    async def _run_once_safely(self) -> Relayed | None:
        """What was done; None after a failure."""
        with FailuresLogged("relay.failed"):
            done = await self._relay.run_once()
            self.relayed += done
            return done
        return None

    async def _say(self, *, asleep: bool) -> None:
        """That it is there, and whether it sleeps. What nobody could be told is said again with the next beat."""
        self._asleep = asleep
        with FailuresLogged("relay.failed"):
            await self._appear()

    async def _appear(self) -> None:
        await presence.appear(self._db, self._id, host=socket.gethostname()[:255], pid=os.getpid(), asleep=self._asleep)

    async def _declare(self) -> None:
        """Until it is done: a transaction that stays open is waited for."""
        while True:
            try:
                return await declare_interests(self._db, self._consumers)
            except EventWritersBusy:
                log.warning("relay.interests_wait")
            await asyncio.sleep(_AFTER_TROUBLE_S)

    async def _beat(self) -> None:
        await repeat(self._appear, _BEAT, failed="relay.beat_failed")

    async def _leave(self) -> None:
        with FailuresLogged("relay.failed"):  # its row is old within a minute
            await presence.leave(self._db, self._id)
