"""What billing refuses.

NotFound   EntitlementNotFound
Invalid    AdjustmentInvalid, UsageRangeInvalid
Conflict   QuotaTooSmall, AdjustmentKeyReused
Exhausted  QuotaExhausted, which is a kind of its own in headrace.errors
"""

from headrace.errors import Conflict, Invalid, NotFound


class EntitlementNotFound(NotFound):
    """There is no such entitlement."""

    code = "entitlement_not_found"


class AdjustmentInvalid(Invalid):
    """An adjustment adds or takes away at least one unit."""

    code = "adjustment_invalid"


class QuotaTooSmall(Conflict):
    """So many units are no longer left: those that are held or used cannot be taken away."""

    code = "quota_too_small"


class AdjustmentKeyReused(Conflict):
    """This key was used for another adjustment: take a fresh one for each."""

    code = "adjustment_key_reused"


class UsageRangeInvalid(Invalid):
    """The time must begin before it ends, and span 366 days at most."""

    code = "usage_range_invalid"
