"""Deletes expired rows in small batches, so that no transaction waits behind a long delete.

Each package declares its retention; the assembly collects the declarations, and built-in schedules apply them
(``admin.maintenance``). Any number of processes may do so at once, and any of them may be killed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from headrace.database import Database, Tx

BATCH = 1000
_LINES = 200  # lines of one row deleted in one statement
_BATCHES = 100  # batches in one pass; the rest waits for the next

Keeps = Mapping[str, timedelta | None]
"""Retention by kind of row; None is for ever."""


class Journal(Protocol):
    """The progress of a walk over a table."""

    now: datetime
    marks: dict[str, dict[str, str]]  # positions reached by earlier runs

    async def note(self, tx: Tx, removed: int) -> None:
        """Record the number of rows removed in this transaction, and the present marks."""


Walk = Callable[[Database, Keeps, Journal], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RowRetention:
    """Retention of one table's rows by age; the age is a setting.

    ``name`` is the identifying column, for tables whose rows can be archived before their deletion. ``personal`` is a
    jsonb column and its fields with users' own words: the archive, which outlives accounts, omits them. ``lines`` is a
    dependent table without a foreign key, and its column that names the row; its rows are deleted as well.
    """

    table: str
    due: str  # SQL: the keys of at most $2 rows that ended before $1, locked; skips locked rows
    cron: str
    description: str
    key: str = "id"
    name: str | None = None
    personal: tuple[str, Sequence[str]] | None = None
    lines: tuple[str, str] | None = None
    also: str = ""  # further CTEs, which may use ``due``
    walk: Walk | None = None  # replaces the statement where the age differs by row

    @property
    def delete(self) -> str:
        """SQL that deletes due rows."""
        if self.lines is not None:
            return delete_with_lines(self.table, self.due, *self.lines)
        keys = f"ANY (ARRAY(SELECT {self.key} FROM due))"
        return f"WITH due AS ({self.due}){self.also} DELETE FROM headrace.{self.table} WHERE {self.key} = {keys}"


def delete_with_lines(table: str, due: str, lines: str, column: str) -> str:
    """SQL that deletes rows with their lines in another table. A row may have millions of lines: then each call deletes
    some of them, and the row with the last."""
    return _with_lines(due, lines, column) + _delete(table)


def count_with_lines(table: str, due: str, lines: str, column: str) -> str:
    """The same, returning the numbers of ``due`` and ``gone`` rows."""
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
    """Rows that become useless independent of retention settings: deleted every few minutes."""

    name: str
    run: Callable[[Tx, int], Awaitable[int]]  # deletes at most this many rows; returns the number


async def purge(db: Database, purges: Sequence[Purge]) -> dict[str, int]:
    """Run all purges once; returns the numbers of deleted rows by name. A failure does not stop the others."""
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
