"""Lists keep their index: a WHERE that is put together from the clauses in use, and from nothing else.

>>> where = Where().eq("user_id", user).among("status", states).older_than(("created_at", "id"), mark)
>>> newest_first = f"ORDER BY created_at DESC, id DESC LIMIT ${where.next}"
>>> rows = await tx.fetch(f"{SELECT} {where.sql} {newest_first}", *where.args, 20)

A filter that is None was not asked for and adds nothing. Values never enter the text, only numbered placeholders do.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

Mark = tuple[datetime, str]
"""Where a page ended: the instant and the id of its last row. The next page is what is older."""

_COLUMN = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?")
_WORD = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Where:
    """Conditions joined by AND. ``first`` is the number of its first placeholder, for statements with others before."""

    first: int = 1
    clauses: tuple[str, ...] = ()
    args: tuple[object, ...] = ()

    @property
    def sql(self) -> str:
        return f"WHERE {' AND '.join(self.clauses)}" if self.clauses else ""

    @property
    def next(self) -> int:
        """The number of the first free placeholder."""
        return self.first + len(self.args)

    def eq(self, column: str, value: object | None) -> Self:
        return self if value is None else self._and(f"{_name(column)} = ${self.next}", value)

    def is_word(self, column: str, value: str | None, *, by_bytes: bool = False) -> Self:
        """Equality with one of few words of ours, written out: how often each occurs is known to the planner, which
        does not look at a parameter once it keeps a plan. ``by_bytes`` only an index with the collation "C" serves."""
        if value is not None and not _WORD.fullmatch(value):
            raise ValueError(f"not a word of ours: {value!r}")
        collated = f'{_name(column)} COLLATE "C"' if by_bytes else _name(column)
        return self if value is None else self._and(f"{collated} = '{value}'")

    def is_not_word(self, column: str, value: str | None) -> Self:
        if value is not None and not _WORD.fullmatch(value):
            raise ValueError(f"not a word of ours: {value!r}")
        return self if value is None else self._and(f"{_name(column)} <> '{value}'")

    def not_prefixed(self, column: str, prefix: str | None) -> Self:
        return self if prefix is None else self._and(f"NOT starts_with({_name(column)}, ${self.next})", prefix)

    def among(self, column: str, values: Sequence[object] | None) -> Self:
        """One of these; of an empty list nothing is one."""
        if values is None:
            return self
        if len(values) == 1:  # plain equality keeps the index's order, = ANY does not
            return self.eq(column, values[0])
        return self._and(f"{_name(column)} = ANY(${self.next})", list(values))

    def is_null(self, column: str, wanted: bool | None = True) -> Self:
        return self if wanted is None else self._and(f"{_name(column)} IS {'' if wanted else 'NOT '}NULL")

    def in_any(self, columns: Sequence[str], value: object) -> Self:
        """At least one of these columns has this value."""
        return self._and(f"${self.next} IN ({', '.join(map(_name, columns))})", value)

    def older_than(self, columns: tuple[str, str], mark: tuple[object, object] | None) -> Self:
        """What follows the mark in a list with the newest first. Compared as pairs, so that an index serves."""
        if mark is None:
            return self
        pair = ", ".join(map(_name, columns))
        return self._and(f"({pair}) < (${self.next}, ${self.next + 1})", *mark)

    def below(self, column: str, bound: int | str | None) -> Self:
        return self if bound is None else self._and(f"{_name(column)} < ${self.next}", bound)

    def since(self, column: str, at: datetime | int | None) -> Self:
        return self if at is None else self._and(f"{_name(column)} >= ${self.next}", at)

    def until(self, column: str, at: datetime | int | None) -> Self:
        """Before this instant: the end of one range is the start of the next, and no row is in both."""
        return self if at is None else self._and(f"{_name(column)} < ${self.next}", at)

    def contains(self, column: str, labels: Mapping[str, object] | None) -> Self:
        """A jsonb column with at least these labels."""
        return self if not labels else self._and(f"{_name(column)} @> ${self.next}", dict(labels))

    def has_text(self, column: str, part: str | None) -> Self:
        """A column in which this text occurs, whatever the case; no character of it means anything special."""
        return self if not part else self._and(f"strpos(lower({_name(column)}), lower(${self.next})) > 0", part)

    def has_text_in(self, columns: Sequence[str], part: str | None) -> Self:
        """The same for at least one of several columns."""
        if not part:
            return self
        found = (f"strpos(lower({_name(column)}), lower(${self.next})) > 0" for column in columns)
        return self._and(f"({' OR '.join(found)})", part)

    def _and(self, clause: str, *args: object) -> Self:
        return replace(self, clauses=(*self.clauses, clause), args=(*self.args, *args))


def _name(column: str) -> str:
    # Columns are written by us, never by a request; this keeps it so.
    if not _COLUMN.fullmatch(column):
        raise ValueError(f"not a column: {column!r}")
    return column
