"""Interests of consumers in events. An event that matches no interest is not written.

A writer of events checks interests in the transaction of the change, under a shared lock. Adding an interest takes that
lock exclusively: it waits for the transactions that have already checked. So an interest receives the events of every
change that commits after it. docs/why/events.md explains it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from headrace.database import Tx
from headrace.errors import Unavailable

_LOCK_TIMEOUT = timedelta(seconds=10)


class EventWritersBusy(Unavailable):
    """A transaction that writes events stays open, which blocks new subscriptions: try again."""

    code = "event_writers_busy"


@dataclass(frozen=True, slots=True)
class Interest:
    """Events of these types, optionally only of one user or of tasks of one type."""

    pattern: str  # ``task.created``, all with a prefix (``task.*``), or all (``*``)
    user_id: str | None = None
    task_type: str | None = None


FIND = "SELECT pattern, user_id, task_type FROM headrace.event_interests WHERE consumer = $1 AND key = $2"
AWAIT_WRITERS = "SELECT headrace.await_event_writers($1)"
DELETE = """
DELETE FROM headrace.event_interests AS known
USING unnest($3::varchar[], $4::varchar[], $5::varchar[]) AS given (pattern, user_id, task_type)
WHERE known.consumer = $1 AND known.key = $2 AND known.pattern = given.pattern
  AND known.user_id IS NOT DISTINCT FROM given.user_id AND known.task_type IS NOT DISTINCT FROM given.task_type
"""
INSERT = """
INSERT INTO headrace.event_interests (consumer, key, pattern, user_id, task_type)
SELECT $1, $2, given.* FROM unnest($3::varchar[], $4::varchar[], $5::varchar[]) AS given
ON CONFLICT DO NOTHING
"""


async def declare(
    tx: Tx, consumer: str, key: str, interests: Sequence[Interest], *, patience: timedelta = _LOCK_TIMEOUT
) -> None:
    """Replace the interests of a consumer under one key; they take effect with the commit.

    Adding one waits for open transactions that checked interests before, and blocks writers of events until the commit:
    declare last. ``EventWritersBusy`` when such a transaction stays open.
    """
    wanted = set(interests)
    known = {Interest(*row) for row in await tx.fetch(FIND, consumer, key)}
    if gone := known - wanted:
        await tx.execute(DELETE, consumer, key, *_columns(gone))
    if added := wanted - known:
        if not await tx.fetchval(AWAIT_WRITERS, patience):
            raise EventWritersBusy(retry_after=patience)
        await tx.execute(INSERT, consumer, key, *_columns(added))


async def withdraw(tx: Tx, consumer: str, key: str) -> None:
    """Remove the interests of a consumer under one key. Takes no lock: a superfluous event does no harm."""
    await declare(tx, consumer, key, ())


LIST_CONSUMERS = "SELECT DISTINCT consumer FROM headrace.event_interests WHERE key = '' ORDER BY 1"


async def list_consumers(tx: Tx) -> list[str]:
    """Consumers with static interests, including those that no relay runs any more."""
    return [row["consumer"] for row in await tx.fetch(LIST_CONSUMERS)]


def _columns(interests: set[Interest]) -> tuple[list[str], list[str | None], list[str | None]]:
    ordered = sorted(interests, key=repr)
    return (
        [each.pattern for each in ordered],
        [each.user_id for each in ordered],
        [each.task_type for each in ordered],
    )
