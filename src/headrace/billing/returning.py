"""Returns the charged units of a task whose result is not good: the ledger gets a credit, the quota the units."""

from headrace import audit
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.billing.holds import MAX_LOCK_WAIT
from headrace.billing.model import Entry
from headrace.billing.store import entitlements, ledger
from headrace.database import Tx

_LIMIT_LOCK_WAIT = "SELECT set_config('lock_timeout', $1, true)"


async def return_charge(tx: Tx, who: Who, task_id: str, *, reason: str) -> list[Entry]:
    """Credit what this task was charged to the entitlements that paid for it, also where their period has ended.

    The caller makes sure, under a lock, that it is done once for each task. ``RowsLocked`` if another transaction locks
    the units for longer than ``MAX_LOCK_WAIT``.
    """
    await tx.execute(_LIMIT_LOCK_WAIT, f"{MAX_LOCK_WAIT.total_seconds():.0f}s")
    entries: list[Entry] = []
    for entitlement_id, units in await ledger.list_charged(tx, task_id):
        old = await entitlements.lock_entitlement(tx, entitlement_id)
        new = await entitlements.adjust_quota(tx, entitlement_id, units)
        assert old is not None
        assert new is not None
        entry = await ledger.insert_return(tx, old.user_id, entitlement_id, task_id, units, reason=reason)
        resource = Resource(ResourceType.ENTITLEMENT, new.id, {"user_id": new.user_id})
        data = {"units": str(units), "entry": entry.id, "reason": reason, "task_id": task_id}
        await audit.record(tx, who, Action.UPDATED, resource, old=old, new=new, data=data)
        entries.append(entry)
    return entries
