"""Who is calling, as annotated types for the parameters of routes.

>>> async def me(caller: SignedIn, db: Db) -> UserOut: ...
>>> async def register(who: Anyone, db: Db) -> UserOut: ...
>>> ReadsTasks = Annotated[Caller, Depends(scoped(Scope.TASKS_READ))]

Each counts the request against the caller's rate limit: a known user's own, everybody else's by address. A request
with a wrong credential counts by address too, so that guessing tokens is slow.
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
    """The cookie as OpenAPI describes it; its real name depends on whether people come by https."""

    def __init__(self) -> None:
        self.model = APIKey(
            **{"in": APIKeyIn.cookie},  # a keyword of Python
            name="headrace_session",
            description="A person's session.",
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
    # FastAPI runs a dependency once for a request, however many others ask for it.
    facts = facts_of(request)
    try:
        caller = await _authenticate(request, bearer, cookie)
    except Denied:
        await _count(request, facts)
        raise
    facts.caller = caller
    await _count(request, facts)
    return caller


async def _authenticate(request: Request, bearer: HTTPAuthorizationCredentials | None, cookie: str | None) -> Caller:
    services = services_of(request)
    credentials = Credentials(bearer.credentials if bearer else None, cookie, request.headers.get(CSRF_HEADER))
    if credentials.bearer is None and credentials.cookie is None:
        raise Unauthenticated
    return await services.authenticate(
        services.db, facts_of(request).anonymous(), credentials, request.method not in _SAFE_METHODS
    )


AuthenticateAgain = Callable[[], Awaitable[Caller]]
"""The caller as they are now, or the error that they would be refused with."""


async def _again(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    cookie: Annotated[str | None, Depends(_session)],
) -> AuthenticateAgain:
    return lambda: _authenticate(request, bearer, cookie)


async def _maybe_signed_in(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    cookie: Annotated[str | None, Depends(_session)],
) -> Caller | None:
    if bearer is None and cookie is None:
        await _count(request, facts_of(request))
        return None
    return await _signed_in(request, bearer, cookie)


async def _anyone(request: Request) -> Who:
    facts = facts_of(request)
    await _count(request, facts)
    return facts.anonymous()


async def _count(request: Request, facts: Facts) -> None:
    limiter = request.app.state.limiter
    assert isinstance(limiter, Limiter)
    user_id = facts.caller.user_id if facts.caller else None
    facts.allowance = await limiter.check(bucket_of(user_id=user_id, client_ip=facts.client_ip))


SignedIn = Annotated[Caller, Depends(_signed_in)]
"""A user with a session or an API key, whatever its scopes."""

Anyone = Annotated[Who, Depends(_anyone)]
"""Nobody in particular: for what comes before an account is known, such as registering and logging in."""


MaybeCaller = Annotated[Caller | None, Depends(_maybe_signed_in)]
"""A user if the request says which, otherwise nobody in particular. A wrong credential is refused all the same."""


Again = Annotated[AuthenticateAgain, Depends(_again)]
"""For answers that go on: whoever is shown something later must still be allowed to see it. It is no new request, so it
does not count against the rate limit."""


async def _own_turn(request: Request, caller: SignedIn) -> AbstractAsyncContextManager[None]:
    return services_of(request).turns.of(caller.user_id)


OwnTurn = Annotated[AbstractAsyncContextManager[None], Depends(_own_turn)]
"""The caller's turn at a change that locks their units: to be entered before the transaction begins."""


async def _admin(caller: SignedIn) -> Caller:
    if not caller.is_admin:
        raise AdminOnly
    return caller


Admin = Annotated[Caller, Depends(_admin)]
"""An administrator; with an API key only if it has the scope ``admin``."""


@cache
def scoped(scope: Scope) -> Callable[[Caller], Awaitable[Caller]]:
    """The dependency that lets a session in, and an API key only if it was given this scope."""

    async def has_scope(caller: SignedIn) -> Caller:
        if not caller.may(scope):
            raise ScopeMissing(f"This API key was not given the scope {scope}.", scope=scope.value)
        return caller

    return has_scope
