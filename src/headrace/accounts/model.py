"""Types of users and their credentials."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import NewType

from headrace.access import Role
from headrace.audit import ActorType, Principal, PrincipalType, Who

UserId = NewType("UserId", str)
SessionId = NewType("SessionId", str)
ApiKeyId = NewType("ApiKeyId", str)
DeletionId = NewType("DeletionId", str)


class UserStatus(StrEnum):
    """ACTIVE ⇄ SUSPENDED; DELETED is the end."""

    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class User:
    """A row of users."""

    id: UserId
    username: str | None
    email: str | None
    mobile: str | None
    status: UserStatus
    role: Role
    version: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    last_login_at: datetime | None
    second_factor_at: datetime | None
    password_hash: str | None = field(repr=False)
    wechat_openid: str | None = field(repr=False)

    @property
    def is_active(self) -> bool:
        return self.status is UserStatus.ACTIVE

    def principal(self) -> Principal:
        return Principal(self.id, self.username or "", PrincipalType.USER)

    def acting(self, who: Who) -> Who:
        """The same request with this user as its principal."""
        return who.acting_as(self.principal(), ActorType.ADMIN if self.role is Role.ADMIN else ActorType.USER)


@dataclass(frozen=True, slots=True)
class NewUser:
    """A validated user to store."""

    username: str
    email: str | None
    password_hash: str = field(repr=False)
    role: Role = Role.USER


@dataclass(frozen=True, slots=True)
class Session:
    """A login session."""

    id: SessionId
    user_id: UserId
    client_ip: IPv4Address | IPv6Address | None
    user_agent: str | None
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key, without its secret."""

    id: ApiKeyId
    user_id: UserId
    name: str
    key_hint: str
    scopes: frozenset[str]  # text, because a newer release may have written an unknown scope
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The result of a login. Only a hash of the token is stored."""

    user: User
    session: Session
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ApiKeyMade:
    """A new key; shown once, since only its hash is stored."""

    api_key: ApiKey
    key: str = field(repr=False)


class LinkPurpose(StrEnum):
    PASSWORD_RESET = "PASSWORD_RESET"  # noqa: S105 - a purpose
    EMAIL_CHANGE = "EMAIL_CHANGE"


@dataclass(frozen=True, slots=True)
class Link:
    """A link that was sent by e-mail, without its token."""

    id: str
    user_id: UserId
    purpose: LinkPurpose
    email: str


@dataclass(frozen=True, slots=True)
class NewSecondFactor:
    """A secret that waits for its first code; shown only now."""

    secret: str = field(repr=False)
    uri: str = field(repr=False)


class DeletionStatus(StrEnum):
    """WAITING → RUNNING → COMPLETED; WAITING → CANCELED."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"


@dataclass(frozen=True, slots=True)
class Deletion:
    """A row of account_deletions."""

    id: DeletionId
    user_id: UserId
    requested_by: str
    status: DeletionStatus
    status_before: UserStatus
    due_at: datetime
    steps_done: tuple[str, ...]
    attempt: int
    obstacle: str | None
    started_at: datetime | None
    ended_at: datetime | None
    created_at: datetime

    @property
    def may_undo(self) -> bool:
        """Whether the user can undo it: only an administrator undoes an administrator's request."""
        return self.status is DeletionStatus.WAITING and self.requested_by == self.user_id
