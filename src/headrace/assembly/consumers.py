"""The consumers of the outbox's events, and the senders of what they write."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from headrace import extras
from headrace.database import Database
from headrace.notifications.consumer import NotificationConsumer
from headrace.outbox.consumers import Consumer
from headrace.outbox.nats.config import NatsConfig
from headrace.outbox.nats.consumer import NatsConsumer
from headrace.outbox.senders import Sender
from headrace.settings import Settings
from headrace.webhooks.consumer import WebhookConsumer


def consumers(chosen: Settings) -> Sequence[Consumer]:
    """In the order in which they are called, which is the order in which they lock rows."""
    nats = nats_config(chosen)
    brokers = [] if nats is None else [NatsConsumer(nats)]
    return [WebhookConsumer(), NotificationConsumer(), *brokers]


@asynccontextmanager
async def open_senders(chosen: Settings, db: Database, secret: bytes) -> AsyncIterator[Sequence[Sender]]:
    """The senders of a relay process, for as long as it runs; a consumer without one has none here."""
    from headrace.assembly.webhooks import open_sender  # with an HTTP client, which other commands need not load

    async with open_sender(chosen, db, secret) as webhooks:
        yield [webhooks, *_brokers(chosen, db)]


def _brokers(chosen: Settings, db: Database) -> list[Sender]:
    nats = nats_config(chosen)
    if nats is None:
        return []
    extras.load("nats", extra="nats")
    from headrace.outbox.nats.sending import NatsSender

    return [NatsSender(db, nats)]


def nats_config(chosen: Settings) -> NatsConfig | None:
    if chosen.nats_url is None:
        return None
    return NatsConfig(
        url=chosen.nats_url.get_secret_value(),
        events=chosen.nats_events,
        subject=chosen.nats_subject,
        stream=chosen.nats_stream,
        listen=chosen.relay_listen,
    )
