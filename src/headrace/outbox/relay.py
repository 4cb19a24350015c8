"""The relay: passes each event to its consumers. Any number of relays share the work, and any may be killed.

Claim and fan-out are two transactions. The first leases heads of aggregates; the second marks the events PUBLISHED and
calls all consumers, so that a consumer's rows exist exactly when the event is published. If a relay dies between the
two, nothing is lost: the lease expires, and another relay claims the events.
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
    """Delays before a failed event is retried: about twelve hours in all."""

    first: timedelta = timedelta(seconds=5)
    longest: timedelta = timedelta(hours=1)
    max_tries: int = 20

    def delay(self, tries: int) -> timedelta:
        """The delay after this many tries: doubled each time, with a jitter of a fifth."""
        seconds = self.first.total_seconds() * 2 ** min(tries - 1, 30)
        longest = self.longest.total_seconds()
        return timedelta(seconds=min(seconds, longest) * random.uniform(0.8, 1.2))  # noqa: S311


@dataclass(frozen=True, slots=True)
class RelayConfig:
    batch: int = 100  # aggregates in one claim
    chain: int = 20  # events of one aggregate in one claim
    failed: int = 10  # failed events retried in one round, each alone, which costs more
    lease: timedelta = timedelta(seconds=30)
    retries: RetryConfig = field(default_factory=RetryConfig)


@dataclass(frozen=True, slots=True)
class Relayed:
    """Counts of events of one round. All zero: no event was due that other relays do not hold."""

    published: int = 0
    failed: int = 0
    dead: int = 0
    set_aside: int = 0  # left by a relay that died
    lost: int = 0  # taken over by another relay because this one was too slow

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
        """Pass one batch of new events to the consumers, and retry a few failed ones. ``Relayed()`` if none are due.

        Without consumers nothing is read: events would be published to none, and lost for later consumers.
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
            if first is None and since is None and seconds > SLOW_S:  # only dead entries were found
                first = now or await tx.fetchval("SELECT now()")
        self._floor.record_scan(since, seconds=seconds, first=first)
        return Relayed(set_aside=claim.set_aside) + await self._relay(claim.chains, now)

    async def _failed_event(self, now: datetime | None) -> Relayed:
        config = self._config
        async with self._db.transaction() as tx:
            claim = await claims.claim_failed(tx, max_tries=config.retries.max_tries, lease=config.lease, now=now)
        return Relayed(dead=claim.set_aside) + await self._relay(claim.chains, now)

    async def _relay(self, chains: Sequence[Chain], now: datetime | None) -> Relayed:
        """Publish chains together. On failure bisect them, until only the failing head is left."""
        if not chains:
            return Relayed()
        try:
            async with self._db.transaction() as tx:
                return await self._fan_out(tx, chains)
        except DatabaseUnavailable:
            raise  # no event caused it; the leases expire
        except Exception as exc:  # noqa: BLE001 - logged once the failing event is known
            if len(chains) == 1 and len(chains[0].events) == 1:
                return await self._fail(chains[0], exc, now)
        if len(chains) == 1:  # events behind the head have no lease: the next claim takes them
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
    interests = consumer.interests  # read once: it may be a computed property
    if not interests:  # it declares interests by keys, and selects itself
        return list(events)
    return [event for event in events if is_interested(interests, event.event.type)]
