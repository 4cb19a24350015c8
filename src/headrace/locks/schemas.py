"""Locks as they are sent and shown."""

from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from headrace.edge.text import Line, Text
from headrace.edge.vocabulary import AsShown
from headrace.locks.model import LONGEST_KEY, LONGEST_NOTE, LONGEST_TTL, Grant, Lock, LockState

_AT = "2026-06-01T12:00:00Z"
_LONGEST_WAIT_S = 30

Key = Annotated[Line, Field(min_length=1, max_length=LONGEST_KEY, examples=["reports/monthly"])]
Ttl = Annotated[
    float,
    Field(ge=1, le=LONGEST_TTL.total_seconds(), description="For how long, unless it is renewed.", examples=[30]),
]
Token = Annotated[Text, Field(min_length=1, max_length=255, description="As it was given when the lock was taken.")]
_Note = Annotated[Text | None, Field(min_length=1, max_length=LONGEST_NOTE)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AcquireIn(_Body):
    key: Key
    ttl_seconds: Ttl = 30
    purpose: Annotated[_Note, Field(description="What for; for whoever wants to know who is in the way.")] = None
    holder: Annotated[_Note, Field(description="Who; the id of the API key or session by default.")] = None
    wait_seconds: Annotated[
        float, Field(ge=0, le=_LONGEST_WAIT_S, description="How long to wait for it if somebody has it.")
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
    user_id: Annotated[Text | None, Field(max_length=64, description="Whose lock; your own by default.")] = None


class LockOut(BaseModel):
    """One holding of a lock: who holds or held it, and since when."""

    key: str = Field(examples=["reports/monthly"])
    user_id: str = Field(description="Whose lock it is.", examples=["u_01h455vb4pex5vsknk084sn02q"])
    fence: int = Field(description="Larger than that of every holding of this key before.", examples=[7])
    holder: str = Field(examples=["host-3:4711"])
    status: AsShown[LockState]
    purpose: str | None
    acquired_at: datetime = Field(examples=[_AT])
    expires_at: datetime = Field(examples=[_AT])
    released_at: datetime | None
    remaining_seconds: float = Field(description="Until it expires; 0 for one that has ended.")

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
    """A lock that was taken just now."""

    token: str = Field(description="Shown only now; renewing and releasing ask for it.")

    @classmethod
    def granted(cls, grant: Grant) -> Self:
        return cls(**LockOut.of(grant.lock).model_dump(), token=grant.token)
