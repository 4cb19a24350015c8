"""The consumer contract that webhooks, notifications and brokers implement.

The relay passes an event to all its consumers in the transaction that marks it PUBLISHED. A consumer writes rows of its
own there (deliveries, notifications, messages for a broker), so each row exists exactly once, whichever process dies.
Slow and external work comes later: the consumer's own sender claims those rows with its own leases, so that a hanging
receiver blocks no other consumer. docs/why/events.md draws it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from headrace.database import Tx
from headrace.outbox.model import Event


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event in the outbox."""

    position: int  # the row's id: within one aggregate, the order of the events
    event: Event
    created_at: datetime


class Consumer(Protocol):
    """A consumer of events.

    An event is written only if an interest in ``event_interests`` matches it (or its writer always writes it). There
    are two kinds of interests. ``interests`` are static: every relay that starts, also that of ``headrace up``, stores
    them under the consumer's name and the key ``""``. Dynamic ones (an endpoint is created, changed, deleted) are
    declared by ``interests.declare`` where the change happens, under the consumer's name and a key of their own.
    """

    @property
    def name(self) -> str:
        """Unique among the consumers of a deployment."""

    @property
    def interests(self) -> Sequence[str]:
        """Event types: ``task.created``, all with a prefix (``task.*``), or all (``*``). ``receive`` gets the matching
        events. Empty for a consumer that declares its interests by keys: it gets every event and selects itself."""

    async def receive(self, tx: Tx, events: Sequence[StoredEvent]) -> None:
        """Write the consumer's own rows for these events in this transaction, and nothing outside the database.

        Events of one aggregate come in order, also from one call to the next. Events that were rolled back come again,
        alone or in another batch. Raising delays only the aggregate of the event that cannot be received: the relay
        finds out which it is. Consumers are called in the order of their registration, which is the order in which
        they lock rows.
        """


def is_interested(interests: Sequence[str], event_type: str) -> bool:
    return any(
        pattern in ("*", event_type) or (pattern.endswith(".*") and event_type.startswith(pattern[:-1]))
        for pattern in interests
    )
