"""Who gets the events of the outbox, and who sends on what they have written."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from headrace import extras
from headrace.database import Database
from headrace.outbox.consumers import Consumer
from headrace.outbox.nats.config import NatsConfig
from headrace.outbox.nats.consumer import NatsConsumer
from headrace.outbox.senders import Sender
from headrace.settings import Settings


def consumers(chosen: Settings) -> Sequence[Consumer]:
    """In the order in which they are called, which is the order in which they lock rows."""
    nats = nats_config(chosen)
    return [] if nats is None else [NatsConsumer(nats)]


@asynccontextmanager
async def open_senders(chosen: Settings, db: Database) -> AsyncIterator[Sequence[Sender]]:
    """The senders of a relay process, for as long as it runs; a consumer without one has none here."""
    senders: list[Sender] = []
    nats = nats_config(chosen)
    if nats is not None:
        extras.load("nats", extra="nats")
        from headrace.outbox.nats.sending import NatsSender

        senders.append(NatsSender(db, nats))
    yield senders


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
