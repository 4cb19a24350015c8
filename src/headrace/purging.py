"""What has served its time goes, in small batches, so that nobody waits behind a long delete.

Each package says what of its own goes and when; the assembly gathers it, and schedules that ship do it
(``operations.maintenance``). Any number of processes may do it at once, and any of them may be killed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from headrace.database import Database, Tx

BATCH = 1000
_LINES = 200  # of one row, in one statement
_BATCHES = 100  # in one pass; the rest waits for the next

Keeps = Mapping[str, timedelta | None]
"""How long, by what a row says; None is for ever."""


class Journal(Protocol):
    """What a walk over a table is given, and what it tells."""

    now: datetime
    marks: dict[str, dict[str, str]]  # up to where earlier runs have looked

    async def note(self, tx: Tx, removed: int) -> None:
        """So many rows went in this transaction; the marks are as they are now."""


Walk = Callable[[Database, Keeps, Journal], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RowRetention:
    """Rows of one table that are deleted once they are old enough: how old, is a setting.

    ``name`` is the column that people know a row by, where rows can be written to the archive before they go.
    ``personal`` is a jsonb column, and fields of it that hold people's own words: the archive, which outlives accounts,
    is written without them. ``lines`` is a table whose rows go with them and that no foreign key sees to, and the
    column that names the row.
    """

    table: str
    due: str  # SQL: the keys of at most $2 rows that were over before $1, locked; leaves alone what others have locked
    cron: str
    description: str
    key: str = "id"
    name: str | None = None
    personal: tuple[str, Sequence[str]] | None = None
    lines: tuple[str, str] | None = None
    also: str = ""  # further parts of the statement, with what is due as ``due``
    walk: Walk | None = None  # instead of the statement, where how old is not the same for all rows

    @property
    def delete(self) -> str:
        """SQL: deletes what is due."""
        if self.lines is not None:
            return delete_with_lines(self.table, self.due, *self.lines)
        keys = f"ANY (ARRAY(SELECT {self.key} FROM due))"
        return f"WITH due AS ({self.due}){self.also} DELETE FROM headrace.{self.table} WHERE {self.key} = {keys}"


def delete_with_lines(table: str, due: str, lines: str, column: str) -> str:
    """SQL: deletes rows with what another table says of them. There may be millions of lines of one row: then some of
    them go each time, and the row with the last."""
    return _with_lines(due, lines, column) + _delete(table)


def count_with_lines(table: str, due: str, lines: str, column: str) -> str:
    """The same, and says how many were ``due``, and how many are ``gone``."""
    return (
        f"{_with_lines(due, lines, column)}, gone AS ({_delete(table)} RETURNING id)\n"
        "SELECT (SELECT count(*) FROM due) AS due, (SELECT count(*) FROM gone) AS gone"
    )


def _delete(table: str) -> str:
    return f"""
DELETE FROM headrace.{table}
WHERE id = ANY (ARRAY(SELECT said.id FROM said WHERE coalesce(cardinality(said.lines), 0) < {_LINES}))"""


def _with_lines(due: str, lines: str, column: str) -> str:
    return f"""
WITH due AS MATERIALIZED ({due}), said AS MATERIALIZED (
  SELECT due.id, found.lines
  FROM due
  CROSS JOIN LATERAL (
    SELECT array_agg(line.id) AS lines
    FROM (SELECT id FROM headrace.{lines} WHERE {column} = due.id ORDER BY id LIMIT {_LINES}) AS line
  ) AS found
), removed AS (
  DELETE FROM headrace.{lines} WHERE id = ANY (ARRAY(SELECT unnest(said.lines) FROM said))
)"""


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
