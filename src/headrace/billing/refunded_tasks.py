"""Canceling tasks that wait and hold units of an entitlement whose payment was refunded. Those that run finish."""

from collections.abc import Callable

from headrace.database import Database, Tx
from headrace.tasks import service
from headrace.tasks.service import Tasks

CANCEL_REFUNDED = "headrace.cancel-refunded"

_BATCH = 100
_MESSAGE = "Canceled: the payment for its units was refunded."

# A worker does it: there may be thousands of tasks, and WeChat Pay waits for an answer.
ORDER = """
SELECT headrace.submit($1, payload => jsonb_build_object('entitlement_id', $2::text), queue => 'headrace',
                       priority => 100, max_attempts => 10, unknown_type => 'wait')
"""


# What a task holds now: one that was canceled and retried has an older hold, which may be of another entitlement. A
# look-up for each, as in headrace.settle_holds.
_HOLDS = """EXISTS (
  SELECT FROM headrace.usage_ledger AS held
  WHERE held.task_id = task.id AND held.status = 'HELD' AND held.entitlement_id = entitlement.id AND (
    SELECT settled.id FROM headrace.usage_ledger AS settled
    WHERE settled.hold_id = held.id AND settled.period = held.period
    LIMIT 1
  ) IS NULL
)"""
# Two statements, for one that prunes partitions must not lock rows (tests/kernel/test_row_locks.py).
LIST_PLACES = f"""
SELECT task.queue_seq
FROM headrace.entitlements AS entitlement
JOIN headrace.tasks AS task ON task.user_id = entitlement.user_id AND task.status = 'QUEUED'
WHERE entitlement.id = $1 AND task.queue_seq IS NOT NULL AND {_HOLDS}
"""
# No worker claims what is delayed. If the cancellation never comes, because no worker runs, they start after all.
HOLD_BACK = """
UPDATE headrace.task_queue SET delayed = true, run_at = greatest(run_at, now() + interval '1 day')
WHERE seq = ANY ($1) AND worker IS NULL
"""


async def order_cancellation(tx: Tx, entitlement_id: str) -> None:
    """Have the waiting tasks that hold units of this entitlement canceled, once this transaction has committed.

    None of them is claimed from now on: what has not started when the money goes back does not start.
    """
    places = [row["queue_seq"] for row in await tx.fetch(LIST_PLACES, entitlement_id)]
    if places:
        await tx.execute(HOLD_BACK, places)
    await tx.execute(ORDER, CANCEL_REFUNDED, entitlement_id)


# Along the tasks of its user that wait, each with one look at its holds: an entitlement may have millions of entries.
LIST_WAITING = f"""
SELECT task.id
FROM headrace.entitlements AS entitlement
JOIN headrace.tasks AS task ON task.user_id = entitlement.user_id AND task.status = 'QUEUED'
WHERE entitlement.id = $1 AND entitlement.status = 'SUSPENDED' AND task.id > $2 AND {_HOLDS}
ORDER BY task.id
LIMIT $3
"""


async def cancel_waiting(db: Database, tasks: Callable[[], Tasks], entitlement_id: str) -> int:
    """Cancel the tasks that no worker has claimed and that hold units of this entitlement; gives how many."""
    ours, last, canceled = tasks(), "", 0
    while True:
        async with db.transaction() as tx:
            found = [row["id"] for row in await tx.fetch(LIST_WAITING, entitlement_id, last, _BATCH)]
            canceled += await service.stop_waiting(tx, ours, found, message=_MESSAGE)
        if len(found) < _BATCH:
            return canceled
        last = found[-1]
