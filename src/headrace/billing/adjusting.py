"""Changing a quota by hand: an administrator adds units, or takes away what is left, with a reason."""

from dataclasses import dataclass

from headrace import audit, ids
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.billing.errors import AdjustmentInvalid, AdjustmentKeyReused, EntitlementNotFound, QuotaTooSmall
from headrace.billing.model import Direction, Entitlement, Entry
from headrace.billing.store import entitlements as store
from headrace.billing.store import ledger
from headrace.database import Tx

MOST_UNITS = 1_000_000_000
MOST_TOTAL = 2**31 - 1  # what the column holds
LONGEST_KEY = 64


@dataclass(frozen=True, slots=True)
class Adjusted:
    entitlement: Entitlement
    entry: Entry


async def adjust(tx: Tx, who: Who, entitlement_id: str, units: int, *, reason: str, key: str | None = None) -> Adjusted:
    """Add ``units`` to an entitlement, or take them away if they are below 0. The same key again changes nothing,
    in the month after it too.

    ``QuotaTooSmall`` if so many are not left: what is held or used stays granted.
    """
    if units == 0 or abs(units) > MOST_UNITS:
        raise AdjustmentInvalid(f"Give from 1 to {MOST_UNITS:,} units, with a minus sign to take them away.")
    if key is not None and not 1 <= len(key) <= LONGEST_KEY:
        raise AdjustmentInvalid(f"A key has 1 to {LONGEST_KEY} characters.")
    old = await store.lock_entitlement(tx, entitlement_id)
    if old is None:
        raise EntitlementNotFound
    if key is not None and (before := await ledger.find_adjustment(tx, old.user_id, key)) is not None:
        if (before.entitlement_id, _signed(before)) != (old.id, units):
            raise AdjustmentKeyReused
        return Adjusted(old, before)
    if old.quota_total + units > MOST_TOTAL:
        raise AdjustmentInvalid(
            f"An entitlement has {MOST_TOTAL:,} units at most, and {old.quota_total:,} are granted."
        )
    new = await store.adjust_quota(tx, old.id, units)
    if new is None:
        raise QuotaTooSmall(f"Only {old.quota_left:,} of the {old.quota_total:,} units are left.", left=old.quota_left)
    entry = await ledger.insert_adjustment(tx, old.user_id, old.id, units, key=key or ids.new("key"), reason=reason)
    resource = Resource(ResourceType.ENTITLEMENT, new.id, {"user_id": new.user_id})
    await audit.record(
        tx,
        who,
        Action.UPDATED,
        resource,
        old=old,
        new=new,
        data={"units": str(units), "entry": entry.id, "reason": reason},
    )
    return Adjusted(new, entry)


def _signed(entry: Entry) -> int:
    return entry.consume_unit if entry.direction is Direction.CREDIT else -entry.consume_unit
