"""Adjusting a quota by hand: an administrator adds units, or removes remaining ones, with a reason."""

from dataclasses import dataclass

from headrace import audit, ids
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.billing.errors import AdjustmentInvalid, AdjustmentKeyReused, EntitlementNotFound, QuotaTooSmall
from headrace.billing.model import Direction, Entitlement, Entry
from headrace.billing.store import entitlements as store
from headrace.billing.store import ledger
from headrace.database import Tx

MAX_ADJUSTMENT_UNITS = 1_000_000_000
MAX_QUOTA = 2**31 - 1  # the column's range
MAX_KEY_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Adjusted:
    entitlement: Entitlement
    entry: Entry


async def adjust(tx: Tx, who: Who, entitlement_id: str, units: int, *, reason: str, key: str | None = None) -> Adjusted:
    """Add ``units`` to an entitlement, or remove them if negative. Idempotent by ``key``, also in the following month.

    ``QuotaTooSmall`` if fewer units are left: held and used ones cannot be removed.
    """
    if units == 0 or abs(units) > MAX_ADJUSTMENT_UNITS:
        raise AdjustmentInvalid(f"Give from 1 to {MAX_ADJUSTMENT_UNITS:,} units, or with a minus sign to remove them.")
    if key is not None and not 1 <= len(key) <= MAX_KEY_LENGTH:
        raise AdjustmentInvalid(f"A key has 1 to {MAX_KEY_LENGTH} characters.")
    old = await store.lock_entitlement(tx, entitlement_id)
    if old is None:
        raise EntitlementNotFound
    if key is not None and (before := await ledger.find_adjustment(tx, old.user_id, key)) is not None:
        if (before.entitlement_id, _signed(before)) != (old.id, units):
            raise AdjustmentKeyReused
        return Adjusted(old, before)
    if old.quota_total + units > MAX_QUOTA:
        raise AdjustmentInvalid(f"An entitlement has {MAX_QUOTA:,} units at most, and {old.quota_total:,} are granted.")
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
