"""The caller and its permissions, as services, routes and commands of every package see them.

Authentication itself belongs to ``accounts``; the app factory receives it as ``Services.authenticate``, so that
packages need not import accounts. ``edge.authorization`` has the dependencies for routes.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from headrace.audit import Who
from headrace.database import Database
from headrace.errors import Conflict, Denied


class ScopeMissing(Denied):
    """This API key does not have the required scope."""

    code = "scope_missing"


class AdminOnly(Denied):
    """Only an administrator may do this."""

    code = "admin_only"


class PreconditionFailed(Conflict):
    """It has changed since you read it: read it again, then decide."""

    code = "precondition_failed"


def check_version(version: int, expected: int | None) -> None:
    """The check of ``If-Match`` for services, which know versions but not HTTP."""
    if expected is not None and version != expected:
        raise PreconditionFailed(version=version)


class Role(StrEnum):
    USER = "USER"
    ADMIN = "ADMIN"


class Scope(StrEnum):
    """A permission of an API key; a session has all permissions of its user."""

    ACCOUNT_READ = "account:read"
    ACCOUNT_WRITE = "account:write"
    TASKS_READ = "tasks:read"
    TASKS_WRITE = "tasks:write"
    SCHEDULES_READ = "schedules:read"
    SCHEDULES_WRITE = "schedules:write"
    LOCKS_READ = "locks:read"
    LOCKS_WRITE = "locks:write"
    WEBHOOKS_READ = "webhooks:read"
    WEBHOOKS_WRITE = "webhooks:write"
    NOTIFICATIONS_READ = "notifications:read"
    NOTIFICATIONS_WRITE = "notifications:write"
    FILES_READ = "files:read"
    FILES_WRITE = "files:write"
    AUDIT_READ = "audit:read"
    BILLING_READ = "billing:read"
    BILLING_WRITE = "billing:write"
    ADMIN = "admin"


# Scopes that name task types: `tasks:submit:report.build`, or all with a prefix, `tasks:submit:report.*`. It may
# also be a free name, which types require (``submit="tasks:submit:finance"``).
SUBMIT_SCOPE = "tasks:submit:"
TYPE_SCOPE = r"tasks:submit:[A-Za-z][A-Za-z0-9_.:-]{0,200}\*?"
_TYPE_SCOPE = re.compile(TYPE_SCOPE)


def is_type_scope(text: str) -> bool:
    return _TYPE_SCOPE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One request per ``interval`` on average; at most ``window`` may be used up at once."""

    interval: timedelta
    window: timedelta


@dataclass(frozen=True, slots=True)
class Count:
    """How far a request's count has used up its user's window: ``taken`` with it, or ``before`` it if it was refused.
    Neither is known where the database could not count it."""

    taken: timedelta | None = None
    before: timedelta | None = None
    known: bool = True


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated user of a request. ``scopes`` is None for a session, which is not limited.

    ``count`` is None if the authentication has not counted the request against the user's rate limit.
    """

    who: Who
    user_id: str
    role: Role
    scopes: frozenset[str] | None = None
    session_id: str | None = None
    api_key_id: str | None = None
    count: Count | None = None

    def may(self, scope: Scope) -> bool:
        return self.scopes is None or scope in self.scopes

    @property
    def type_scopes(self) -> frozenset[str]:
        """The scopes of an API key that name task types."""
        return frozenset(scope for scope in self.scopes or () if scope.startswith(SUBMIT_SCOPE))

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN and self.may(Scope.ADMIN)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a request; at most one of the two is used, the bearer token first.

    With a ``limit`` the statement that finds the user counts the request as well.
    """

    bearer: str | None = field(repr=False)
    cookie: str | None = field(repr=False)
    csrf: str | None = field(repr=False)  # needed beside a cookie when the method changes something
    limit: RateLimit | None = field(default=None, compare=False)


Authenticate = Callable[[Database, Who, Credentials, bool], Awaitable[Caller]]
"""(db, who, credentials, changes_something) → Caller, or raises Unauthenticated / Denied."""
