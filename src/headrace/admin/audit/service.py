"""Reading the trail: users see their own actions; administrators see everything, and that is audited."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, replace
from datetime import date
from functools import partial

from headrace import audit
from headrace.access import AdminOnly, Caller
from headrace.admin.overview.service import Operators
from headrace.archive import archives
from headrace.archive.errors import VerificationRunning
from headrace.audit import Action, Resource, ResourceType, continuing, events, exporting, proving, verifying
from headrace.audit.events import Event, EventFilter
from headrace.audit.exporting import ExportFormat
from headrace.audit.verifying import Verified
from headrace.database import Database, Tx
from headrace.sql import Mark

_WHOLE_TRAIL = Resource(ResourceType.AUDIT_TRAIL, "*")
_TRAIL = "audit_events"


async def list_events(
    tx: Tx, caller: Caller, wanted: EventFilter, *, older_than: Mark | None = None, limit: int
) -> list[Event]:
    """Events, newest first."""
    wanted = await _reach(tx, caller, wanted, {"verb": "list"})
    return await events.list_events(tx, wanted, older_than=older_than, limit=limit)


async def get_event(tx: Tx, caller: Caller, event_id: str) -> Event:
    """One event."""
    event = await events.get_event(tx, event_id, user_id=None if caller.is_admin else caller.user_id)
    if event.user["uid"] != caller.user_id:
        await audit.record(tx, caller.who, Action.READ, Resource(ResourceType.AUDIT_TRAIL, event.id))
    return event


async def prove_event(tx: Tx, caller: Caller, event_id: str) -> dict[str, object]:
    """The proof that an event was sealed."""
    await get_event(tx, caller, event_id)
    return await proving.prove(tx, event_id)


async def export(
    db: Database, caller: Caller, wanted: EventFilter, chosen: ExportFormat
) -> AsyncIterator[tuple[int, bytes]]:
    """Everything that is found, a part at a time: how many events, and their bytes. Audited before the first."""
    async with db.transaction() as tx:
        wanted = await _reach(tx, caller, wanted, {"verb": "export", "format": chosen})
    return _parts(db, wanted, chosen)


async def _parts(db: Database, wanted: EventFilter, chosen: ExportFormat) -> AsyncIterator[tuple[int, bytes]]:
    if chosen.heading:
        yield 0, chosen.heading
    async for page in events.pages(db, wanted):
        yield len(page), exporting.render(page, chosen)


async def verify_trail(
    db: Database, caller: Caller, operators: Operators, key: bytes, *, month: date | None = None, whole: bool = False
) -> Verified:
    """Verify the trail from the verified head on, the whole of it, or one month; one at a time per process. The trail
    gets the result."""
    if operators.verifying.locked():
        raise VerificationRunning
    async with operators.verifying:
        against = replace(operators.trail, retired=partial(archives.list_months, db, _TRAIL))
        if month is None:
            verified = await continuing.verify_further(db, key, whole=whole, against=against)
        else:
            verified = await verifying.verify(db, month=month, against=against)
    result = "nothing" if verified.finding is None else verified.finding.flaw
    data = {"verb": "verify", "events": str(verified.events), "verified": result}
    if verified.continued_from:
        data["continued_from"] = str(verified.continued_from)
    async with db.transaction() as tx:
        await audit.record(tx, caller.who, Action.READ, _WHOLE_TRAIL, data=data)
    return verified


async def _reach(tx: Tx, caller: Caller, wanted: EventFilter, how: Mapping[str, str]) -> EventFilter:
    """What of it the caller may see."""
    if caller.is_admin:
        if wanted.user_id != caller.user_id:
            filters = {name: str(value) for name, value in asdict(wanted).items() if value is not None}
            await audit.record(tx, caller.who, Action.READ, _WHOLE_TRAIL, data={**filters, **how})
        return wanted
    if wanted.user_id not in (None, caller.user_id):
        raise AdminOnly("Only an administrator may read what other people did.")
    return replace(wanted, user_id=caller.user_id)
