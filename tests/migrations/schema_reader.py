"""What PostgreSQL knows of a schema's tables, and how two schemas differ."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.database import Tx


@dataclass(frozen=True)
class Column:
    type: str
    required: bool
    default: str | None


@dataclass(frozen=True)
class Index:
    columns: tuple[str, ...]
    unique: bool
    nulls_distinct: bool
    predicate: str | None

    def __str__(self) -> str:
        where = f" where {plain(self.predicate)}" if self.predicate else ""
        nulls = "" if self.nulls_distinct else " nulls not distinct"
        return f"{'unique ' if self.unique else ''}({', '.join(self.columns)}){nulls}{where}"

    def serves(self, asked: "Index") -> bool:
        """Whether every search that ``asked`` was made for can use this one as well."""
        return self.columns[: len(asked.columns)] == asked.columns and self.predicate is None and not asked.unique


@dataclass
class Table:
    columns: dict[str, Column] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)
    foreign_keys: dict[str, str] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    primary_key: Index | None = None


Schema = dict[str, Table]

COLUMNS = """
SELECT relname, attname, format_type(atttypid, atttypmod) AS type, attnotnull, pg_get_expr(adbin, adrelid) AS value
FROM pg_class
JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition
ORDER BY relname, attnum
"""

CONSTRAINTS = """
SELECT relname, conname, contype::text, pg_get_constraintdef(pg_constraint.oid) AS definition
FROM pg_constraint
JOIN pg_class ON pg_class.oid = conrelid
WHERE relnamespace = $1::regnamespace AND NOT relispartition AND contype IN ('c', 'f')
"""

INDEXES = """
SELECT
  tables.relname AS table_name, indexes.relname AS index_name, indisunique, indisprimary, indnullsnotdistinct,
  ARRAY(
    SELECT pg_get_indexdef(indexrelid, place, true) || CASE WHEN indoption[place - 1] & 1 = 1 THEN ' DESC' ELSE '' END
    FROM generate_series(1, indnkeyatts) AS place
  ) AS columns,
  pg_get_expr(indpred, indrelid, true) AS predicate
FROM pg_index
JOIN pg_class AS tables ON tables.oid = indrelid
JOIN pg_class AS indexes ON indexes.oid = indexrelid
WHERE tables.relnamespace = $1::regnamespace AND NOT tables.relispartition
"""


async def read_schema(tx: Tx, name: str) -> Schema:
    schema: Schema = {}
    for row in await tx.fetch(COLUMNS, name):
        table = schema.setdefault(row["relname"], Table())
        value = row["value"] and _unqualified(row["value"], name)
        table.columns[row["attname"]] = Column(row["type"], row["attnotnull"], _same_default(value))
    for row in await tx.fetch(CONSTRAINTS, name):
        table = schema[row["relname"]]
        kind = table.checks if row["contype"] == "c" else table.foreign_keys
        kind[row["conname"]] = _unqualified(row["definition"], name)
    for row in await tx.fetch(INDEXES, name):
        table = schema[row["table_name"]]
        index = Index(tuple(row["columns"]), row["indisunique"], not row["indnullsnotdistinct"], row["predicate"])
        if row["indisprimary"]:
            table.primary_key = index
        else:
            table.indexes[row["index_name"]] = index
    return schema


def _unqualified(sql: str, schema: str) -> str:
    return re.sub(rf"\b{schema}\.", "", sql)


def _same_default(value: str | None) -> str | None:
    return {"CURRENT_TIMESTAMP": "now()", "NULL::character varying": None}.get(value or "", value)


def plain(expression: str) -> str:
    """An expression as a person would write it: PostgreSQL's casts and brackets left out."""
    text = re.sub(r"::[a-z]+( varying| with(out)? time zone)?(\(\d+\))?(\[\])?", "", expression)
    text = re.sub(r"= ANY \(+ARRAY\[(.*?)\]\)+", r"IN [\1]", text)
    return re.sub(r"\[(.*?)\]", r"(\1)", text.replace("(", "").replace(")", "").removeprefix("CHECK ").strip())


def differences(theirs: Schema, ours: Schema) -> Iterator[str]:
    """A line for everything that a document asks for and that we have differently or not at all."""
    for name, asked in theirs.items():
        if name not in ours:
            yield f"{name}: missing"
            continue
        found = ours[name]
        yield from _column_differences(name, asked, found)
        for check in asked.checks.values():
            if check not in found.checks.values():
                yield f"{name}: check {plain(check)}: missing"
        for constraint, key in asked.foreign_keys.items():
            if found.foreign_keys.get(constraint) != key:
                yield f"{name}: {constraint} {key}: {found.foreign_keys.get(constraint, 'missing')}"
        if asked.primary_key != found.primary_key:
            yield f"{name}: primary key {asked.primary_key}: {found.primary_key or 'missing'}"
        for index_name, index in asked.indexes.items():
            yield from _index_differences(name, index_name, index, found)


def _column_differences(name: str, asked: Table, found: Table) -> Iterator[str]:
    for column, wish in asked.columns.items():
        have = found.columns.get(column)
        if have is None:
            yield f"{name}.{column}: missing"
            continue
        if have.type != wish.type:
            yield f"{name}.{column}: {wish.type}: {have.type}"
        if have.required != wish.required:
            yield f"{name}.{column}: {'not null: null' if wish.required else 'null: not null'}"
        if have.default != wish.default:
            yield f"{name}.{column}: default {wish.default}: {have.default}"


def _index_differences(name: str, index_name: str, index: Index, found: Table) -> Iterator[str]:
    have = found.indexes.get(index_name)
    if have == index:
        return
    if re.search(r"_key\d*$", index_name) and index in found.indexes.values():
        return  # a UNIQUE without a name of its own; ours has one
    if have is not None:
        yield f"{name}: {index_name} {index}: {have}"
        return
    instead = sorted(other for other, candidate in found.indexes.items() if candidate.serves(index))
    yield f"{name}: {index_name} {index}: {'served by ' + instead[0] if instead else 'missing'}"
