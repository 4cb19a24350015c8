"""API keys, as the API answers their owner: an operator acts for the user who is named."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headrace.access import Caller, Role
from headrace.accounts import administration, api_keys
from headrace.accounts.model import ApiKey
from headrace.accounts.schemas import ApiKeyIn, ApiKeyMadeOut, ApiKeyOut
from headrace.cli.direct.answering import Handler, Request
from headrace.database import Tx

_PAGE = 200


async def list_api_keys(request: Request) -> list[Any]:
    found: list[ApiKey] = []
    mark = None
    async with request.begin() as tx:
        owner = await _owner(tx, request)
        while len(found) < request.limit:
            size = min(_PAGE, request.limit - len(found))
            page = await api_keys.list_api_keys(tx, owner, older_than=mark, limit=size)
            found += page
            if len(page) < size:
                break
            mark = (found[-1].created_at, found[-1].id)
    return [ApiKeyOut.of(each).model_dump(mode="json") for each in found]


async def create_api_key(request: Request) -> Any:
    body = ApiKeyIn.model_validate(request.body)
    async with request.begin() as tx:
        owner = await _owner(tx, request)
        made = await api_keys.make_api_key(tx, owner, name=body.name, scopes=body.scopes, expires_at=body.expires_at)
        return ApiKeyMadeOut.made(made).model_dump(mode="json")


async def revoke_api_key(request: Request) -> None:
    async with request.begin() as tx:
        await api_keys.revoke_api_key(tx, await _owner(tx, request), request.path["api_key_id"])


async def _owner(tx: Tx, request: Request) -> Caller:
    """The user who is named, in the operator's hands: what is done is the operator's doing."""
    user = await administration.get_user(tx, request.caller.who, request.params["user_id"])
    return replace(request.caller, user_id=user.id, role=Role(user.role))


HANDLERS: Mapping[str, Handler] = {
    "GET /v1/api-keys": list_api_keys,
    "POST /v1/api-keys": create_api_key,
    "DELETE /v1/api-keys/{api_key_id}": revoke_api_key,
}
