"""Looking after the outbox. Reviving is audited; administrators only, which routes and commands see to."""

from headrace import audit
from headrace.access import Caller
from headrace.audit import Action, Resource, ResourceType
from headrace.database import Database, Tx
from headrace.outbox import administration
from headrace.outbox.administration import OutboxEvent
from headrace.outbox.errors import EventNotDead, OutboxEventNotFound

_BATCH = 1000


async def get_event(tx: Tx, event_id: str) -> OutboxEvent:
    event = await administration.find_event(tx, event_id)
    if event is None:
        raise OutboxEventNotFound
    return event


async def revive_event(tx: Tx, caller: Caller, event_id: str) -> OutboxEvent:
    """Let an event be tried again that was given up; ``EventNotDead`` for any other."""
    old = await get_event(tx, event_id)
    new = await administration.revive(tx, event_id)
    if new is None:
        raise EventNotDead(status=old.status)
    resource = Resource(ResourceType.OUTBOX_EVENT, event_id, {"type": new.event_type})
    await audit.record(tx, caller.who, Action.UPDATED, resource, old=old, new=new, data={"verb": "revive"})
    return new


async def revive_all(db: Database, caller: Caller, *, event_type: str | None = None) -> int:
    """Let all dead events be tried again, or those of a type; gives how many. In batches, each with its record."""
    total = 0
    while True:
        async with db.transaction() as tx:
            revived = await administration.revive_some(tx, event_type=event_type, limit=_BATCH)
            if revived:
                facts = {"verb": "revive", "count": str(revived), "type": event_type or "*"}
                resource = Resource(ResourceType.OUTBOX_EVENT, "*")
                await audit.record(tx, caller.who, Action.UPDATED, resource, data=facts)
        total += revived
        if revived < _BATCH:
            return total
