"""Routes of entitlements, usage and the ledger."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from fastapi import Depends, Path, Query, Response
from fastapi.responses import StreamingResponse

from headrace.access import AdminOnly, Caller, Scope
from headrace.billing import adjusting, usage, verifying
from headrace.billing.errors import (
    AdjustmentInvalid,
    EntitlementNotFound,
    QuotaTooSmall,
    UsageRangeInvalid,
)
from headrace.billing.model import EntitlementStatus, EntryStatus, Source
from headrace.billing.schemas import (
    ENTITLEMENT_ID,
    AdjustedOut,
    AdjustIn,
    BalanceOut,
    EntitlementOut,
    EntryOut,
    UsedDayOut,
    UsedDaysOut,
    VerificationOut,
)
from headrace.billing.store.ledger import EntryFilter
from headrace.database import Tx
from headrace.edge.authorization import Admin, Again, AuthenticateAgain, scoped
from headrace.edge.errors import InvalidCursor
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.instants import Instant
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db

router = Router(prefix="/v1")

Reader = Annotated[Caller, Depends(scoped(Scope.BILLING_READ))]
AdjustOnce = Annotated[Once, Depends(idempotent("billing.adjust"))]
EntitlementId = Annotated[str, Path(max_length=64, examples=[ENTITLEMENT_ID])]
Owner = Annotated[
    str | None, Query(max_length=64, description="For administrators: the owner's id, or `*` for all users.")
]
Whose = Annotated[str | None, Query(max_length=64, description="For administrators: the user's id.")]
_CHECK_EVERY_S = 5.0
_MONTH = timedelta(days=30)


def _owner(caller: Caller, user_id: str | None) -> str | None:
    owner = user_id or caller.user_id
    return None if owner == usage.EVERY_USER else owner


# -- entitlements


@router.get(
    "/entitlements",
    response_model=Page[EntitlementOut],
    tags=["Usage"],
    summary="List entitlements",
    responses=problems(InvalidCursor, AdminOnly),
)
async def list_entitlements(
    caller: Reader, db: Db, paging: Paging, status: EntitlementStatus | None = None, user_id: Owner = None
) -> Page[EntitlementOut]:
    """Your units by period, newest first."""
    owner = _owner(caller, user_id)
    listing = paging.of("entitlements", owner=owner or usage.EVERY_USER, status=status)
    async with db.transaction() as tx:
        found = await usage.list_entitlements(
            tx, caller, user_id=owner, status=status, older_than=listing.after, limit=listing.fetch
        )
    return listing.page(found, mark=lambda each: (each.created_at, each.id), item=EntitlementOut.of)


@router.get(
    "/entitlements/{entitlement_id}",
    response_model=EntitlementOut,
    tags=["Usage"],
    summary="Read an entitlement",
    responses=problems(EntitlementNotFound),
)
async def get_entitlement(entitlement_id: EntitlementId, caller: Reader, db: Db) -> EntitlementOut:
    """One entitlement."""
    async with db.transaction() as tx:
        return EntitlementOut.of(await usage.get_entitlement(tx, caller, entitlement_id))


@router.post(
    "/admin/entitlements/{entitlement_id}/adjust",
    status_code=201,
    response_model=AdjustedOut,
    tags=["Usage"],
    summary="Adjust an entitlement",
    responses=problems(EntitlementNotFound, AdjustmentInvalid, QuotaTooSmall, *ONCE),
)
async def adjust_entitlement(
    entitlement_id: EntitlementId, body: AdjustIn, caller: Admin, db: Db, once: AdjustOnce
) -> Response:
    """Add units to a user's quota, or remove remaining ones. The ledger records it permanently, with the reason."""

    async def act(tx: Tx) -> Answer:
        done = await adjusting.adjust(tx, caller.who, entitlement_id, body.units, reason=body.reason, key=once.key)
        return Answer(AdjustedOut.of(done), status=201)

    return await once.run(db, act)


# -- usage


async def _wanted(
    caller: Reader,
    task_id: Annotated[str | None, Query(max_length=64, description="Only entries of this task.")] = None,
    entitlement_id: Annotated[str | None, Query(max_length=64, description="Only entries of this entitlement.")] = None,
    status: Annotated[EntryStatus | None, Query(description="`COMMITTED`: charged or granted units.")] = None,
    source: Source | None = None,
    since: Annotated[Instant | None, Query(description="From this time on.")] = None,
    until: Annotated[Instant | None, Query(description="Before this time.")] = None,
    user_id: Owner = None,
) -> EntryFilter:
    return EntryFilter(_owner(caller, user_id), task_id, entitlement_id, status, source, since, until)


Wanted = Annotated[EntryFilter, Depends(_wanted)]


@router.get(
    "/usage",
    response_model=Page[EntryOut],
    tags=["Usage"],
    summary="List usage",
    responses=problems(InvalidCursor, AdminOnly),
)
async def list_usage(caller: Reader, db: Db, paging: Paging, wanted: Wanted) -> Page[EntryOut]:
    """Your ledger, newest first: granted units, and the units that each task held, used and released.

    A page may be short, even empty, without being the last: continue until `next_cursor` is null.
    """
    filters = {name: getattr(wanted, name) for name in EntryFilter.__dataclass_fields__}
    listing = paging.of("usage", **filters | {"user_id": wanted.user_id or usage.EVERY_USER})
    async with db.transaction() as tx:
        found = await usage.list_entries(tx, caller, wanted, older_than=listing.after, limit=listing.fetch)
        titles = await usage.list_titles(tx, found.items)
    return listing.page(
        found.items,
        mark=lambda entry: (entry.created_at, entry.id),
        item=lambda entry: EntryOut.of(entry, titles=titles),
        resume=found.resume,
    )


@router.get(
    "/usage/balance",
    response_model=BalanceOut,
    tags=["Usage"],
    summary="Read the balance",
    responses=problems(AdminOnly),
)
async def get_balance(caller: Reader, db: Db, user_id: Whose = None) -> BalanceOut:
    """The units that you can use now, and until when."""
    async with db.transaction() as tx:
        return BalanceOut.of(await usage.get_balance(tx, caller, user_id or caller.user_id))


@router.get(
    "/usage/days",
    response_model=UsedDaysOut,
    tags=["Usage"],
    summary="Usage by day",
    responses=problems(AdminOnly, UsageRangeInvalid),
)
async def list_used_days(
    caller: Reader,
    db: Db,
    since: Annotated[date | None, Query(description="The first day; 30 days before `until` by default.")] = None,
    until: Annotated[date | None, Query(description="The day after the last; tomorrow by default.")] = None,
    user_id: Whose = None,
) -> UsedDaysOut:
    """Units charged and released on each day (UTC), for a plot. At most 366 days."""
    last = until or datetime.now(UTC).date() + timedelta(days=1)
    try:
        first = since or last - _MONTH
    except OverflowError:
        raise UsageRangeInvalid from None
    async with db.transaction() as tx:
        days = await usage.used_by_day(tx, caller, user_id or caller.user_id, first, last)
    return UsedDaysOut(days=[UsedDayOut.of(day) for day in days])


@router.get(
    "/usage/export",
    response_class=StreamingResponse,
    tags=["Usage"],
    summary="Export usage",
    responses={
        200: {
            "description": "All matching entries, newest first.",
            "content": {"text/csv": {"schema": {"type": "string"}}},
        },
        **problems(AdminOnly),
    },
)
async def export_usage(caller: Reader, again: Again, db: Db, wanted: Wanted) -> Response:
    """The whole list as CSV for spreadsheets.

    If the caller loses the right to read it meanwhile, the connection is cut.
    """
    parts = await usage.export(db, caller, wanted)
    headers = {"Content-Disposition": 'attachment; filename="usage.csv"'}
    return StreamingResponse(
        _while_allowed(parts, caller, again), media_type="text/csv; charset=utf-8", headers=headers
    )


async def _while_allowed(parts: AsyncIterator[bytes], caller: Caller, again: AuthenticateAgain) -> AsyncIterator[bytes]:
    check_at = time.monotonic() + _CHECK_EVERY_S
    async for part in parts:
        if time.monotonic() >= check_at:
            now = await again()
            if not now.may(Scope.BILLING_READ) or now.is_admin != caller.is_admin:
                raise AdminOnly
            check_at = time.monotonic() + _CHECK_EVERY_S
        yield part


# -- verification


@router.get(
    "/admin/ledger/verification",
    response_model=VerificationOut | None,
    tags=["Usage"],
    summary="Read the last verification of the ledger",
)
async def get_verification(
    caller: Admin,  # noqa: ARG001 - required for authorization
    db: Db,
) -> VerificationOut | None:
    """The result of the last verification; null before the first. A schedule verifies the ledger every day."""
    async with db.transaction(readonly=True) as tx:
        found = await verifying.find_last(tx)
    return None if found is None else VerificationOut.of(found)


@router.post("/admin/ledger/verify", response_model=VerificationOut, tags=["Usage"], summary="Verify the ledger")
async def verify_ledger(caller: Admin, db: Db) -> VerificationOut:
    """Read the whole ledger and report inconsistencies: for each entitlement total = left + held + committed, for each
    hold its settlement, for each open hold a task that has not ended. Takes seconds for millions of entries.
    Archived months are read by `headrace ledger verify`."""
    return VerificationOut.of(await verifying.verify(db, caller.who))
