"""Routes that read and resend deliveries."""

from typing import Annotated

from fastapi import Depends, Query, Response

from headrace.access import AdminOnly
from headrace.database import Tx
from headrace.edge.errors import InvalidCursor
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.instants import Instant
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.edge.vocabulary import AsShown
from headrace.ids import InvalidId, check
from headrace.webhooks import resending
from headrace.webhooks.errors import DeliveryNotFound, DeliveryUnderWay, EndpointNotActive, EndpointNotFound
from headrace.webhooks.model import DeliveryStatus
from headrace.webhooks.routes.dependencies import DeliveryIdPath, Owner, Reader, Writer, owner_of
from headrace.webhooks.schemas import DeliveryItemOut, DeliveryOut
from headrace.webhooks.store.deliveries import DeliveryFilter

router = Router(prefix="/deliveries", tags=["Webhooks"])

ResendOnce = Annotated[Once, Depends(idempotent("webhooks.resend"))]


@router.get(
    "",
    response_model=Page[DeliveryItemOut],
    summary="List deliveries",
    responses=problems(InvalidCursor, AdminOnly, InvalidId),
)
async def list_deliveries(
    caller: Reader,
    db: Db,
    paging: Paging,
    endpoint_id: Annotated[str | None, Query(max_length=64)] = None,
    event_id: Annotated[str | None, Query(max_length=64)] = None,
    event_type: Annotated[str | None, Query(max_length=128)] = None,
    status: AsShown[DeliveryStatus] | None = None,
    created_after: Annotated[Instant | None, Query(description="From this time on.")] = None,
    created_before: Annotated[Instant | None, Query(description="Before this time.")] = None,
    user_id: Owner = None,
) -> Page[DeliveryItemOut]:
    """Attempts, newest first.

    A page may be short, even empty, without being the last: continue until `next_cursor` is null.
    """
    owner = owner_of(caller, user_id)
    asked = {"endpoint_id": endpoint_id, "event_id": event_id, "event_type": event_type, "status": status}
    listing = paging.of(
        "webhooks.deliveries",
        owner=owner,
        everybody=owner is None,
        since=created_after,
        until=created_before,
        **asked,
    )
    if event_id is not None:
        check(event_id, "evt")
    wanted = DeliveryFilter(owner, endpoint_id, event_id, event_type, status, created_after, created_before)
    async with db.transaction() as tx:
        found = await resending.list_deliveries(tx, caller, wanted, older_than=listing.after, limit=listing.fetch)
    return listing.page(
        found.items, mark=lambda each: (each.created_at, str(each.id)), item=DeliveryItemOut.of, resume=found.resume
    )


@router.get(
    "/{delivery_id}",
    response_model=DeliveryOut,
    summary="Read a delivery",
    responses=problems(DeliveryNotFound),
)
async def get_delivery(delivery_id: DeliveryIdPath, caller: Reader, db: Db) -> DeliveryOut:
    """One attempt, with its request and response."""
    async with db.transaction() as tx:
        return DeliveryOut.of(await resending.get_delivery(tx, caller, delivery_id))


@router.post(
    "/{delivery_id}/resend",
    status_code=201,
    response_model=DeliveryOut,
    summary="Send a delivery again",
    responses=problems(DeliveryNotFound, DeliveryUnderWay, EndpointNotActive, EndpointNotFound, *ONCE),
)
async def resend_delivery(delivery_id: DeliveryIdPath, caller: Writer, db: Db, once: ResendOnce) -> Response:
    """Send its event to its endpoint again, whatever the result was. The event's id stays the same, so that the
    receiver can recognise a duplicate."""

    async def act(tx: Tx) -> Answer:
        delivery = await resending.resend(tx, caller, delivery_id)
        headers = {"Location": f"/v1/webhooks/deliveries/{delivery.delivery_id}"}
        return Answer(DeliveryOut.of(delivery), status=201, headers=headers)

    return await once.run(db, act)
