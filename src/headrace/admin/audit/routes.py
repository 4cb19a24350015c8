"""The audit trail over HTTP."""

import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from headrace.access import AdminOnly, Caller, Scope
from headrace.admin.audit import service
from headrace.admin.audit.schemas import EVENT_ID, EventOut, ProofOut, VerifiedOut, VerifyIn
from headrace.admin.overview.routes import OperatorsDep
from headrace.archive.errors import VerificationRunning
from headrace.audit import Action, ResourceType
from headrace.audit.errors import EventNotFound, NotSealed, SearchInvalid
from headrace.audit.events import EventFilter
from headrace.audit.exporting import ExportFormat
from headrace.audit.model import OWN_RESOURCE_TYPES
from headrace.audit.verified_head import PURPOSE
from headrace.edge.authorization import Admin, Again, AuthenticateAgain, scoped
from headrace.edge.errors import InvalidCursor
from headrace.edge.instants import Instant
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db, services_of
from headrace.edge.vocabulary import Offered

router = Router(prefix="/v1/audit", tags=["Audit"])
admin = Router(tags=["Audit"])  # below what operators are given

# A long export asks so often whether its reader still is one.
_CHECK_EVERY_S = 10.0

Reader = Annotated[Caller, Depends(scoped(Scope.AUDIT_READ))]
EventIdPath = Annotated[str, Path(max_length=255, examples=[EVENT_ID])]


async def _filter(
    action: Action | None = None,
    resource_type: Annotated[
        Annotated[ResourceType, Offered(OWN_RESOURCE_TYPES)] | None,
        Query(description="Types that only an imported trail has are taken, too."),
    ] = None,
    resource_id: Annotated[str | None, Query(max_length=255)] = None,
    user_id: Annotated[
        str | None, Query(max_length=255, description="The acting user. Other users: for administrators.")
    ] = None,
    client_ip: Annotated[str | None, Query(max_length=45)] = None,
    request_id: Annotated[str | None, Query(max_length=128)] = None,
    created_after: Annotated[Instant | None, Query(description="From this time on.")] = None,
    created_before: Annotated[Instant | None, Query(description="Before this time.")] = None,
    q: Annotated[
        str | None,
        Query(
            max_length=1000,
            description="One to five whole identifiers, each of which must be in the event: its id, the resource's, "
            "the user's, a user name, an address, a request's or a trace's id.",
        ),
    ] = None,
    changes: Annotated[bool, Query(description="Only what changed something: not who looked at what.")] = False,
) -> EventFilter:
    narrowed = (action, resource_type, resource_id, user_id, client_ip, request_id)
    return EventFilter(*narrowed, created_after, created_before, q, changes or None)


Wanted = Annotated[EventFilter, Depends(_filter)]


@router.get(
    "/events",
    response_model=Page[EventOut],
    summary="List audit events",
    responses=problems(InvalidCursor, AdminOnly, SearchInvalid),
)
async def list_audit_events(caller: Reader, db: Db, paging: Paging, wanted: Wanted) -> Page[EventOut]:
    """Audit events, newest first: the caller's own, or all for administrators. The administrator's read is audited."""
    listing = paging.of("audit_events", reader=caller.user_id, admin=caller.is_admin, **asdict(wanted))
    async with db.transaction() as tx:
        events = await service.list_events(tx, caller, wanted, older_than=listing.after, limit=listing.fetch)
    return listing.page(events, mark=lambda event: event.mark, item=EventOut.of)


@router.get(
    "/events/{event_id}", response_model=EventOut, summary="Read an audit event", responses=problems(EventNotFound)
)
async def get_audit_event(event_id: EventIdPath, caller: Reader, db: Db) -> EventOut:
    """One event, with both sides of the change."""
    async with db.transaction() as tx:
        return EventOut.of(await service.get_event(tx, caller, event_id))


@router.get(
    "/events/{event_id}/proof",
    response_model=ProofOut,
    summary="Prove an audit event",
    responses=problems(EventNotFound, NotSealed),
)
async def prove_audit_event(event_id: EventIdPath, caller: Reader, db: Db) -> ProofOut:
    """The proof that an event was sealed as it is, which can be checked without Headrace."""
    async with db.transaction() as tx:
        return ProofOut.of(await service.prove_event(tx, caller, event_id))


@router.get(
    "/export",
    response_class=StreamingResponse,
    summary="Export audit events",
    responses={
        200: {
            "description": "All that is found, newest first.",
            "content": {
                "application/x-ndjson": {"schema": {"type": "string"}},
                "text/csv": {"schema": {"type": "string"}},
            },
        },
        **problems(AdminOnly, SearchInvalid),
    },
)
async def export_audit_events(
    caller: Reader,
    again: Again,
    db: Db,
    wanted: Wanted,
    format: ExportFormat = ExportFormat.JSONL,  # noqa: A002 - the parameter's name
) -> Response:
    """The same as the list, whole and streamed: JSON lines, or CSV for spreadsheets.

    A caller that loses the right to read it meanwhile receives no more of it: the connection breaks off.
    """
    parts = await service.export(db, caller, wanted, format)
    headers = {"Content-Disposition": f'attachment; filename="audit.{format}"'}
    shown = _while_allowed(parts, caller, again)
    return StreamingResponse(shown, media_type=format.media_type, headers=headers)


async def _while_allowed(
    parts: AsyncIterator[tuple[int, bytes]], caller: Caller, again: AuthenticateAgain
) -> AsyncIterator[bytes]:
    check_at = time.monotonic() + _CHECK_EVERY_S
    async for _, part in parts:
        if time.monotonic() >= check_at:
            now = await again()
            if not now.may(Scope.AUDIT_READ) or now.is_admin != caller.is_admin:
                raise AdminOnly
            check_at = time.monotonic() + _CHECK_EVERY_S
        yield part


@admin.post(
    "/audit/verify",
    response_model=VerifiedOut,
    summary="Verify the audit trail",
    responses=problems(VerificationRunning),
)
async def verify_audit_trail(
    body: VerifyIn, caller: Admin, request: Request, db: Db, operators: OperatorsDep
) -> VerifiedOut:
    """Recompute the seals since the last verification, and some earlier ones, from the events, and name the first thing
    that does not fit. The trail tells of it.

    With `whole` it recomputes every seal, which takes seconds for a million events; with `month` those of one month.
    Archived months are read by `headrace audit verify --whole`.
    """
    key = services_of(request).key(PURPOSE)
    verified = await service.verify_trail(db, caller, operators, key, month=body.first_day, whole=body.whole)
    return VerifiedOut.of(verified)
