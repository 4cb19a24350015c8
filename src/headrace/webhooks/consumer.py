"""Webhooks as a consumer of the outbox: each event becomes a delivery for each endpoint that wants it."""

from collections.abc import Sequence

from headrace.database import Tx
from headrace.outbox.consumers import StoredEvent
from headrace.outbox.interests import Interest
from headrace.webhooks.model import CONSUMER, Endpoint
from headrace.webhooks.store import fan_out


class WebhookConsumer:
    """Its interests come and go with endpoints (``interests_of``), so it gets every event and picks in SQL."""

    name = CONSUMER
    interests: Sequence[str] = ()

    async def receive(self, tx: Tx, events: Sequence[StoredEvent]) -> None:
        if await fan_out.fan_out(tx, events):
            await fan_out.wake_senders(tx)


def interests_of(endpoint: Endpoint) -> list[Interest]:
    """Which events must be written for an endpoint. Narrower than what it is sent is never right, wider is only waste:
    so a filter by task type counts where a pattern is about tasks alone."""
    user_id = None if endpoint.every_user else endpoint.user_id
    types: Sequence[str | None] = endpoint.task_types or (None,)
    return [
        Interest(pattern, user_id, task_type if pattern.startswith("task.") else None)
        for pattern in endpoint.subscribed_events
        for task_type in (types if pattern.startswith("task.") else (None,))
    ]
