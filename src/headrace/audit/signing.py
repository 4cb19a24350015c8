"""Ed25519 signatures of the chain of seals: without the key, the database's owner cannot forge another history."""

import base64
import binascii
from typing import Any

from headrace import extras

_SIZE = 32


def _ed25519() -> Any:
    """Loaded at the first key: a worker that signs nothing needs no cryptography."""
    return extras.load("cryptography.hazmat.primitives.asymmetric.ed25519", extra="server")


class SigningKey:
    """The deployment's signing key: 32 secret bytes."""

    def __init__(self, seed: bytes) -> None:
        self._key = _ed25519().Ed25519PrivateKey.from_private_bytes(seed)
        self.public: bytes = self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        signature: bytes = self._key.sign(message)
        return signature


def is_signed(message: bytes, signature: bytes, public: bytes) -> bool:
    ed25519 = _ed25519()
    from cryptography.exceptions import InvalidSignature

    try:
        ed25519.Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def read_key(text: str) -> bytes:
    """Parse a key of settings and files: 32 bytes in base64. ``ValueError`` otherwise."""
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        key = b""
    if len(key) != _SIZE:
        raise ValueError("a key is 32 bytes in base64: `openssl rand -base64 32` makes one")
    return key


def write_key(key: bytes) -> str:
    return base64.b64encode(key).decode()
