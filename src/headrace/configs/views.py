"""Routes of saved views: pages of the console that a user saved under a name, with their filters.

A view is a URL, so it can be shared. Views are the user's own config, and are erased with the account.
"""

from typing import Annotated

from fastapi import Depends, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.access import Caller, PreconditionFailed, Scope
from headrace.configs import service, store
from headrace.configs.keys import MAX_VIEWS, VIEWS, SavedView
from headrace.configs.model import ConfigScope, ConfigTarget
from headrace.configs.registry import Registry
from headrace.edge.authorization import scoped
from headrace.edge.errors import InvalidIfMatch
from headrace.edge.etags import ExpectedVersion, etag
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db

router = Router(prefix="/me/views", tags=["Configs"])

Reader = Annotated[Caller, Depends(scoped(Scope.ACCOUNT_READ))]
Writer = Annotated[Caller, Depends(scoped(Scope.ACCOUNT_WRITE))]
_KEYS = Registry([VIEWS])


class ViewsBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    views: Annotated[list[SavedView], Field(max_length=MAX_VIEWS, description="Views in their display order.")]


@router.get("", response_model=ViewsBody, summary="Read your saved views")
async def get_views(caller: Reader, db: Db, response: Response) -> ViewsBody:
    """Your saved pages of the console. The `ETag` is `"0"` before the first."""
    async with db.transaction(readonly=True) as tx:
        found = await store.find_config(tx, VIEWS.name, _of(caller))
    response.headers["ETag"] = etag(0 if found is None else found.version)
    return ViewsBody(views=VIEWS.default if found is None else VIEWS.read(found.config_value))


@router.put(
    "",
    response_model=ViewsBody,
    summary="Save views",
    responses=problems(PreconditionFailed, InvalidIfMatch),
)
async def set_views(
    body: ViewsBody, caller: Writer, db: Db, expected: ExpectedVersion, response: Response
) -> ViewsBody:
    """Replace the list of your saved pages. `If-Match` prevents two tabs from overwriting each other."""
    value = body.model_dump(mode="json")["views"]
    async with db.transaction() as tx:
        config = await service.set_config(tx, _KEYS, caller.who, VIEWS.name, _of(caller), value, expected=expected)
    response.headers["ETag"] = etag(config.version)
    return ViewsBody(views=VIEWS.read(config.config_value))


def _of(caller: Caller) -> ConfigTarget:
    return ConfigTarget(ConfigScope.USER, caller.user_id)
