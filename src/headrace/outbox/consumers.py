"""Who wants events: the contract that webhooks, notifications and brokers share.

The relay gives an event to all its consumers in one transaction, in which it is marked PUBLISHED, too. What a consumer
writes there are rows of its own (deliveries, notifications, messages for a broker), so each of them is there once,
whatever dies. Whatever is slow or foreign comes later: a sender of the consumer's own claims those rows, with a lease
of its own, and a receiver that hangs holds up nobody else. docs/why/events.md draws it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from headrace.database import Tx
from headrace.outbox.model import Event


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it lies in the outbox."""

    position: int  # the row's id: within one aggregate, the order in which things happened
    event: Event
    created_at: datetime


class Consumer(Protocol):
    """Whoever wants events.

    An event is written only where an interest in ``event_interests`` fits it (or its writer says always). There are two
    ways to have interests. ``interests`` are those that the consumer has as long as it is assembled: every relay that
    starts, also that of ``headrace up``, stores them under the consumer's name and the key ``""``. Those that come and
    go (an endpoint is made, changed, deleted) are declared where that happens, under the consumer's name and a key of
    its own: ``interests.declare``.
    """

    @property
    def name(self) -> str:
        """Unique among the consumers of a deployment."""

    @property
    def interests(self) -> Sequence[str]:
        """Types of events: ``task.created``, all that begin alike (``task.*``), or all (``*``). ``receive`` gets what
        fits them. Empty for a consumer that declares its interests by keys: it gets every event, and picks."""

    async def receive(self, tx: Tx, events: Sequence[StoredEvent]) -> None:
        """Write in this transaction what these events mean to you: rows of your own, and nothing outside the database.

        Events of one aggregate come in their order, also from one call to the next. What was rolled back comes again,
        alone or in another batch. Raising delays only the aggregate of the event that cannot be received: the relay
        finds out which it is. Consumers are called in the order of their registration, which is the order in which
        they lock rows.
        """


def is_interested(interests: Sequence[str], event_type: str) -> bool:
    return any(
        pattern in ("*", event_type) or (pattern.endswith(".*") and event_type.startswith(pattern[:-1]))
        for pattern in interests
    )
