"""The outbox consumer that turns each event into one delivery for each subscribed endpoint."""

from collections.abc import Sequence

from headrace.database import Tx
from headrace.outbox.consumers import StoredEvent
from headrace.outbox.interests import Interest
from headrace.webhooks.model import CONSUMER, Endpoint
from headrace.webhooks.store import fan_out


class WebhookConsumer:
    """Receives every event and selects endpoints in SQL, because interests change with endpoints (``interests_of``)."""

    name = CONSUMER
    interests: Sequence[str] = ()

    async def receive(self, tx: Tx, events: Sequence[StoredEvent]) -> None:
        if await fan_out.fan_out(tx, events):
            await fan_out.wake_senders(tx)


def interests_of(endpoint: Endpoint) -> list[Interest]:
    """The events that must be written for an endpoint. Too narrow an interest loses events, too wide a one only costs
    rows: so the filter by task type applies only to patterns of task events."""
    user_id = None if endpoint.every_user else endpoint.user_id
    types: Sequence[str | None] = endpoint.task_types or (None,)
    return [
        Interest(pattern, user_id, task_type if pattern.startswith("task.") else None)
        for pattern in endpoint.subscribed_events
        for task_type in (types if pattern.startswith("task.") else (None,))
    ]
