"""Accounts over HTTP."""

from fastapi import APIRouter, Depends, Request

from headrace.accounts.routes import admin, api_keys, auth, sessions
from headrace.accounts.service import Accounts


def create_router(accounts: Accounts) -> APIRouter:
    """Every route of this package, served with these accounts."""

    async def give(request: Request) -> None:
        request.state.accounts = accounts

    router = APIRouter(prefix="/v1", dependencies=[Depends(give)])
    for part in (auth.router, sessions.router, api_keys.router, admin.router):
        router.include_router(part)
    return router
