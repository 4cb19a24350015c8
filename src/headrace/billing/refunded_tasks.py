"""Cancels waiting tasks that hold units of a refunded entitlement. Running tasks finish."""

from collections.abc import Callable

from headrace.database import Database, Tx
from headrace.tasks import service
from headrace.tasks.service import Tasks

CANCEL_REFUNDED = "headrace.cancel-refunded"

_BATCH = 100
_MESSAGE = "Canceled: the payment for its units was refunded."

# A worker cancels them: there may be thousands of tasks, and WeChat Pay waits for an answer.
ORDER = """
SELECT headrace.submit($1, payload => jsonb_build_object('entitlement_id', $2::text), queue => 'headrace',
                       priority => 100, max_attempts => 10, unknown_type => 'wait')
"""


# A task's present hold: a canceled and retried task has an older hold, maybe of another entitlement. One lookup for
# each, as in headrace.settle_holds.
_HOLDS = """EXISTS (
  SELECT FROM headrace.usage_ledger AS held
  WHERE held.task_id = task.id AND held.status = 'HELD' AND held.entitlement_id = entitlement.id AND (
    SELECT settled.id FROM headrace.usage_ledger AS settled
    WHERE settled.hold_id = held.id AND settled.period = held.period
    LIMIT 1
  ) IS NULL
)"""
# Two statements, because one that prunes partitions must not lock rows (tests/kernel/test_row_locks.py).
LIST_QUEUE_ROWS = f"""
SELECT task.queue_seq
FROM headrace.entitlements AS entitlement
JOIN headrace.tasks AS task ON task.user_id = entitlement.user_id AND task.status = 'QUEUED'
WHERE entitlement.id = $1 AND task.queue_seq IS NOT NULL AND {_HOLDS}
"""
# Workers do not claim delayed tasks. If the cancellation never runs, because no worker runs, they start after all.
HOLD_BACK = """
UPDATE headrace.task_queue SET delayed = true, run_at = greatest(run_at, now() + interval '1 day')
WHERE seq = ANY ($1) AND worker IS NULL
"""


async def order_cancellation(tx: Tx, entitlement_id: str) -> None:
    """Order the cancellation of waiting tasks that hold units of this entitlement, after this transaction's commit.

    They are no longer claimed: a task that has not started before the refund does not start.
    """
    queue_rows = [row["queue_seq"] for row in await tx.fetch(LIST_QUEUE_ROWS, entitlement_id)]
    if queue_rows:
        await tx.execute(HOLD_BACK, queue_rows)
    await tx.execute(ORDER, CANCEL_REFUNDED, entitlement_id)


# Scans the user's waiting tasks, with one lookup of holds for each: an entitlement may have millions of entries.
LIST_WAITING = f"""
SELECT task.id
FROM headrace.entitlements AS entitlement
JOIN headrace.tasks AS task ON task.user_id = entitlement.user_id AND task.status = 'QUEUED'
WHERE entitlement.id = $1 AND entitlement.status = 'SUSPENDED' AND task.id > $2 AND {_HOLDS}
ORDER BY task.id
LIMIT $3
"""


async def cancel_waiting(db: Database, tasks: Callable[[], Tasks], entitlement_id: str) -> int:
    """Cancel unclaimed tasks that hold units of this entitlement; returns their number."""
    ours, last, canceled = tasks(), "", 0
    while True:
        async with db.transaction() as tx:
            found = [row["id"] for row in await tx.fetch(LIST_WAITING, entitlement_id, last, _BATCH)]
            canceled += await service.stop_waiting(tx, ours, found, message=_MESSAGE)
        if len(found) < _BATCH:
            return canceled
        last = found[-1]
