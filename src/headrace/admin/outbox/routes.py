"""The outbox over HTTP, for administrators, and the types of events, for every logged-in user."""

from typing import Annotated

from fastapi import Path, Query

from headrace.admin.outbox import service
from headrace.admin.outbox.schemas import (
    EVENT_ID,
    EventTypeOut,
    OutboxEventOut,
    OutboxOut,
    RevivedOut,
    ReviveIn,
)
from headrace.edge.authorization import Admin, SignedIn
from headrace.edge.errors import InvalidCursor
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.outbox import administration
from headrace.outbox.administration import EventStatus, Filter
from headrace.outbox.catalogue import EVENT_TYPES
from headrace.outbox.errors import EventNotDead, OutboxEventNotFound

router = Router(tags=["Events"])

OutboxEventId = Annotated[str, Path(max_length=64, examples=[EVENT_ID])]


@router.get("/v1/event-types", response_model=Page[EventTypeOut], summary="List types of events")
async def list_event_types(caller: SignedIn) -> Page[EventTypeOut]:  # noqa: ARG001 - asked for to be let in
    """Every type of event that webhooks and brokers may be sent, with the JSON Schema of its `data`."""
    return Page(items=[EventTypeOut.of(known) for known in EVENT_TYPES])


@router.get("/v1/admin/outbox", response_model=OutboxOut, summary="See how the outbox is doing")
async def get_outbox(caller: Admin, db: Db) -> OutboxOut:  # noqa: ARG001 - asked for to be let in
    """The number and age of waiting events, the dead ones, and the relays that are alive."""
    async with db.transaction(readonly=True) as tx:
        return OutboxOut.of(await administration.read_overview(tx))


@router.get(
    "/v1/admin/outbox/events",
    response_model=Page[OutboxEventOut],
    summary="List events",
    responses=problems(InvalidCursor),
)
async def list_events(
    caller: Admin,  # noqa: ARG001 - asked for to be let in
    db: Db,
    paging: Paging,
    status: EventStatus | None = None,
    type: Annotated[str | None, Query(max_length=128, description="Exactly this one.")] = None,  # noqa: A002
    aggregate_id: Annotated[str | None, Query(max_length=64, description="Of one task, say.")] = None,
    user_id: Annotated[str | None, Query(max_length=64, description="Of one user.")] = None,
) -> Page[OutboxEventOut]:
    """Everybody's events, newest first; those that were published go after HEADRACE_RETENTION_OUTBOX.

    A page may be short, even empty, without being the last: continue until `next_cursor` is null.
    """
    wanted = Filter(status, type, aggregate_id, user_id)
    listing = paging.of("outbox", status=status, type=type, aggregate_id=aggregate_id, user_id=user_id)
    async with db.transaction(readonly=True) as tx:
        found = await administration.list_events(tx, wanted, older_than=listing.after, limit=listing.fetch)
    return listing.page(
        found.items, mark=lambda event: (event.created_at, str(event.id)), item=OutboxEventOut.of, resume=found.resume
    )


@router.get(
    "/v1/admin/outbox/events/{outbox_event_id}",
    response_model=OutboxEventOut,
    summary="Read an event",
    responses=problems(OutboxEventNotFound),
)
async def get_event(outbox_event_id: OutboxEventId, caller: Admin, db: Db) -> OutboxEventOut:  # noqa: ARG001 - to be let in
    """One event with its data, for as long as it is kept."""
    async with db.transaction(readonly=True) as tx:
        return OutboxEventOut.of(await service.get_event(tx, outbox_event_id))


@router.post(
    "/v1/admin/outbox/events/{outbox_event_id}/revive",
    response_model=OutboxEventOut,
    summary="Try an event again",
    responses=problems(OutboxEventNotFound, EventNotDead),
)
async def revive_event(outbox_event_id: OutboxEventId, caller: Admin, db: Db) -> OutboxEventOut:
    """Let an event that was given up be tried again. It comes after events of the same thing that were published since:
    receivers who need the order go by `created_at`."""
    async with db.transaction() as tx:
        return OutboxEventOut.of(await service.revive_event(tx, caller, outbox_event_id))


@router.post("/v1/admin/outbox/revive", response_model=RevivedOut, summary="Try all dead events again")
async def revive_all(body: ReviveIn, caller: Admin, db: Db) -> RevivedOut:
    """Let all events that were given up be tried again, or those of one type."""
    return RevivedOut(revived=await service.revive_all(db, caller, event_type=body.type))
