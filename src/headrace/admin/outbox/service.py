"""Operating the outbox. Changes are audited; only for administrators, which routes and commands check."""

from headrace import audit
from headrace.access import Caller
from headrace.audit import Action, Resource, ResourceType
from headrace.database import Database, Tx
from headrace.outbox import administration, interests
from headrace.outbox.administration import OutboxEvent
from headrace.outbox.errors import ConsumerNotFound, EventNotDead, OutboxEventNotFound
from headrace.outbox.nats import consumer as nats
from headrace.outbox.nats import store as broker

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


async def withdraw_consumer(tx: Tx, caller: Caller, name: str) -> int:
    """Write no more events for a consumer that is gone for good; gives how many messages still waited for it, which are
    discarded. A relay with this consumer declares it again when it starts."""
    known = await interests.list_consumers(tx)
    if name not in known:
        raise ConsumerNotFound(f"No consumer {name} wants events; those that do: {', '.join(known) or 'none'}.")
    forgotten = await broker.forget_all(tx) if name == nats.NAME else 0
    facts = {"verb": "withdraw", "consumer": name, "messages": str(forgotten)}
    await audit.record(tx, caller.who, Action.DELETED, Resource(ResourceType.OUTBOX_EVENT, "*"), data=facts)
    await interests.withdraw(tx, name, "")
    return forgotten
