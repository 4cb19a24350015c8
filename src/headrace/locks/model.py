"""Types of locks."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from headrace import ids
from headrace.locks.errors import LockInvalid

MAX_KEY_LENGTH = 255
MAX_NOTE_LENGTH = 255
MAX_TTL = timedelta(days=1)


class LockState(StrEnum):
    """active → released | expired, both final: the next holder gets a new row."""

    ACTIVE = "active"
    EXPIRED = "expired"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class Lock:
    """One holding of a lock, present or past. After ``expires_at`` it reads as expired, even if the row says active."""

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
    """A new holding, with the token that only its holder has."""

    lock: Lock
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Claim:
    """A request for a lock. Keys are per owner: two owners never compete for one key."""

    key: str
    holder: str
    ttl: timedelta
    purpose: str | None = None
    user_id: str = ids.SYSTEM_USER

    def __post_init__(self) -> None:
        _check_text("key", self.key, MAX_KEY_LENGTH)
        _check_text("holder", self.holder, MAX_NOTE_LENGTH)
        if self.purpose is not None:
            _check_text("purpose", self.purpose, MAX_NOTE_LENGTH)
        check_ttl(self.ttl)


def check_ttl(ttl: timedelta) -> None:
    if not timedelta(0) < ttl <= MAX_TTL:
        raise LockInvalid("The TTL of a lock is more than 0 and at most a day; renew it to keep it.", field="ttl")


def _check_text(name: str, text: str, longest: int) -> None:
    if not text or len(text) > longest or "\0" in text:
        raise LockInvalid(f"The {name} of a lock has 1 to {longest} characters.", field=name)
