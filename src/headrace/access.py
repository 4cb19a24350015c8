"""Who is calling, and what they may do: what services, routes and commands of every package know of identity.

Authentication itself belongs to ``accounts``; the app factory hands it in as ``Services.authenticate``, so that every
package can ask who is calling without knowing accounts. ``edge.authorization`` has the dependencies of routes that ask.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from headrace.audit import Who
from headrace.database import Database
from headrace.errors import Conflict, Denied


class ScopeMissing(Denied):
    """This API key was not given the scope that this needs."""

    code = "scope_missing"


class AdminOnly(Denied):
    """Only an administrator may do this."""

    code = "admin_only"


class PreconditionFailed(Conflict):
    """It has changed since you read it: read it again, then decide."""

    code = "precondition_failed"


def check_version(version: int, expected: int | None) -> None:
    """The check behind ``If-Match``, for services: they know versions, and nothing of HTTP."""
    if expected is not None and version != expected:
        raise PreconditionFailed(version=version)


class Role(StrEnum):
    USER = "USER"
    ADMIN = "ADMIN"


class Scope(StrEnum):
    """What an API key may do; a session may do all that its user may."""

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


# Scopes that name task types: `tasks:submit:report.build`, or all that begin alike, `tasks:submit:report.*`. It may
# also be a name of its own, which types ask for (``submit="tasks:submit:finance"``).
SUBMIT_SCOPE = "tasks:submit:"
TYPE_SCOPE = r"tasks:submit:[A-Za-z][A-Za-z0-9_.:-]{0,200}\*?"
_TYPE_SCOPE = re.compile(TYPE_SCOPE)


def is_type_scope(text: str) -> bool:
    return _TYPE_SCOPE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Caller:
    """A known user behind a request. ``scopes`` is None for a session, which is not narrowed."""

    who: Who
    user_id: str
    role: Role
    scopes: frozenset[str] | None = None
    session_id: str | None = None
    api_key_id: str | None = None

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
    """What the request offers as proof; at most one of the two is used, the bearer token first."""

    bearer: str | None = field(repr=False)
    cookie: str | None = field(repr=False)
    csrf: str | None = field(repr=False)  # needed beside a cookie when the method changes something


Authenticate = Callable[[Database, Who, Credentials, bool], Awaitable[Caller]]
"""(db, who, credentials, changes_something) → Caller, or raises Unauthenticated / Denied."""
