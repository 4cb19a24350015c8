"""From settings to webhooks: their keys, where they may go, and a sender at work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headrace.database import Database
from headrace.settings import Settings
from headrace.vault import Keyring
from headrace.webhooks.config import RetrySchedule, SenderConfig
from headrace.webhooks.http.addresses import AddressPolicy
from headrace.webhooks.http.client import HttpClient, HttpConfig
from headrace.webhooks.model import EndpointConfig
from headrace.webhooks.secrets import keyring_of
from headrace.webhooks.sending import Sender
from headrace.webhooks.service import Webhooks


def keyring(settings: Settings, secret: bytes) -> Keyring:
    """The keys of endpoints' secrets; by default the deployment's secret key."""
    current = settings.webhook_key.get_secret_value().encode() if settings.webhook_key else secret
    return keyring_of(current, tuple(key.get_secret_value().encode() for key in settings.webhook_old_keys))


def policy(settings: Settings) -> AddressPolicy:
    return AddressPolicy(local=bool(settings.webhook_local_targets), networks=settings.webhook_networks)


def webhooks(settings: Settings, secret: bytes) -> Webhooks:
    """What the verbs of endpoints work with."""
    config = EndpointConfig(most=settings.webhook_max_endpoints, secret_overlap=settings.webhook_secret_overlap)
    return Webhooks(keyring(settings, secret), policy(settings), config)


def sender_config(settings: Settings) -> SenderConfig:
    return SenderConfig(
        concurrency=settings.webhook_concurrency,
        requests=settings.webhook_requests,
        pause_after=settings.webhook_pause_after,
        secret_overlap=settings.webhook_secret_overlap,
        listen=settings.relay_listen,
        retries=RetrySchedule(delays=settings.webhook_retry_delays),
    )


@asynccontextmanager
async def open_sender(settings: Settings, db: Database, secret: bytes) -> AsyncIterator[Sender]:
    """A sender of webhooks for a relay to run."""
    client = HttpClient(HttpConfig(policy=policy(settings), kept_per_endpoint=settings.webhook_concurrency))
    try:
        yield Sender(db, client, keyring(settings, secret), sender_config(settings))
    finally:
        await client.close()
