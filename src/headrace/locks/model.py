"""A lock as it is stored, asked for and granted."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from headrace import ids
from headrace.locks.errors import LockInvalid

LONGEST_KEY = 255
LONGEST_NOTE = 255
LONGEST_TTL = timedelta(days=1)


class LockState(StrEnum):
    """active → released | expired, and nothing leads back: the next holder is the next row."""

    ACTIVE = "active"
    EXPIRED = "expired"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class Lock:
    """One holding of a lock, present or past. One whose time is over shows as expired, whatever its row still says."""

    id: int
    user_id: str
    lock_key: str
    fence: int
    holder_id: str
    state: LockState
    purpose: str | None
    acquired_at: datetime
    expires_at: datetime
    released_at: datetime | None
    remaining: timedelta  # until expires_at, by the database's clock


@dataclass(frozen=True, slots=True)
class Grant:
    """A lock that was just taken, and the token that only its holder has."""

    lock: Lock
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Claim:
    """A wish for a lock. The key is a name among its owner's: two owners never meet at one key."""

    key: str
    holder: str
    ttl: timedelta
    purpose: str | None = None
    user_id: str = ids.SYSTEM_USER

    def __post_init__(self) -> None:
        _check_text("key", self.key, LONGEST_KEY)
        _check_text("holder", self.holder, LONGEST_NOTE)
        if self.purpose is not None:
            _check_text("purpose", self.purpose, LONGEST_NOTE)
        check_ttl(self.ttl)


def check_ttl(ttl: timedelta) -> None:
    if not timedelta(0) < ttl <= LONGEST_TTL:
        raise LockInvalid("A lock is taken for more than no time and at most a day; renew it to keep it.", field="ttl")


def _check_text(name: str, text: str, longest: int) -> None:
    if not text or len(text) > longest or "\0" in text:
        raise LockInvalid(f"The {name} of a lock has 1 to {longest} characters.", field=name)
