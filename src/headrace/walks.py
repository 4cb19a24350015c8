"""Lists that read a bounded number of rows, whatever their filter and however many rows the table has.

A statement walks along one index, or merges several parts of it, over at most ``ROWS`` rows, and filters the rows it
reads. A page takes at most ``STATEMENTS`` walks. If they end before the page is full, the page is short, and its cursor
continues where they ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from headrace.database import Row, Tx
from headrace.sql import Mark, Where

ROWS, STATEMENTS = 5000, 2
MIN_ROWS = 200  # of each walk, if many are merged
# Otherwise the planner may read and sort all rows of a user or an endpoint, where the table is small or it takes the
# average for them.
IN_INDEX_ORDER = "SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off"

Item = TypeVar("Item")

Statement = Callable[[Mark | None, int], tuple[str, Sequence[object]]]
"""The SQL and the arguments of one walk from a mark on, for at most this many items."""


@dataclass(frozen=True, slots=True)
class Found(Generic[Item]):
    """Items of a list, newest first. ``resume`` is set when the walks ended before the list did."""

    items: Sequence[Item]
    resume: Mark | None = None


def share(count: int) -> int:
    """The rows that each of several walks of one statement reads."""
    return ROWS if count <= 1 else max(MIN_ROWS, ROWS // count)


def bound(rest: Where, limit: int, *, rows: int | None = None) -> int:
    """The rows that a walk has to read for a page: if the index answers the whole filter, no more than it shows."""
    return (rows or ROWS) if rest.clauses else limit


def source(table: str, where: Where, order: str, *, rows: int | None = None) -> str:
    """One walk, for FROM: its rows, numbered in their order as ``walked``. ``where`` holds what the index answers."""
    return (
        f"(SELECT *, row_number() OVER (ORDER BY {order}) AS walked FROM {table} {where.sql} "
        f"ORDER BY {order} LIMIT {rows or ROWS})"
    )


def selection(
    columns: str,
    sources: Sequence[str],
    name: str,
    rest: Where,
    order: str,
    *,
    joins: str = "",
    rows: int | None = None,
) -> str:
    """The rows of one or more sources that match the rest of the filter, and the last row of each, which says how far
    it came. Two more columns tell them apart: ``fits`` and ``walked``. The next placeholder is the limit.
    """
    fits = " AND ".join(rest.clauses) or "true"
    return (
        f"SELECT {columns}, {name}.walked, {fits} AS fits FROM ({' UNION ALL '.join(sources)}) AS {name} {joins} "
        f"WHERE ({fits}) OR {name}.walked = {rows or ROWS} ORDER BY {order} LIMIT ${rest.next}"
    )


async def walk(
    tx: Tx,
    statement: Statement,
    item: Callable[[Row], Item],
    mark: Callable[[Row], Mark],
    *,
    older_than: Mark | None,
    limit: int,
    rows: int | None = None,
    statements: int = STATEMENTS,
) -> Found[Item]:
    """Up to ``limit`` items of the list after a mark."""
    items: list[Item] = []
    resume = older_than
    for _ in range(statements):
        sql, args = statement(resume, limit - len(items))
        end: Mark | None = None
        for row in await tx.fetch(sql, *args):
            if row["fits"]:
                items.append(item(row))
            if row["walked"] == (rows or ROWS) and len(items) < limit:
                end = mark(row)  # rows after it, of another walk, are read again by the next statement
                break
        if end is None:
            return Found(items)
        resume = end
    return Found(items, resume)
