"""Signatures of Standard Webhooks: id, time and body under each valid secret."""

from collections.abc import Sequence
from datetime import datetime

from headrace import __version__, clock, extras
from headrace.webhooks.secrets import Secret

USER_AGENT = f"Headrace/{__version__}"


class Signer:
    """Signs for one endpoint; during a rotation also with the old secret, because the receiver may switch at any
    moment."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        webhook = extras.load("standardwebhooks", extra="server").Webhook
        self._keys = [webhook(secret.key) for secret in secrets]

    def headers(self, event_id: str, body: str, *, now: datetime | None = None) -> dict[str, str]:
        """The signature headers. The id is the event's: it is the same in every attempt."""
        at = now or clock.now()
        return {
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
            "webhook-id": event_id,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": " ".join(key.sign(event_id, at, body) for key in self._keys),
        }
