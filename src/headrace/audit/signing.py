"""Ed25519 signatures of the chain of seals: without the key, the database's owner cannot forge another history."""

import base64
import binascii

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_SIZE = 32


class SigningKey:
    """The deployment's signing key: 32 secret bytes."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)


def is_signed(message: bytes, signature: bytes, public: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
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
