"""Secrets of endpoints: generated, parsed, encrypted. Their text is ``whsec_`` and base64, as in Standard Webhooks;
the stored form is encrypted and bound to the endpoint."""

import base64
import binascii
import hmac
import secrets
from dataclasses import dataclass, field

from headrace.vault import Keyring
from headrace.webhooks.errors import SecretInvalid

PREFIX = "whsec_"
_GENERATED_SECRET_BYTES = 32
_MIN_SECRET_BYTES, _MAX_SECRET_BYTES = 24, 64
_HINT_LENGTH = 4


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in clear text: for signing, and to be shown once."""

    key: bytes = field(repr=False)

    @property
    def text(self) -> str:
        return PREFIX + base64.b64encode(self.key).decode()

    @property
    def hint(self) -> str:
        """The last characters, to distinguish secrets; the rest is too long to be guessed."""
        return f"…{self.text.rstrip('=')[-_HINT_LENGTH:]}"


def make_secret() -> Secret:
    return Secret(secrets.token_bytes(_GENERATED_SECRET_BYTES))


def read_secret(text: str) -> Secret:
    """Parse a user's own secret; raises ``SecretInvalid``."""
    body = text.removeprefix(PREFIX)
    try:
        key = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise SecretInvalid(field="secret") from None
    if body == text or not _MIN_SECRET_BYTES <= len(key) <= _MAX_SECRET_BYTES:
        raise SecretInvalid(field="secret")
    return Secret(key)


def seal(keyring: Keyring, endpoint_id: str, secret: Secret) -> str:
    return keyring.seal(secret.key, binding=_binding(endpoint_id))


def unseal(keyring: Keyring, endpoint_id: str, sealed: str) -> Secret:
    return Secret(keyring.open(sealed, binding=_binding(endpoint_id)))


def keyring_of(current: bytes, old: tuple[bytes, ...] = ()) -> Keyring:
    """The keyring of the settings' keys, which may have any length."""
    return Keyring(_derive(current), tuple(_derive(value) for value in old))


def _derive(value: bytes) -> bytes:
    """A key for this purpose alone: it reveals nothing about other keys derived from the same value."""
    return hmac.digest(value, b"headrace/webhooks.secrets", "sha256")


def _binding(endpoint_id: str) -> bytes:
    return f"webhook_endpoints/{endpoint_id}".encode()
