"""The caller of a request, as annotated types for parameters of routes.

>>> async def me(caller: SignedIn, db: Db) -> UserOut: ...
>>> async def register(who: Anyone, db: Db) -> UserOut: ...
>>> ReadsTasks = Annotated[Caller, Depends(scoped(Scope.TASKS_READ))]

Each counts the request against the caller's rate limit: that of the user, or of the address if unauthenticated. A
request with a wrong credential counts by address as well, so that guessing tokens is slow.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Annotated

from fastapi import Depends, Request
from fastapi.openapi.models import APIKey, APIKeyIn
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.base import SecurityBase

from headrace.access import AdminOnly, Caller, Credentials, Scope, ScopeMissing
from headrace.audit import Who
from headrace.edge.cookies import CSRF_HEADER, session_token
from headrace.edge.facts import Facts, facts_of
from headrace.edge.limits import Limiter, bucket_of
from headrace.edge.services import services_of
from headrace.errors import Denied, Unauthenticated

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class _SessionCookie(SecurityBase):
    """The session cookie in OpenAPI; its real name depends on whether the site uses https."""

    def __init__(self) -> None:
        self.model = APIKey(
            **{"in": APIKeyIn.cookie},  # a keyword of Python
            name="headrace_session",
            description="A user's session.",
        )
        self.scheme_name = "session"

    async def __call__(self, request: Request) -> str | None:
        return session_token(request, services_of(request).cookies)


_bearer = HTTPBearer(scheme_name="bearer", description="An API key.", auto_error=False)
_session = _SessionCookie()


async def _signed_in(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    cookie: Annotated[str | None, Depends(_session)],
) -> Caller:
    # FastAPI runs a dependency once for a request, for all that depend on it.
    facts = facts_of(request)
    try:
        caller = await _authenticate(request, bearer, cookie, counts=True)
    except Denied:
        await _count(request, facts)
        raise
    facts.caller = caller
    if caller.count is None:
        await _count(request, facts)
    else:
        facts.allowance = _limiter(request).judge(caller.count)
    return caller


async def _authenticate(
    request: Request, bearer: HTTPAuthorizationCredentials | None, cookie: str | None, *, counts: bool = False
) -> Caller:
    services = services_of(request)
    credentials = Credentials(
        bearer.credentials if bearer else None,
        cookie,
        request.headers.get(CSRF_HEADER),
        _limiter(request).rate if counts else None,
    )
    if credentials.bearer is None and credentials.cookie is None:
        raise Unauthenticated
    return await services.authenticate(
        services.db, facts_of(request).anonymous(), credentials, request.method not in _SAFE_METHODS
    )


AuthenticateAgain = Callable[[], Awaitable[Caller]]
"""Authenticates the caller again: returns the present caller, or raises the refusal."""


async def _authenticate_again(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    cookie: Annotated[str | None, Depends(_session)],
) -> AuthenticateAgain:
    return lambda: _authenticate(request, bearer, cookie)


async def _optional_caller(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    cookie: Annotated[str | None, Depends(_session)],
) -> Caller | None:
    if bearer is None and cookie is None:
        await _count(request, facts_of(request))
        return None
    return await _signed_in(request, bearer, cookie)


async def _anonymous(request: Request) -> Who:
    facts = facts_of(request)
    await _count(request, facts)
    return facts.anonymous()


async def _count(request: Request, facts: Facts) -> None:
    user_id = facts.caller.user_id if facts.caller else None
    facts.allowance = await _limiter(request).check(bucket_of(user_id=user_id, client_ip=facts.client_ip))


def _limiter(request: Request) -> Limiter:
    limiter = request.app.state.limiter
    assert isinstance(limiter, Limiter)
    return limiter


SignedIn = Annotated[Caller, Depends(_signed_in)]
"""A user with a session or an API key, with any scopes."""

Anyone = Annotated[Who, Depends(_anonymous)]
"""An unauthenticated request: for routes before a login, such as registration and login."""


MaybeCaller = Annotated[Caller | None, Depends(_optional_caller)]
"""The user, or None without credentials. A wrong credential is refused."""


Again = Annotated[AuthenticateAgain, Depends(_authenticate_again)]
"""For streaming answers: checks again that the caller may still read them. It is not a new request, so it does not
count against the rate limit."""


async def _own_turn(request: Request, caller: SignedIn) -> AbstractAsyncContextManager[None]:
    return services_of(request).turns.of(caller.user_id)


OwnTurn = Annotated[AbstractAsyncContextManager[None], Depends(_own_turn)]
"""The caller's turn for a change that locks their units: enter it before the transaction begins."""


async def _admin(caller: SignedIn) -> Caller:
    if not caller.is_admin:
        raise AdminOnly
    return caller


Admin = Annotated[Caller, Depends(_admin)]
"""An administrator; with an API key only if it has the scope ``admin``."""


@cache
def scoped(scope: Scope) -> Callable[[Caller], Awaitable[Caller]]:
    """The dependency that admits sessions, and API keys with this scope."""

    async def has_scope(caller: SignedIn) -> Caller:
        if not caller.may(scope):
            raise ScopeMissing(f"This API key does not have the scope {scope}.", scope=scope.value)
        return caller

    return has_scope
