"""Encrypts stored secrets with AES-GCM, bound to their row."""

import base64
import hashlib
import hmac
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from headrace import extras
from headrace.errors import Conflict

_NONCE = 12


class SecretUnreadable(Conflict):
    """This was encrypted under another secret key."""

    code = "secret_unreadable"


def derive_key(secret: bytes, purpose: str) -> bytes:
    """Derive a key for one purpose from the deployment's secret."""
    return hmac.digest(secret, f"headrace/{purpose}".encode(), "sha256")


class Vault:
    """Encrypts and decrypts with one key. ``binding`` names the row: in another row it cannot be decrypted."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @cached_property
    def _cipher(self) -> Any:
        # Loaded with the first secret: of most workers none comes, and cryptography takes 10 MB.
        return extras.load("cryptography.hazmat.primitives.ciphers.aead", extra="server").AESGCM(self._key)

    def seal(self, secret: bytes, *, binding: bytes) -> str:
        nonce = os.urandom(_NONCE)
        return base64.b64encode(nonce + self._cipher.encrypt(nonce, secret, binding)).decode()

    def open(self, sealed: str, *, binding: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        raw = base64.b64decode(sealed)
        try:
            opened: bytes = self._cipher.decrypt(raw[:_NONCE], raw[_NONCE:], binding)
            return opened
        except InvalidTag:
            raise SecretUnreadable from None


class Keyring:
    """Several keys, one of which encrypts: texts under older keys are readable and can be encrypted again.

    Each text names its key, so that a missing key is reported as such.
    """

    def __init__(self, current: bytes, old: Sequence[bytes] = ()) -> None:
        self._current = _key_id(current)
        self._vaults = {_key_id(key): Vault(key) for key in (*old, current)}

    def seal(self, secret: bytes, *, binding: bytes) -> str:
        return f"{self._current}.{self._vaults[self._current].seal(secret, binding=binding)}"

    def open(self, sealed: str, *, binding: bytes) -> bytes:
        """``SecretUnreadable`` when its key is missing, or the text was moved or changed."""
        key_id, _, text = sealed.partition(".")
        if (vault := self._vaults.get(key_id)) is None:
            raise SecretUnreadable("This was encrypted with a key that is no longer configured.", key_id=key_id)
        return vault.open(text, binding=binding)

    def is_current(self, sealed: str) -> bool:
        return sealed.startswith(f"{self._current}.")


def _key_id(key: bytes) -> str:
    """An identifier of the key that reveals nothing about it."""
    return hashlib.sha256(b"headrace/key-id" + key).hexdigest()[:8]
