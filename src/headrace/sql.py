"""Builds a WHERE only from the clauses in use, so that lists use their index.

>>> where = Where().eq("user_id", user).among("status", states).older_than(("created_at", "id"), mark)
>>> newest_first = f"ORDER BY created_at DESC, id DESC LIMIT ${where.next}"
>>> rows = await tx.fetch(f"{SELECT} {where.sql} {newest_first}", *where.args, 20)

A filter of None adds no clause. The SQL contains only numbered placeholders, never values.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Self

Mark = tuple[datetime, str]
"""The end of a page: the time and id of its last row. The next page has older rows."""

_COLUMN = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?")
_WORD = re.compile(r"[A-Za-z_]+")


@dataclass(frozen=True, slots=True)
class Where:
    """Conditions joined by AND. ``first`` is its first placeholder number, for statements with earlier ones."""

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
        """Equality with a constant of ours as a literal: the planner then uses its frequency, which a generic plan with
        a parameter does not. ``by_bytes`` matches an index with the collation "C"."""
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
        """One of these values; an empty list matches nothing."""
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
        """Rows after the mark in a newest-first list. Compared as pairs, which an index supports."""
        if mark is None:
            return self
        pair = ", ".join(map(_name, columns))
        return self._and(f"({pair}) < (${self.next}, ${self.next + 1})", *mark)

    def below(self, column: str, bound: int | str | None) -> Self:
        return self if bound is None else self._and(f"{_name(column)} < ${self.next}", bound)

    def since(self, column: str, at: datetime | int | None) -> Self:
        return self if at is None else self._and(f"{_name(column)} >= ${self.next}", at)

    def until(self, column: str, at: datetime | int | None) -> Self:
        """Before this time: ranges are half-open, so that adjacent ones do not overlap."""
        return self if at is None else self._and(f"{_name(column)} < ${self.next}", at)

    def not_after(self, column: str, day: date | None) -> Self:
        return self if day is None else self._and(f"{_name(column)} <= ${self.next}", day)

    def contains(self, column: str, labels: Mapping[str, object] | None) -> Self:
        """A jsonb column with at least these labels."""
        return self if not labels else self._and(f"{_name(column)} @> ${self.next}", dict(labels))

    def has_text(self, column: str, part: str | None) -> Self:
        """A column that contains this text, case-insensitive, without wildcards."""
        return self if not part else self._and(f"strpos(lower({_name(column)}), lower(${self.next})) > 0", part)

    def has_text_in(self, columns: Sequence[str], part: str | None) -> Self:
        """At least one of these columns contains this text."""
        if not part:
            return self
        found = (f"strpos(lower({_name(column)}), lower(${self.next})) > 0" for column in columns)
        return self._and(f"({' OR '.join(found)})", part)

    def _and(self, clause: str, *args: object) -> Self:
        return replace(self, clauses=(*self.clauses, clause), args=(*self.args, *args))


def _name(column: str) -> str:
    # Column names come from code, never from a request; this enforces it.
    if not _COLUMN.fullmatch(column):
        raise ValueError(f"not a column: {column!r}")
    return column
