"""Reading usage and the ledger. Users read their own; administrators read all, which is audited."""

import csv
import io
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, date, datetime, timedelta

from headrace import audit
from headrace.access import AdminOnly, Caller
from headrace.audit import Action, Resource, ResourceType
from headrace.billing.errors import EntitlementNotFound, UsageRangeInvalid
from headrace.billing.model import Balance, Entitlement, EntitlementStatus, Entry, UsedDay
from headrace.billing.store import days as day_store
from headrace.billing.store import entitlements, ledger
from headrace.billing.store.ledger import EntryFilter
from headrace.database import Database, Tx
from headrace.sql import Mark
from headrace.walks import Found

EVERY_USER = "*"
MAX_RANGE = timedelta(days=366)
_PAGE = 1000


async def list_entries(
    tx: Tx, caller: Caller, wanted: EntryFilter, *, older_than: Mark | None = None, limit: int
) -> Found[Entry]:
    """Entries of the ledger, newest first."""
    await _authorize(tx, caller, wanted.user_id, ResourceType.LEDGER)
    return await ledger.list_entries(tx, wanted, older_than=older_than, limit=limit)


async def list_titles(tx: Tx, entries: Sequence[Entry]) -> dict[str, str]:
    """The titles of the tasks that these entries, which the caller has read, are about."""
    task_ids = {entry.task_id for entry in entries if entry.task_id is not None}
    return await ledger.list_task_titles(tx, sorted(task_ids)) if task_ids else {}


async def used_by_day(tx: Tx, caller: Caller, user_id: str, since: date, until: date) -> list[UsedDay]:
    """Units charged on each day from ``since`` and before ``until``, including days without usage."""
    if not timedelta(0) < until - since <= MAX_RANGE:
        raise UsageRangeInvalid
    await _authorize(tx, caller, user_id, ResourceType.LEDGER)
    known = {each.day: each for each in await day_store.used_by_day(tx, user_id, since, until)}
    days = (since + timedelta(days=number) for number in range((until - since).days))
    return [known.get(day) or UsedDay(day, 0, 0, 0) for day in days]


# A transaction dates its entries by its beginning: those that began before midnight commit within this time.
_SETTLED_AFTER = timedelta(days=1)


async def add_up_days(db: Database, *, now: datetime | None = None) -> int:
    """Add up each day that is over for good, a transaction for each; gives how many there were."""
    async with db.transaction(readonly=True) as tx:
        at: datetime = now or await tx.fetchval("SELECT now()")
    until = (at - _SETTLED_AFTER).astimezone(UTC).date()
    done = 0
    while True:
        async with db.transaction() as tx:
            if await day_store.add_up_next(tx, until=until) is None:
                return done
        done += 1


async def get_balance(tx: Tx, caller: Caller, user_id: str) -> Balance:
    await _authorize(tx, caller, user_id, ResourceType.ENTITLEMENT)
    return await entitlements.get_balance(tx, user_id)


async def list_entitlements(
    tx: Tx,
    caller: Caller,
    *,
    user_id: str | None,
    status: EntitlementStatus | None = None,
    older_than: Mark | None = None,
    limit: int,
) -> list[Entitlement]:
    """Entitlements, newest first."""
    await _authorize(tx, caller, user_id, ResourceType.ENTITLEMENT)
    return await entitlements.list_entitlements(tx, user_id=user_id, status=status, older_than=older_than, limit=limit)


async def get_entitlement(tx: Tx, caller: Caller, entitlement_id: str) -> Entitlement:
    found = await entitlements.find_entitlement(tx, entitlement_id)
    if found is None or (found.user_id != caller.user_id and not caller.is_admin):
        raise EntitlementNotFound
    if found.user_id != caller.user_id:
        await audit.record(tx, caller.who, Action.READ, Resource(ResourceType.ENTITLEMENT, found.id))
    return found


async def _authorize(tx: Tx, caller: Caller, user_id: str | None, type_: ResourceType) -> None:
    if user_id == caller.user_id:
        return
    if not caller.is_admin:
        raise AdminOnly("Only an administrator may read other users' usage.")
    data = {"user_id": user_id or EVERY_USER}
    await audit.record(tx, caller.who, Action.READ, Resource(type_, EVERY_USER), data=data)


# -- as a file

COLUMNS = (
    "id",
    "created_at",
    "user_id",
    "task_id",
    "entitlement_id",
    "units",
    "direction",
    "status",
    "source",
    "remark",
)
# Prefixes that spreadsheets treat as a formula; a remark may hold any text.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


async def export(db: Database, caller: Caller, wanted: EntryFilter) -> AsyncGenerator[bytes, None]:
    """The whole list as CSV, a page at a time; an unauthorized caller is refused before the first byte."""
    async with db.transaction() as tx:
        await _authorize(tx, caller, wanted.user_id, ResourceType.LEDGER)
    return _pages(db, wanted)


async def _pages(db: Database, wanted: EntryFilter) -> AsyncGenerator[bytes, None]:
    yield _csv([COLUMNS])
    mark: Mark | None = None
    while True:
        async with db.transaction(readonly=True) as tx:
            found = await ledger.list_entries(tx, wanted, older_than=mark, limit=_PAGE)
        entries = found.items
        if entries:
            yield _csv([_cells(entry) for entry in entries])
        if len(entries) == _PAGE:
            mark = (entries[-1].created_at, entries[-1].id)
        elif found.resume is not None:
            mark = found.resume
        else:
            return


def _cells(entry: Entry) -> Sequence[object]:
    remark = entry.remark
    return (
        *(entry.id, entry.created_at.isoformat(), entry.user_id, entry.task_id, entry.entitlement_id),
        *(entry.consume_unit, entry.direction, entry.status, entry.source),
        f"'{remark}" if remark is not None and remark.startswith(_FORMULA) else remark,
    )


def _csv(rows: Sequence[Sequence[object]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
