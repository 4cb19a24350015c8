"""Routes of accounts."""

from fastapi import Depends, Request

from headrace.accounts.routes import admin, api_keys, auth, deletion, recovery, second_factor, sessions, user_access
from headrace.accounts.service import Accounts
from headrace.edge.bodies import body_at_most
from headrace.edge.routing import Router

# Two passwords of 1,024 characters, each written as a pair of \\u escapes, and some room.
_MAX_BODY_BYTES = 32 * 1024


def create_router(accounts: Accounts) -> Router:
    """All routes of this package."""

    async def give(request: Request) -> None:
        request.state.accounts = accounts

    router = Router(prefix="/v1", dependencies=[Depends(give), Depends(body_at_most(_MAX_BODY_BYTES))])
    router.include(
        auth.router,
        recovery.router,
        second_factor.router,
        sessions.router,
        api_keys.router,
        deletion.router,
        admin.router,
        user_access.router,
        deletion.admin_router,
    )
    return router
