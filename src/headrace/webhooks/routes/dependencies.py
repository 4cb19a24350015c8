"""Dependencies of these routes."""

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Path, Query, Request

from headrace.access import Caller, Scope
from headrace.edge.authorization import scoped
from headrace.webhooks.schemas import DELIVERY_ID, ENDPOINT_ID
from headrace.webhooks.service import EVERY_USER, Webhooks

Reader = Annotated[Caller, Depends(scoped(Scope.WEBHOOKS_READ))]
Writer = Annotated[Caller, Depends(scoped(Scope.WEBHOOKS_WRITE))]
EndpointIdPath = Annotated[str, Path(max_length=64, examples=[ENDPOINT_ID])]
DeliveryIdPath = Annotated[str, Path(max_length=64, examples=[DELIVERY_ID])]
Owner = Annotated[
    str | None, Query(max_length=64, description="For administrators: the owner's id, or `*` for all users.")
]


HooksOrMake = Webhooks | Callable[[], Webhooks]
"""What routes are given: the webhooks, or a function that makes them when a route first needs their keys."""


async def _hooks(request: Request) -> Webhooks:
    hooks = request.state.webhooks
    if callable(hooks):
        hooks = hooks()
    assert isinstance(hooks, Webhooks)
    return hooks


Hooks = Annotated[Webhooks, Depends(_hooks)]


def owner_of(caller: Caller, user_id: str | None) -> str | None:
    if user_id is None:
        return caller.user_id
    return None if user_id == EVERY_USER else user_id
