"""Argon2id in threads, with limited concurrency."""

import asyncio
import base64
import os
import secrets
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, TypeVar

from headrace import extras
from headrace.accounts.config import PasswordConfig
from headrace.accounts.errors import PasswordsBusy

T = TypeVar("T")

_SALT_BYTES = 16
_HASH_BYTES = 32
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # without letters that look alike


class Passwords:
    """Hashes and checks passwords in its own threads, for the lifetime of the process."""

    def __init__(self, config: PasswordConfig) -> None:
        self.config = config
        # Loaded here: commands that check no password need no hashing.
        argon2 = extras.load("argon2", extra="server")
        self._hasher: Any = argon2.PasswordHasher(
            time_cost=config.time_cost,
            memory_cost=config.memory_kib,
            parallelism=config.parallelism,
            hash_len=_HASH_BYTES,
            salt_len=_SALT_BYTES,
            type=argon2.Type.ID,
        )
        self._refusals = (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError)
        self._threads = ThreadPoolExecutor(config.at_once, thread_name_prefix="argon2")
        self._inside = 0
        self._dummy = _dummy_hash(config)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def hash(self, password: str) -> str:
        return await self._in_thread(self._hasher.hash, _bytes(password))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether the password matches the stored hash. Without a hash it takes as long and returns False."""
        return await self._in_thread(self._verify, stored, _bytes(password))

    def _verify(self, stored: str | None, password: bytes) -> bool:
        if stored is None or not stored.startswith("$argon2"):  # `!` is no hash: the system user cannot log in
            stored = self._dummy
        try:
            return bool(self._hasher.verify(stored, password))
        except self._refusals:
            return False

    def needs_rehash(self, stored: str) -> bool:
        """Whether it was made with other parameters than the present ones."""
        return bool(self._hasher.check_needs_rehash(stored))

    async def _in_thread(self, work: Callable[..., T], *args: object) -> T:
        if self._inside >= self.config.at_once + self.config.waiting:
            raise PasswordsBusy(retry_after=timedelta(seconds=2))
        self._inside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)
        finally:
            self._inside -= 1


def generate(config: PasswordConfig) -> str:
    """A password that can be copied by hand: five groups of about 100 bits, more for a longer minimum."""
    groups = max(5, config.min_length // 5 + 1)
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(4)) for _ in range(groups))


def _bytes(password: str) -> bytes:
    # Normalized, because keyboards compose characters such as é differently.
    return unicodedata.normalize("NFC", password).encode(errors="surrogatepass")


def _dummy_hash(config: PasswordConfig) -> str:
    """A hash with the present parameters that no password matches: checking it costs as much as a real check."""
    salt, digest = (base64.b64encode(os.urandom(size)).rstrip(b"=").decode() for size in (_SALT_BYTES, _HASH_BYTES))
    return f"$argon2id$v=19$m={config.memory_kib},t={config.time_cost},p={config.parallelism}${salt}${digest}"
