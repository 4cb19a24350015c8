"""What has served its time goes, in small batches, so that nobody waits behind a long delete.

Each package says what of its own goes and when; the assembly gathers it, and schedules that ship do it
(``operations.maintenance``). Any number of processes may do it at once, and any of them may be killed.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from headrace.database import Database, Tx

BATCH = 1000
_BATCHES = 100  # in one pass; the rest waits for the next


@dataclass(frozen=True, slots=True)
class RowRetention:
    """Rows of one table that are deleted once they are old enough: how old, is a setting."""

    table: str
    delete: str  # SQL: deletes at most $2 rows that were over before $1; leaves alone what others have locked
    cron: str
    description: str


@dataclass(frozen=True, slots=True)
class Purge:
    """Rows that are of no use any more, whatever their age in days: deleted every few minutes."""

    name: str
    run: Callable[[Tx, int], Awaitable[int]]  # deletes at most so many, and says how many


async def purge(db: Database, purges: Sequence[Purge]) -> dict[str, int]:
    """One pass over all of them; gives how many rows went, by name. One that fails does not stop the others."""
    gone: dict[str, int] = {}
    failed: list[Exception] = []
    for each in purges:
        try:
            gone[each.name] = await _in_batches(db, each)
        except Exception as exc:  # noqa: BLE001 - raised below, with the others
            failed.append(exc)
    if failed:
        raise failed[0] if len(failed) == 1 else ExceptionGroup("several purges failed", failed)
    return gone


async def _in_batches(db: Database, each: Purge) -> int:
    gone = 0
    for _ in range(_BATCHES):
        async with db.transaction() as tx:
            batch = await each.run(tx, BATCH)
        gone += batch
        if batch == 0:
            break
    return gone
