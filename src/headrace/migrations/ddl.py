"""The whole schema as one page of SQL, read from the catalog of a migrated database: how it is now.

For reading, not for running: partitions are left out, and `headrace migrate` makes a database.
"""

import re
from collections.abc import Iterable, Sequence

from headrace.database import Row, Tx

HEADER = """\
-- For reading, not for running: partitions, sequences and the schema itself are left out.
-- Rendered from the catalog of a migrated database by `make docs`; edit src/headrace/migrations instead:
-- NNNN_package.up.sql has the tables, functions/, triggers/ and views/ a file for each definition.
"""

TABLES = """
SELECT c.oid, c.relname AS name, c.relpersistence = 'u' AS unlogged, c.reloptions AS options,
       pg_get_partkeydef(c.oid) AS partitioned_by, obj_description(c.oid, 'pg_class') AS comment
FROM pg_class AS c
WHERE c.relnamespace = 'headrace'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname
"""
COLUMNS = """
SELECT a.attrelid AS oid, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
       CASE a.attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT' END AS counted,
       pg_get_expr(d.adbin, d.adrelid) AS preset, col_description(a.attrelid, a.attnum) AS comment
FROM pg_attribute AS a
LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY ($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
CONSTRAINTS = """
SELECT conrelid AS oid, conname AS name, pg_get_constraintdef(oid) AS text
FROM pg_constraint
WHERE conrelid = ANY ($1::oid[]) AND contype IN ('p', 'u', 'f', 'c')
ORDER BY conrelid, array_position(ARRAY['p', 'u', 'f', 'c'], contype::text), conname
"""
INDEXES = """
SELECT indrelid AS oid, pg_get_indexdef(indexrelid) AS text
FROM pg_index
WHERE indrelid = ANY ($1::oid[])
  AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u'))
ORDER BY indrelid, indexrelid::regclass::text
"""
TRIGGERS = """
SELECT tgrelid AS oid, pg_get_triggerdef(oid) AS text
FROM pg_trigger
WHERE tgrelid = ANY ($1::oid[]) AND NOT tgisinternal
ORDER BY tgrelid, tgname
"""
# What the application may do: with whole tables, and with single columns of others.
GRANTS = """
SELECT c.oid, string_agg(privilege, ', ' ORDER BY position) AS text
FROM pg_class AS c
CROSS JOIN LATERAL (
  SELECT privilege || CASE WHEN has_table_privilege('headrace_app', c.oid, privilege) THEN '' ELSE ' (' || (
    SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
      AND has_column_privilege('headrace_app', c.oid, attnum, privilege)
  ) || ')' END AS privilege, position
  FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) WITH ORDINALITY AS asked (privilege, position)
  WHERE has_table_privilege('headrace_app', c.oid, privilege)
     OR privilege <> 'DELETE' AND has_any_column_privilege('headrace_app', c.oid, privilege)
) AS granted
WHERE c.oid = ANY ($1::oid[])
GROUP BY c.oid
"""
VIEWS = """
SELECT oid, relname AS name, pg_get_viewdef(oid) AS text, obj_description(oid, 'pg_class') AS comment
FROM pg_class
WHERE relnamespace = 'headrace'::regnamespace AND relkind = 'v'
ORDER BY relname
"""
# Their bodies are in functions/, and nowhere else.
FUNCTIONS = """
SELECT proname AS name, pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result,
       obj_description(oid, 'pg_proc') AS comment, has_function_privilege('headrace_app', oid, 'EXECUTE') AS granted
FROM pg_proc
WHERE pronamespace = 'headrace'::regnamespace
ORDER BY proname, oid::regprocedure::text
"""


async def render(tx: Tx) -> str:
    """Tables with what hangs on them, then views, then functions."""
    tables = await tx.fetch(TABLES)
    oids = [table["oid"] for table in tables]
    parts = [await _by_table(tx, query, oids) for query in (COLUMNS, CONSTRAINTS, INDEXES, TRIGGERS, GRANTS)]
    pages = [HEADER, *(_table(table, *(part.get(table["oid"], []) for part in parts)) for table in tables)]
    pages += [await _view(tx, view) for view in await tx.fetch(VIEWS)]
    pages += [_function(function) for function in await tx.fetch(FUNCTIONS)]
    return _legible("\n\n".join(page.rstrip() for page in pages) + "\n")


def _legible(text: str) -> str:
    """The catalog spells out every cast; people do not write them."""
    text = text.replace("timestamp with time zone", "timestamptz")
    text = re.sub(r"::character varying(?!\()(\[\])?", "", text)
    text = re.sub(r"\((\w+(?:\.\w+)?)\)::text(?!\[)", r"\1", text)
    text = re.sub(r"= ANY \(\(ARRAY\[(.*?)\]\)::text\[\]\)", r"IN (\1)", text)
    return re.sub(r"'::text(?!\[)", "'", text.replace("character varying", "varchar"))


async def _by_table(tx: Tx, query: str, oids: Sequence[int]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in await tx.fetch(query, oids):
        found.setdefault(row["oid"], []).append(row)
    return found


def _table(
    table: Row, columns: list[Row], constraints: list[Row], indexes: list[Row], triggers: list[Row], grants: list[Row]
) -> str:
    name = f"headrace.{table['name']}"
    inside = [*map(_column, columns), *(f"CONSTRAINT {row['name']} {row['text']}" for row in constraints)]
    tail = f" PARTITION BY {table['partitioned_by']}" if table["partitioned_by"] else ""
    tail += f" WITH ({', '.join(table['options'])})" if table["options"] else ""
    lines = [
        f"CREATE {'UNLOGGED ' * table['unlogged']}TABLE {name} (\n  " + ",\n  ".join(inside) + f"\n){tail};",
        *(f"{row['text']};" for row in (*indexes, *triggers)),
        *(f"GRANT {row['text']} ON {name} TO headrace_app;" for row in grants),
        *_comments(f"TABLE {name}", table["comment"]),
        *(line for row in columns for line in _comments(f"COLUMN {name}.{row['name']}", row["comment"])),
    ]
    return "\n".join(lines)


def _column(column: Row) -> str:
    words = [column["name"], column["type"]]
    if column["required"]:
        words.append("NOT NULL")
    if column["counted"]:
        words.append(f"GENERATED {column['counted']} AS IDENTITY")
    if column["preset"] is not None:
        words.append(f"DEFAULT {column['preset']}")
    return " ".join(words)


async def _view(tx: Tx, view: Row) -> str:
    name = f"headrace.{view['name']}"
    columns, grants = await tx.fetch(COLUMNS, [view["oid"]]), await tx.fetch(GRANTS, [view["oid"]])
    lines = [
        f"CREATE VIEW {name} AS\n{view['text']}",
        *(f"GRANT {row['text']} ON {name} TO headrace_app;" for row in grants),
        *_comments(f"VIEW {name}", view["comment"]),
        *(line for row in columns for line in _comments(f"COLUMN {name}.{row['name']}", row["comment"])),
    ]
    return "\n".join(lines)


def _function(function: Row) -> str:
    lines = [
        f"-- {function['comment']}" if function["comment"] else "",
        f"-- headrace.{function['name']}({function['arguments']})"
        + (f" RETURNS {function['result']}" if function["result"] else ""),
        f"--   in functions/{function['name']}.sql{'' if function['granted'] else '; for the owner alone'}",
    ]
    return "\n".join(line for line in lines if line)


def _comments(what: str, comment: str | None) -> Iterable[str]:
    return [] if comment is None else [f"COMMENT ON {what} IS '{comment.replace(chr(39), chr(39) * 2)}';"]
