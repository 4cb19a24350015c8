"""The keys of one bucket: from its settings, from the environment, or from AWS.

AWS's own chain (profiles, web identity, container and instance roles) is botocore's. Its keys expire and are renewed.
Everything that signs takes them from one source: whole objects, parts, and links.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.extras import is_installed
from headrace.storage.errors import StorageRefused
from headrace.storage.signing import MAX_EXPIRY, Credentials

_NONE_FOR_S = 30.0
_REUSE = timedelta(minutes=5)  # botocore decides whether they are renewed


@dataclass(frozen=True, slots=True)
class Current:
    """Keys, and how long they are valid from now; None for keys without an end."""

    credentials: Credentials
    valid_for: timedelta | None = None


class CredentialSource:
    """Looks the keys up when they are first needed: an instance role is a request over the network."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._fixed = _fixed(options)
        self._session: Any = None
        self._found: Any = None
        self._turn = asyncio.Lock()
        self._none_until = 0.0  # by the monotonic clock: where there are no keys, the chain takes seconds to say so

    @property
    def is_fixed(self) -> bool:
        """Whether the keys are in the settings or the environment, and never change."""
        return self._fixed is not None

    @property
    def knows_roles(self) -> bool:
        """Whether botocore is installed to ask AWS for keys."""
        return not self.is_fixed and is_installed("botocore")

    async def current(self) -> Current | None:
        """The keys at this moment; None if there are none, or botocore is missing to ask for them."""
        if self._fixed is not None:
            return Current(self._fixed)
        if not self.knows_roles or time.monotonic() < self._none_until:
            return None
        async with self._turn:
            return await asyncio.to_thread(self._ask)

    async def for_obstore(self) -> dict[str, Any]:
        """The keys as obstore asks for them: it asks again when they expire."""
        current = await self.current()
        if current is None:
            raise PermissionError("No AWS credentials were found: no keys, profile, web identity or role.")
        keys = current.credentials
        until = datetime.now(UTC) + min(_REUSE, current.valid_for or _REUSE)
        return {
            "access_key_id": keys.access_key,
            "secret_access_key": keys.secret_key,
            "token": keys.token,
            "expires_at": until,
        }

    def _ask(self) -> Current | None:
        from botocore import exceptions  # slow to import, and only needed without keys in the settings
        from botocore.session import Session

        try:
            if self._found is None:
                self._session = self._session or Session()
                self._found = self._session.get_credentials()
            if self._found is None:
                self._none_until = time.monotonic() + _NONE_FOR_S
                return None
            frozen = self._found.get_frozen_credentials()
        except (exceptions.BotoCoreError, exceptions.ClientError) as exc:
            self._found = None
            raise StorageRefused(f"AWS gives no credentials: {str(exc).partition(chr(10))[0][:300]}") from None
        return Current(Credentials(frozen.access_key, frozen.secret_key, frozen.token), _valid_for(self._found))


def region_of(options: Mapping[str, str]) -> str:
    """The bucket's region: of the settings, the environment or the profile."""
    named = options.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if named:
        return named
    if not _fixed(options) and is_installed("botocore") and "AWS_PROFILE" in os.environ:
        from botocore.session import Session

        return Session().get_config_variable("region") or "us-east-1"
    return "us-east-1"


def _fixed(options: Mapping[str, str]) -> Credentials | None:
    if "access_key_id" in options and "secret_access_key" in options:
        return Credentials(options["access_key_id"], options["secret_access_key"])
    access, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    return Credentials(access, secret, os.environ.get("AWS_SESSION_TOKEN")) if access and secret else None


def _valid_for(found: Any) -> timedelta | None:
    """How long the keys are valid. botocore only answers whether they expire within some seconds."""
    ask = getattr(found, "refresh_needed", None)
    longest = int(MAX_EXPIRY.total_seconds())
    if ask is None or not ask(longest):
        return None
    low, high = 0, longest  # they do not expire within `low`, and do within `high`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if ask(middle) else (middle, high)
    return timedelta(seconds=low)
