"""Returning a result that is not good: its units come back, once, within a day and a few times a month."""

from datetime import datetime, timedelta

from headrace.access import Caller
from headrace.billing.returning import return_charge
from headrace.database import Tx
from headrace.removal.service.orders import store
from headrace.removal.service.orders.errors import ReturnLimit, ReturnRefused
from headrace.removal.service.orders.service import Ordered, get_removal

RETURN_WINDOW = timedelta(hours=24)
LIMIT_PERIOD = timedelta(days=30)
_REASON = "Result returned as not good"


async def return_result(tx: Tx, caller: Caller, task_id: str, *, most: int) -> Ordered:
    """Give back the units of this removal; again for one that was returned before, without a second credit.

    ``most`` is how many results one user may return within ``LIMIT_PERIOD``. Returns of one user wait for each other.
    """
    found = await get_removal(tx, caller, task_id)
    await store.lock_owner(tx, found.removal.user_id)
    state = await store.find_return_state(tx, task_id, RETURN_WINDOW, LIMIT_PERIOD)
    if state.returned_at is None:
        _require_returnable(found, state, most)
        await store.mark_returned(tx, task_id)
        await return_charge(tx, caller.who, task_id, reason=_REASON)
    return await get_removal(tx, caller, task_id)


def _require_returnable(found: Ordered, state: store.ReturnState, most: int) -> None:
    if found.task.status != "SUCCEEDED" or not found.charged:
        raise ReturnRefused("Nothing was charged for this removal.")
    if found.removal.accept_poor:
        raise ReturnRefused("This result was accepted as it is, after it had been shown.")
    if not state.in_time:
        raise ReturnRefused("A result can be returned within 24 hours.")
    if state.returns >= most:
        raise ReturnLimit(
            f"{most} results were returned in the last 30 days, and no more can be." if most else None, most=most
        )


def returnable_until(ordered: Ordered, most: int) -> datetime | None:
    """Until when the result can be returned; None if it cannot."""
    task, removal = ordered.task, ordered.removal
    possible = most > 0 and task.status == "SUCCEEDED" and ordered.charged and removal.returned_at is None
    if not possible or removal.accept_poor or task.finished_at is None:
        return None
    return task.finished_at + RETURN_WINDOW
