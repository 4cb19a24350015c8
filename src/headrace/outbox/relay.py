"""The relay: gives each event to its consumers. Any number of relays share the work, and any of them may be killed.

Claim and fan-out are two transactions. The first leases heads of aggregates; the second marks the events PUBLISHED and
calls all consumers, so that a consumer's rows are there exactly when the event is published. Whoever dies between the
two loses nothing: the lease runs out, and another relay claims.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headrace import logs
from headrace.database import Database, Tx
from headrace.database_errors import DatabaseUnavailable
from headrace.outbox import claims
from headrace.outbox.claims import Chain
from headrace.outbox.consumers import Consumer, StoredEvent, is_interested
from headrace.outbox.floors import SLOW_S, Floor

log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class RetryConfig:
    """How long an event waits that a consumer could not receive: about twelve hours in all."""

    first: timedelta = timedelta(seconds=5)
    longest: timedelta = timedelta(hours=1)
    max_tries: int = 20

    def delay(self, tries: int) -> timedelta:
        """After so many tries: twice as long each time, give or take a fifth, so that they do not come together."""
        seconds = self.first.total_seconds() * 2 ** min(tries - 1, 30)
        longest = self.longest.total_seconds()
        return timedelta(seconds=min(seconds, longest) * random.uniform(0.8, 1.2))  # noqa: S311


@dataclass(frozen=True, slots=True)
class RelayConfig:
    batch: int = 100  # aggregates in one claim
    chain: int = 20  # events of one aggregate in one claim
    failed: int = 10  # events tried again in one round: each for itself, which costs more
    lease: timedelta = timedelta(seconds=30)
    retries: RetryConfig = field(default_factory=RetryConfig)


@dataclass(frozen=True, slots=True)
class Relayed:
    """What one round did, in events. Nothing at all: there was nothing due that others did not have."""

    published: int = 0
    failed: int = 0
    dead: int = 0
    set_aside: int = 0  # left by a relay that died with them
    lost: int = 0  # taken over by another relay: this one was too slow

    def __add__(self, other: "Relayed") -> "Relayed":
        return Relayed(
            self.published + other.published,
            self.failed + other.failed,
            self.dead + other.dead,
            self.set_aside + other.set_aside,
            self.lost + other.lost,
        )


class Relay:
    def __init__(self, db: Database, consumers: Sequence[Consumer], config: RelayConfig | None = None) -> None:
        names = [consumer.name for consumer in consumers]
        if len(set(names)) < len(names):
            raise ValueError(f"two consumers have one name: {', '.join(sorted(names))}")
        self._db = db
        self._consumers = tuple(consumers)
        self._config = config or RelayConfig()
        self._floor = Floor()

    async def run_once(self, *, now: datetime | None = None) -> Relayed:
        """Give one batch of new events to the consumers, and try a few again that failed. ``Relayed()`` at rest.

        With no consumer nothing is read: an event would be published to nobody, and be gone for whoever comes.
        """
        if not self._consumers:
            return Relayed()
        done = await self._new_events(now)
        for _ in range(self._config.failed):
            again = await self._failed_event(now)
            if again == Relayed():
                break
            done += again
        return done

    async def _new_events(self, now: datetime | None) -> Relayed:
        config = self._config
        since = self._floor.choose()
        async with self._db.transaction() as tx:
            began = time.monotonic()
            claim = await claims.claim_new(
                tx, limit=config.batch, length=config.chain, lease=config.lease, now=now, floor=since
            )
            seconds = time.monotonic() - began
            first = claim.first_due_at
            if first is None and since is None and seconds > SLOW_S:  # nothing waits behind all that is dead
                first = now or await tx.fetchval("SELECT now()")
        self._floor.looked(since, seconds=seconds, first=first)
        return Relayed(set_aside=claim.set_aside) + await self._relay(claim.chains, now)

    async def _failed_event(self, now: datetime | None) -> Relayed:
        config = self._config
        async with self._db.transaction() as tx:
            claim = await claims.claim_failed(tx, max_tries=config.retries.max_tries, lease=config.lease, now=now)
        return Relayed(dead=claim.set_aside) + await self._relay(claim.chains, now)

    async def _relay(self, chains: Sequence[Chain], now: datetime | None) -> Relayed:
        """Publish them together. If that fails, in halves, until only the head that is to blame is left."""
        if not chains:
            return Relayed()
        try:
            async with self._db.transaction() as tx:
                return await self._fan_out(tx, chains)
        except DatabaseUnavailable:
            raise  # nobody's fault; the leases run out
        except Exception as exc:  # noqa: BLE001 - logged once it is known whose fault it is
            if len(chains) == 1 and len(chains[0].events) == 1:
                return await self._fail(chains[0], exc, now)
        if len(chains) == 1:  # those behind the head are not leased themselves: they come with the next claim
            return await self._relay([chains[0].head_alone()], now)
        middle = len(chains) // 2
        return await self._relay(chains[:middle], now) + await self._relay(chains[middle:], now)

    async def _fan_out(self, tx: Tx, chains: Sequence[Chain]) -> Relayed:
        events = sorted((event for chain in chains for event in chain.events), key=lambda event: event.position)
        ours = await claims.publish(tx, chains)
        events = [event for event in events if event.position in ours]
        for consumer in self._consumers:
            if wanted := _wanted(consumer, events):
                await consumer.receive(tx, wanted)
        return Relayed(published=len(ours), lost=sum(len(chain.events) for chain in chains) - len(ours))

    async def _fail(self, chain: Chain, exc: Exception, now: datetime | None) -> Relayed:
        retries = self._config.retries
        async with self._db.transaction() as tx:
            status = await claims.fail(
                tx, chain, delay=retries.delay(chain.tries), max_tries=retries.max_tries, now=now
            )
        if status is None:
            return Relayed(lost=1)
        event = chain.head.event
        log.error(
            "relay.event_failed", event_id=event.id, type=event.type, tries=chain.tries, status=status, exc_info=exc
        )
        return Relayed(dead=1) if status == "DEAD" else Relayed(failed=1)


def _wanted(consumer: Consumer, events: Sequence[StoredEvent]) -> list[StoredEvent]:
    interests = consumer.interests  # asked once: it may be read from somewhere
    if not interests:  # it declares them by keys, and picks for itself
        return list(events)
    return [event for event in events if is_interested(interests, event.event.type)]
