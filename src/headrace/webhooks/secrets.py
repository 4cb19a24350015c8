"""Secrets of endpoints: made, taken in, encrypted. Written out they are ``whsec_`` and base64, as Standard Webhooks has
it; what is stored is encrypted and bound to the endpoint."""

import base64
import binascii
import hmac
import secrets
from dataclasses import dataclass, field

from headrace.vault import Keyring
from headrace.webhooks.errors import SecretInvalid

PREFIX = "whsec_"
_MADE_BYTES = 32
_FEWEST_BYTES, _MOST_BYTES = 24, 64
_HINT_LETTERS = 4


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in the open: for signing, and to be shown once."""

    key: bytes = field(repr=False)

    @property
    def text(self) -> str:
        return PREFIX + base64.b64encode(self.key).decode()

    @property
    def hint(self) -> str:
        """Its last letters, to tell secrets apart; what is left is far too long to be guessed."""
        return f"…{self.text.rstrip('=')[-_HINT_LETTERS:]}"


def make_secret() -> Secret:
    return Secret(secrets.token_bytes(_MADE_BYTES))


def read_secret(text: str) -> Secret:
    """A secret that somebody brings along; ``SecretInvalid`` if it is none."""
    body = text.removeprefix(PREFIX)
    try:
        key = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise SecretInvalid(field="secret") from None
    if body == text or not _FEWEST_BYTES <= len(key) <= _MOST_BYTES:
        raise SecretInvalid(field="secret")
    return Secret(key)


def seal(keyring: Keyring, endpoint_id: str, secret: Secret) -> str:
    return keyring.seal(secret.key, binding=_binding(endpoint_id))


def unseal(keyring: Keyring, endpoint_id: str, sealed: str) -> Secret:
    return Secret(keyring.open(sealed, binding=_binding(endpoint_id)))


def keyring_of(current: bytes, old: tuple[bytes, ...] = ()) -> Keyring:
    """From the values of settings, which may be of any length."""
    return Keyring(_derive(current), tuple(_derive(value) for value in old))


def _derive(value: bytes) -> bytes:
    """A key for this purpose alone: who learns it learns nothing of others that are made of the same value."""
    return hmac.digest(value, b"headrace/webhooks.secrets", "sha256")


def _binding(endpoint_id: str) -> bytes:
    return f"webhook_endpoints/{endpoint_id}".encode()
