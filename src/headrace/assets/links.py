"""Links that let their holder read a file until they expire: the storage's own, or ours.

Ours is a token: its target and expiry, with a MAC over both under a key that only the API has. It names the row
and not the bytes, so that a deleted file's links are dead at once.
"""

import base64
import binascii
import hmac
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from headrace import clock
from headrace.assets.errors import LinkInvalid

_MAC = 16
_REMEMBERED = 10_000
_REMEMBERED_FOR_S = 3600.0


class Target(StrEnum):
    """What a link leads to."""

    CONTENT = "c"
    PREVIEW = "p"
    RESULT = "r"
    RESULT_PREVIEW = "q"

    @property
    def is_of_task(self) -> bool:
        return self in (Target.RESULT, Target.RESULT_PREVIEW)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token allows."""

    target: Target
    id: str  # of the file, or of the task
    expires_at: datetime
    inline: bool = False


class Readers:
    """The recent readers of links. A player requests one range after the other, and the trail records it once;
    regardless of the first range, or a reader that begins at the second byte would leave no trace."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], float] = {}  # the oldest first

    def is_new(self, reader: tuple[str, str]) -> bool:
        """Whether this one was not here within the hour."""
        at = self._seen.get(reader)
        return at is None or time.monotonic() - at > _REMEMBERED_FOR_S

    def note(self, reader: tuple[str, str]) -> None:
        """It is in the trail."""
        self._seen.pop(reader, None)
        self._seen[reader] = time.monotonic()
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]


def seal(key: bytes, grant: Grant) -> str:
    payload = f"{grant.target}{'i' if grant.inline else 'a'}{int(grant.expires_at.timestamp())}.{grant.id}".encode()
    return base64.urlsafe_b64encode(hmac.digest(key, payload, "sha256")[:_MAC] + payload).rstrip(b"=").decode()


def unseal(key: bytes, token: str, *, now: float | None = None) -> Grant:
    """The permission of a token; ``LinkInvalid`` for one that is forged, altered or expired, without saying which."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        mac, payload = raw[:_MAC], raw[_MAC:]
        if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != token:
            raise LinkInvalid  # another spelling of the same bits: one link is one text
        if not hmac.compare_digest(mac, hmac.digest(key, payload, "sha256")[:_MAC]):
            raise LinkInvalid
        text = payload.decode()
        seconds, _, row_id = text[2:].partition(".")
        grant = Grant(Target(text[0]), row_id, datetime.fromtimestamp(int(seconds), tz=UTC), inline=text[1] == "i")
    except (binascii.Error, ValueError, UnicodeDecodeError):
        raise LinkInvalid from None
    if grant.expires_at.timestamp() <= (clock.now().timestamp() if now is None else now):
        raise LinkInvalid
    return grant
