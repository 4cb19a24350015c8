"""Errors of billing.

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
    """An adjustment adds or removes at least one unit."""

    code = "adjustment_invalid"


class QuotaTooSmall(Conflict):
    """Too few units are left: held and used units cannot be removed."""

    code = "quota_too_small"


class AdjustmentKeyReused(Conflict):
    """This key was used for another adjustment: take a fresh one for each."""

    code = "adjustment_key_reused"


class UsageRangeInvalid(Invalid):
    """The range must begin before it ends, and span at most 366 days."""

    code = "usage_range_invalid"
