"""Routes of the caller's API keys."""

from typing import Annotated

from fastapi import Depends, Response

from headrace.accounts import api_keys
from headrace.accounts.errors import (
    ApiKeyNameTaken,
    ApiKeyNotFound,
    CsrfFailed,
    InvalidExpiry,
    InvalidScopes,
    SessionNeeded,
    TooManyApiKeys,
)
from headrace.accounts.routes.dependencies import Reader, Writer
from headrace.accounts.schemas import ApiKeyIn, ApiKeyMadeOut, ApiKeyOut
from headrace.database import Tx
from headrace.edge.authorization import SignedIn
from headrace.edge.errors import InvalidCursor
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db

router = Router(prefix="/api-keys", tags=["API keys"])

CreateOnce = Annotated[Once, Depends(idempotent("accounts.create_api_key", secret=True))]


@router.post(
    "",
    status_code=201,
    response_model=ApiKeyMadeOut,
    summary="Create an API key",
    responses=problems(InvalidScopes, InvalidExpiry, ApiKeyNameTaken, TooManyApiKeys, SessionNeeded, CsrfFailed, *ONCE),
)
async def create_api_key(body: ApiKeyIn, caller: SignedIn, db: Db, once: CreateOnce) -> Response:
    """Create a key for a program. The key is shown only in this answer.

    A key has the rights of its scopes, and never more than you have; it stops working when you are suspended. Creating
    keys requires a login.
    """
    # Before a stored answer may be repeated, which holds the new key.
    api_keys.refuse_program(caller)

    async def act(tx: Tx) -> Answer:
        made = await api_keys.create_api_key(
            tx, caller, name=body.name.strip(), scopes=body.scopes, expires_at=body.expires_at
        )
        return Answer(ApiKeyMadeOut.made(made), status=201, headers={"Location": f"/v1/api-keys/{made.api_key.id}"})

    return await once.run(db, act)


@router.get("", response_model=Page[ApiKeyOut], summary="List API keys", responses=problems(InvalidCursor))
async def list_api_keys(caller: Reader, db: Db, paging: Paging) -> Page[ApiKeyOut]:
    """Your unrevoked keys, newest first."""
    listing = paging.of("api_keys", owner=caller.user_id)
    async with db.transaction(readonly=True) as tx:
        rows = await api_keys.list_api_keys(tx, caller, older_than=listing.after, limit=listing.fetch)
    return listing.page(rows, mark=lambda key: (key.created_at, key.id), item=ApiKeyOut.of)


@router.get("/{api_key_id}", response_model=ApiKeyOut, summary="Read an API key", responses=problems(ApiKeyNotFound))
async def get_api_key(api_key_id: str, caller: Reader, db: Db) -> ApiKeyOut:
    """One of your keys, without the key itself."""
    async with db.transaction(readonly=True) as tx:
        return ApiKeyOut.of(await api_keys.get_api_key(tx, caller, api_key_id))


@router.delete(
    "/{api_key_id}", status_code=204, summary="Revoke an API key", responses=problems(ApiKeyNotFound, CsrfFailed)
)
async def revoke_api_key(api_key_id: str, caller: Writer, db: Db) -> None:
    """Revoke one of your keys. It stops working at once."""
    async with db.transaction() as tx:
        await api_keys.revoke_api_key(tx, caller, api_key_id)
