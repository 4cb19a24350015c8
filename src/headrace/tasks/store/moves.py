"""Moving tasks by hand. Locks are taken in the engine's order: the queue's row, then the task's."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from headrace.database import Row, Tx
from headrace.tasks.errors import TaskChanged


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A task's row in the queue; ``worker`` is the number of the one that runs it."""

    seq: int
    worker: int | None


# Waits for a transaction that finishes, returns or claims it at this moment, and reads the result.
LOCK_PLACE = """
SELECT seq, worker FROM headrace.task_queue
WHERE seq = (SELECT queue_seq FROM headrace.tasks WHERE id = $1)
FOR UPDATE
"""
# NO KEY: steps that are written meanwhile refer to the row, and are not held up.
LOCK_TASK = "SELECT queue_seq FROM headrace.tasks WHERE id = $1 FOR NO KEY UPDATE"


async def lock_task(tx: Tx, task_id: str) -> QueueRow | None:
    """Keep a task as it is until the transaction ends; gives its place in the queue, None when it has none.

    ``TaskChanged`` if it was sent into the queue again between the two locks.
    """
    row = await tx.fetchrow(LOCK_PLACE, task_id)
    queue_row = None if row is None else QueueRow(row["seq"], row["worker"])
    if await tx.fetchval(LOCK_TASK, task_id) != (None if queue_row is None else queue_row.seq):
        raise TaskChanged
    return queue_row


LOCK_UNCLAIMED = """
SELECT place.task_id FROM headrace.task_queue AS place
WHERE place.seq IN (SELECT queue_seq FROM headrace.tasks WHERE id = ANY ($1::varchar[])) AND place.worker IS NULL
ORDER BY place.seq
FOR UPDATE SKIP LOCKED
"""


async def lock_unclaimed(tx: Tx, task_ids: Sequence[str]) -> list[str]:
    """Lock the unclaimed ones of these against claims; tasks that are locked at this moment are skipped."""
    return [row["task_id"] for row in await tx.fetch(LOCK_UNCLAIMED, task_ids)]


LEAVE_QUEUE = "DELETE FROM headrace.task_queue WHERE seq = $1 AND worker IS NULL RETURNING units"
# How long canceling waits while another transaction has locked the units of the task's owner.
LONGEST_WAIT = timedelta(seconds=2)
LOCK_HELD_UNITS = "SELECT headrace.lock_held_units($1, $2)"
RELEASE_HOLDS = "SELECT headrace.settle_holds(ARRAY[$1], ARRAY['CANCELED'], NULL)"
CANCEL_WAITING = """
WITH logged AS (
  INSERT INTO headrace.task_logs (task_id, attempt, status, message) VALUES ($1, 0, 'CANCELED', $2)
)
UPDATE headrace.tasks
SET status = 'CANCELED', queue_seq = NULL, cancel_requested_at = coalesce(cancel_requested_at, now()), eta_sec = NULL,
    finished_at = now(), updated_at = now(), version = version + 1
WHERE id = $1 AND status IN ('UPLOADED', 'QUEUED')
"""


async def cancel_waiting(
    tx: Tx, task_id: str, queue_row: QueueRow | None, *, message: str, patient: bool = True
) -> None:
    """End a task that does not run. The caller has locked it. ``RowsLocked`` if another transaction has locked what its
    units go back to: after ``LONGEST_WAIT``, or at once if not ``patient``."""
    left = None if queue_row is None else await tx.fetchrow(LEAVE_QUEUE, queue_row.seq)
    if queue_row is not None and left is None:
        raise TaskChanged
    if await tx.count(CANCEL_WAITING, task_id, message) == 0:
        raise TaskChanged
    if left is not None and left["units"] is not None:
        if patient:
            await tx.execute(LOCK_HELD_UNITS, [task_id], LONGEST_WAIT)
        await tx.execute(RELEASE_HOLDS, task_id)


ASK_TO_CANCEL = """
WITH asked AS (
  UPDATE headrace.task_queue SET cancel_requested = true WHERE seq = $2 AND worker IS NOT NULL RETURNING task_id
), noted AS (
  UPDATE headrace.tasks AS task
  SET cancel_requested_at = now(), updated_at = now(), version = task.version + 1
  FROM asked
  WHERE task.id = $1 AND task.id = asked.task_id
  RETURNING task.id
)
SELECT pg_notify('headrace_cancel', '') FROM noted
"""


async def ask_to_cancel(tx: Tx, task_id: str, queue_row: QueueRow) -> None:
    """Tell the worker that runs it to stop. The caller has locked it."""
    if not await tx.fetch(ASK_TO_CANCEL, task_id, queue_row.seq):
        raise TaskChanged


# The attempt keeps counting, so that the fence of a late worker and the names of steps stay unique.
REQUEUE = """
WITH place AS (
  SELECT assigned.lane_id, assigned.route_id,
         CASE WHEN task.left_to_type IS NULL THEN -task.priority ELSE 0 END AS precedence
  FROM headrace.tasks AS task
  CROSS JOIN LATERAL (
    SELECT left_to_type IS NULL AS settled  -- no settings of its type are missing
  ) AS type
  CROSS JOIN LATERAL headrace.assign_lane(
    task.queue, task.task_type, task.user_id, CASE WHEN type.settled THEN coalesce(task.limit_key, '') ELSE '' END,
    CASE WHEN type.settled THEN coalesce(task.labels, '{}') ELSE headrace.undeclared() END,
    type.settled AND task.max_attempts = 1
  ) AS assigned
  WHERE task.id = $1
), moved AS (
  UPDATE headrace.tasks
  SET status = 'QUEUED', queue_seq = nextval('headrace.task_queue_seq_seq'), retries = 0, progress = 0, eta_sec = NULL,
      result = NULL, error_code = NULL, error_message = NULL, worker_id = NULL, cancel_requested_at = NULL,
      run_at = now(), queued_at = now(), started_at = NULL, finished_at = NULL, updated_at = now(),
      version = version + 1
  WHERE id = $1 AND status IN ('FAILED', 'CANCELED')
  RETURNING id, queue_seq, attempt
), queued AS (
  INSERT INTO headrace.task_queue (seq, run_at, lane_id, route_id, precedence, attempt, task_id, units)
  SELECT moved.queue_seq, now(), place.lane_id, place.route_id, place.precedence, moved.attempt, moved.id, $3
  FROM moved, place
), logged AS (
  INSERT INTO headrace.task_logs (task_id, attempt, status, message) SELECT id, 0, 'RETRIED', $2 FROM moved
), woken AS (
  SELECT pg_notify('headrace_tasks', '') FROM headrace.workers WHERE ended_at IS NULL AND asleep LIMIT 1
)
SELECT moved.id FROM moved LEFT JOIN woken ON true
"""


async def requeue(tx: Tx, task_id: str, *, message: str, units: int | None) -> None:
    """Send a task that failed or was canceled into the queue again. The caller has locked it."""
    if not await tx.fetch(REQUEUE, task_id, message, units):
        raise TaskChanged


SOFT_DELETE = """
UPDATE headrace.tasks
SET deleted_at = now(), updated_at = now(), version = version + 1, payload = NULL, result = NULL, error_message = NULL
WHERE id = $1 AND status IN ('SUCCEEDED', 'FAILED', 'CANCELED') AND deleted_at IS NULL
"""


# Along the unique key: tasks that one user has submitted with a key within a day.
FORGET_ANSWER = """
UPDATE headrace.idempotency_keys SET response_json = response_json || '{"payload": null, "result": null}'
WHERE scope IN ('tasks.create', 'assets.detect') AND user_id = $1 AND result_task_id = $2 AND response_json ? 'payload'
"""


async def soft_delete(tx: Tx, task_id: str, *, user_id: str) -> None:
    """Empty and hide a task that is over, and what a repeated request would still show of it. The caller has locked
    it."""
    if await tx.count(SOFT_DELETE, task_id) == 0:
        raise TaskChanged
    await tx.execute(FORGET_ANSWER, user_id, task_id)


# Of many at once, those without a lock at this moment: it never waits for a row while it holds others.
CANCEL_MANY = """
WITH picked AS MATERIALIZED (
  SELECT q.seq, q.task_id, q.units
  FROM headrace.task_queue AS q
  WHERE q.worker IS NULL
    AND q.seq = ANY (ARRAY(SELECT task.queue_seq FROM headrace.tasks AS task WHERE task.id = ANY ($1)))
  ORDER BY q.seq
  FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM headrace.task_queue WHERE seq = ANY (ARRAY(SELECT seq FROM picked))
), moved AS (
  UPDATE headrace.tasks AS task
  SET status = 'CANCELED', queue_seq = NULL, cancel_requested_at = coalesce(cancel_requested_at, now()), eta_sec = NULL,
      finished_at = now(), updated_at = now(), version = task.version + 1
  FROM picked
  WHERE task.id = picked.task_id AND task.queue_seq = picked.seq AND task.status = 'QUEUED'
  RETURNING task.id, task.task_type, task.user_id, task.attempt, task.schedule_uid, picked.units
), logged AS (
  INSERT INTO headrace.task_logs (task_id, attempt, status, message) SELECT id, 0, 'CANCELED', $2 FROM moved
)
SELECT moved.*, taken.out FROM (SELECT count(*) AS out FROM picked) AS taken LEFT JOIN moved ON true
"""
RELEASE_ALL_HOLDS = (
    "SELECT headrace.settle_holds($1, array_fill('CANCELED'::text, ARRAY[cardinality($1::text[])]), NULL)"
)


async def cancel_many(tx: Tx, task_ids: Sequence[str], *, message: str) -> list[Row]:
    """End those of these that wait and are not being claimed; gives them. ``TaskChanged`` if one is neither;
    ``RowsLocked`` names those whose owners' units another transaction has locked: it does not wait for them."""
    rows = await tx.fetch(CANCEL_MANY, list(task_ids), message)
    moved = [row for row in rows if row["id"] is not None]
    if rows[0]["out"] != len(moved):  # taken out of the queue, and not ended: the whole statement is void
        raise TaskChanged
    metered = [row["id"] for row in moved if row["units"] is not None]
    if metered:
        await tx.execute(RELEASE_ALL_HOLDS, metered)
    return moved


DELETE_MANY = """
WITH gone AS (
  UPDATE headrace.tasks
  SET deleted_at = now(), updated_at = now(), version = version + 1, payload = NULL, result = NULL, error_message = NULL
  WHERE id = ANY ($1) AND status IN ('SUCCEEDED', 'FAILED', 'CANCELED') AND deleted_at IS NULL
  RETURNING id, user_id
), forgotten AS (
  UPDATE headrace.idempotency_keys AS answer SET response_json = response_json || '{"payload": null, "result": null}'
  FROM gone
  WHERE answer.scope IN ('tasks.create', 'assets.detect') AND answer.user_id = gone.user_id
    AND answer.result_task_id = gone.id AND answer.response_json ? 'payload'
)
SELECT id FROM gone
"""


async def delete_many(tx: Tx, task_ids: Sequence[str]) -> list[str]:
    """Empty and hide those of these that are over, as ``soft_delete`` does with one; gives them."""
    # In order: two that delete the same tasks at once wait for each other, and never in a circle.
    return [row["id"] for row in await tx.fetch(DELETE_MANY, sorted(task_ids))]
