"""Ends that a worker cannot write before it stops: it leaves them with their claims, and the reaper writes them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from headrace.database import Database
from headrace.tasks.model import Claimed, Ending, Outcome
from headrace.tasks.worker.store import MAX_DELAY, Identity

# The claim keeps the end of its attempt; the reaper writes it. Fenced as every write is.
HAND_OVER = """
UPDATE headrace.task_queue AS q
SET ended = jsonb_build_object('outcome', given.outcome, 'result', given.result, 'error_code', given.error_code,
                               'error_message', given.error_message, 'saved', given.saved,
                               'delay_seconds', given.delay_seconds, 'spends_attempt', given.spends_attempt)
FROM unnest($2::bigint[], $3::integer[], $4::text[], $5::jsonb[], $6::text[], $7::text[], $8::jsonb[], $9::float8[],
            $10::boolean[])
     AS given (seq, attempt, outcome, result, error_code, error_message, saved, delay_seconds, spends_attempt)
WHERE q.seq = ANY ($2) AND q.seq = given.seq AND q.worker = $1 AND q.attempt = given.attempt
RETURNING q.seq
"""


async def hand_over(db: Database, worker: Identity, endings: Sequence[Ending]) -> int:
    """Leave these ends with their claims, for the reaper to write; gives how many were still ours."""
    rows = await db.fetch_alone(
        HAND_OVER,
        worker.number,
        [each.claimed.seq for each in endings],
        [each.claimed.attempt for each in endings],
        [each.outcome for each in endings],
        [each.result for each in endings],
        [each.error_code for each in endings],
        [each.error_message for each in endings],
        [None if each.claimed.saved is None else dict(each.claimed.saved) for each in endings],
        [min(each.delay, MAX_DELAY).total_seconds() for each in endings],
        [each.spends_attempt for each in endings],
    )
    return len(rows)


def handed_over(claimed: Claimed, ended: Mapping[str, Any]) -> Ending:
    """The end that a worker left with its claim."""
    claimed.saved = ended["saved"]
    return Ending(
        claimed,
        Outcome(ended["outcome"]),
        result=ended["result"],
        error_code=ended["error_code"],
        error_message=ended["error_message"],
        delay=timedelta(seconds=ended["delay_seconds"]),
        spends_attempt=ended["spends_attempt"],
    )


# Nothing runs here any more: the reaper need not wait for the end of the lease.
FALL_SILENT = """
UPDATE headrace.workers AS worker SET heartbeat_at = now() - lease - interval '1 second'
WHERE number = $1 AND ended_at IS NULL
  AND NOT EXISTS (SELECT FROM headrace.task_queue AS q WHERE q.worker = worker.number AND q.ended IS NULL)
"""


async def fall_silent(db: Database, worker: Identity) -> None:
    """Let the reaper settle the rest at once, if all of it is ends. The heartbeat must have stopped."""
    await db.fetch_alone(FALL_SILENT, worker.number)
