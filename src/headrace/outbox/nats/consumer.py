"""The broker as a consumer: a narrow row for each event, which the sender publishes."""

from collections.abc import Sequence

from headrace.database import Tx
from headrace.outbox.consumers import StoredEvent
from headrace.outbox.nats import store
from headrace.outbox.nats.config import NatsConfig

NAME = "nats"


class NatsConsumer:
    name = NAME

    def __init__(self, config: NatsConfig) -> None:
        self.interests: Sequence[str] = tuple(config.events)

    async def receive(self, tx: Tx, events: Sequence[StoredEvent]) -> None:
        await store.add(tx, [event.position for event in events])
