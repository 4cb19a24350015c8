"""What new accounts receive."""

from collections.abc import Sequence

from headrace.accounts.newcomers import Welcome
from headrace.billing.newcomers import grant_free_plan


def newcomers() -> Sequence[Welcome]:
    """Called in this order, in the transaction in which a user is stored."""
    return (grant_free_plan,)
