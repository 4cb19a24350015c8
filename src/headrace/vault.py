"""Secrets that must be read again are kept under AES-GCM, bound to where they belong."""

import base64
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from headrace.errors import Conflict

_NONCE = 12


class SecretUnreadable(Conflict):
    """This was encrypted under another secret key."""

    code = "secret_unreadable"


class Vault:
    """Encrypts and decrypts with one key. ``binding`` names the row: moved to another one, it cannot be read."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, secret: bytes, *, binding: bytes) -> str:
        nonce = os.urandom(_NONCE)
        return base64.b64encode(nonce + self._cipher.encrypt(nonce, secret, binding)).decode()

    def open(self, sealed: str, *, binding: bytes) -> bytes:
        raw = base64.b64decode(sealed)
        try:
            return self._cipher.decrypt(raw[:_NONCE], raw[_NONCE:], binding)
        except InvalidTag:
            raise SecretUnreadable from None
