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
    """Rows of one table that are deleted once they are old enough: how old, is a setting.

    ``name`` is the column that people know a row by, where rows can be written to the archive before they go. ``along``
    are tables whose rows go with them and that no foreign key sees to, with the column that names the row.
    """

    table: str
    due: str  # SQL: the keys of at most $2 rows that were over before $1, locked; leaves alone what others have locked
    cron: str
    description: str
    key: str = "id"
    name: str | None = None
    along: tuple[tuple[str, str], ...] = ()

    @property
    def delete(self) -> str:
        """SQL: deletes what is due."""
        keys = f"ANY (ARRAY(SELECT {self.key} FROM due))"
        others = "".join(
            f", gone_{table} AS (DELETE FROM headrace.{table} WHERE {column} = {keys})" for table, column in self.along
        )
        return f"WITH due AS ({self.due}){others} DELETE FROM headrace.{self.table} WHERE {self.key} = {keys}"


@dataclass(frozen=True, slots=True)
class Purge:
    """Rows that are of no use any more, whatever their age in days: deleted every few minutes."""

    name: str
    run: Callable[[Tx, int], Awaitable[int]]  # deletes at most so many, and says how many


async def purge(db: Database, purges: Sequence[Purge]) -> dict[str, int]:
    """One pass over all of them; gives how many rows went, by name."""
    return {each.name: await _in_batches(db, each) for each in purges}


async def _in_batches(db: Database, each: Purge) -> int:
    gone = 0
    for _ in range(_BATCHES):
        async with db.transaction() as tx:
            batch = await each.run(tx, BATCH)
        gone += batch
        if batch < BATCH:
            break
    return gone
