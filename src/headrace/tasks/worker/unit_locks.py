"""SQL: waiting, up to a time, for the entitlements that ends of metered tasks give units back to."""

from collections.abc import Sequence
from datetime import timedelta

from headrace.database import Tx
from headrace.tasks.model import Ending
from headrace.tasks.worker.store import Identity

# The claims first, in the engine's order of locks; while they are locked no other transaction can end these tasks.
WAIT = """
WITH mine AS MATERIALIZED (
  SELECT q.task_id FROM headrace.task_queue AS q
  WHERE q.seq = ANY ($2::bigint[]) AND q.worker = $1 AND q.units IS NOT NULL
  ORDER BY q.seq
  FOR UPDATE
)
SELECT headrace.lock_held_units(ARRAY(SELECT task_id::text FROM mine), $3::interval)
"""


async def wait_for_units(tx: Tx, worker: Identity, endings: Sequence[Ending], *, wait: timedelta) -> None:
    """Lock the entitlements that these ends may write to; the database raises lock_not_available (``RowsLocked``) if
    another transaction has them for longer than ``wait``."""
    await tx.execute(WAIT, worker.number, [each.claimed.seq for each in endings], wait)
