"""Request and response bodies of locks."""

from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from headrace.edge.text import Line, Text
from headrace.edge.vocabulary import AsShown
from headrace.locks.model import MAX_KEY_LENGTH, MAX_NOTE_LENGTH, MAX_TTL, Grant, Lock, LockState

_AT = "2026-06-01T12:00:00Z"
_MAX_WAIT_SECONDS = 30

Key = Annotated[Line, Field(min_length=1, max_length=MAX_KEY_LENGTH, examples=["reports/monthly"])]
Ttl = Annotated[
    float,
    Field(
        ge=1, le=MAX_TTL.total_seconds(), description="The time until it expires, unless it is renewed.", examples=[30]
    ),
]
Token = Annotated[
    Text, Field(min_length=1, max_length=255, description="The token of the answer that granted the lock.")
]
_Note = Annotated[Text | None, Field(min_length=1, max_length=MAX_NOTE_LENGTH)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AcquireIn(_Body):
    key: Key
    ttl_seconds: Ttl = 30
    purpose: Annotated[_Note, Field(description="The purpose, shown to others that wait for the lock.")] = None
    holder: Annotated[_Note, Field(description="The holder's name; the id of the API key or session by default.")] = (
        None
    )
    wait_seconds: Annotated[
        float, Field(ge=0, le=_MAX_WAIT_SECONDS, description="How long to wait while the lock is held.")
    ] = 0

    @property
    def ttl(self) -> timedelta:
        return timedelta(seconds=self.ttl_seconds)


class RenewLockIn(_Body):
    key: Key
    token: Token
    ttl_seconds: Ttl = 30


class ReleaseIn(_Body):
    key: Key
    token: Token


class ForceReleaseIn(_Body):
    key: Key
    user_id: Annotated[Text | None, Field(max_length=64, description="The owner of the lock; you by default.")] = None


class LockOut(BaseModel):
    """One holding of a lock, present or past."""

    key: str = Field(examples=["reports/monthly"])
    user_id: str = Field(description="The owner of the lock.", examples=["u_01h455vb4pex5vsknk084sn02q"])
    fence: int = Field(description="Larger than the fence of every earlier holding of this key.", examples=[7])
    holder: str = Field(examples=["host-3:4711"])
    status: AsShown[LockState]
    purpose: str | None
    acquired_at: datetime = Field(examples=[_AT])
    expires_at: datetime = Field(examples=[_AT])
    released_at: datetime | None
    remaining_seconds: float = Field(description="Time until it expires; 0 if it has ended.")

    @classmethod
    def of(cls, lock: Lock) -> Self:
        return cls(
            key=lock.lock_key,
            user_id=lock.user_id,
            fence=lock.fence,
            holder=lock.holder_id,
            status=lock.state,
            purpose=lock.purpose,
            acquired_at=lock.acquired_at,
            expires_at=lock.expires_at,
            released_at=lock.released_at,
            remaining_seconds=lock.remaining.total_seconds() if lock.state is LockState.ACTIVE else 0,
        )


class GrantOut(LockOut):
    """A newly taken lock."""

    token: str = Field(description="Shown only once; required to renew and release.")

    @classmethod
    def granted(cls, grant: Grant) -> Self:
        return cls(**LockOut.of(grant.lock).model_dump(), token=grant.token)
