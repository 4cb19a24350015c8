"""Who gets the events of the outbox."""

from collections.abc import Sequence

from headrace.notifications.consumer import NotificationConsumer
from headrace.outbox.consumers import Consumer
from headrace.webhooks.consumer import WebhookConsumer


def consumers() -> Sequence[Consumer]:
    """In the order in which they are called, which is the order in which they lock rows."""
    return (WebhookConsumer(), NotificationConsumer())
