"""The schema in Prisma's words (W-22), read from the catalog of a migrated database.

What Prisma cannot express (checks, partial and computed indexes, partitions) is in comments: the database enforces
it anyway. Partitions themselves are left out; writes to the table reach them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.database import Row, Tx

HEADER = """\
// Rendered from the migrations by `make docs`; edit there.
// For a Node backend beside Headrace: its migrations stay with `headrace migrate`, and DATABASE_URL ends in
// ?schema=headrace. Relations are named after their foreign keys.

generator client {
  provider = "prisma-client-js"
}

datasource db {
  provider = "postgresql"
  url      = env("DATABASE_URL")
}
"""

TABLES = """
SELECT c.oid, c.relname AS name, obj_description(c.oid, 'pg_class') AS comment, pg_get_partkeydef(c.oid) AS partitioned
FROM pg_class AS c
WHERE c.relnamespace = 'headrace'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname
"""
COLUMNS = """
SELECT a.attrelid AS oid, a.attname AS name, NOT a.attnotnull AS optional, a.attidentity <> '' AS counts,
       format_type(coalesce(t.oid, a.atttypid), a.atttypmod) AS type, t.oid IS NOT NULL AS is_array,
       pg_get_expr(d.adbin, d.adrelid) AS preset, col_description(a.attrelid, a.attnum) AS comment
FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid
LEFT JOIN pg_type AS t ON t.typarray = a.atttypid
LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = 'headrace'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
INDEXES = """
SELECT i.indrelid AS oid, c.relname AS name, i.indisprimary AS primary, i.indisunique AS unique, am.amname AS method,
       i.indpred IS NULL AND i.indexprs IS NULL AND NOT i.indnullsnotdistinct AS plain, pg_get_indexdef(c.oid) AS text,
       ARRAY(SELECT a.attname::text || CASE WHEN i.indoption[k - 1] & 1 = 1 THEN '(sort: Desc)' ELSE '' END
             FROM generate_series(1, i.indnkeyatts) AS k
             JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k - 1]
             ORDER BY k) AS columns
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_am AS am ON am.oid = c.relam
JOIN pg_class AS t ON t.oid = i.indrelid AND t.relnamespace = 'headrace'::regnamespace AND NOT t.relispartition
ORDER BY i.indrelid, c.relname
"""
CONSTRAINTS = """
SELECT o.conrelid AS oid, o.conname AS name, o.contype AS kind, target.relname AS target, o.confdeltype AS on_delete,
       o.confupdtype AS on_update, pg_get_constraintdef(o.oid) AS text,
       ARRAY(SELECT a.attname::text FROM unnest(o.conkey) WITH ORDINALITY AS k (number, place)
             JOIN pg_attribute AS a ON a.attrelid = o.conrelid AND a.attnum = k.number ORDER BY place) AS fields,
       ARRAY(SELECT a.attname::text FROM unnest(o.confkey) WITH ORDINALITY AS k (number, place)
             JOIN pg_attribute AS a ON a.attrelid = o.confrelid AND a.attnum = k.number ORDER BY place) AS points_at
FROM pg_constraint AS o
JOIN pg_class AS c ON c.oid = o.conrelid AND NOT c.relispartition
LEFT JOIN pg_class AS target ON target.oid = o.confrelid
WHERE o.connamespace = 'headrace'::regnamespace AND o.contype IN ('c', 'f') AND o.conparentid = 0
ORDER BY o.conrelid, o.conname
"""

# PostgreSQL's name → Prisma's type and, where it is not the type's own, the native attribute.
_TYPES = {
    "text": ("String", ""),
    "character varying": ("String", "@db.VarChar"),
    "character": ("String", "@db.Char"),
    "uuid": ("String", "@db.Uuid"),
    "inet": ("String", "@db.Inet"),
    "boolean": ("Boolean", ""),
    "smallint": ("Int", "@db.SmallInt"),
    "integer": ("Int", ""),
    "bigint": ("BigInt", ""),
    "numeric": ("Decimal", "@db.Decimal"),
    "real": ("Float", "@db.Real"),
    "double precision": ("Float", ""),
    "timestamp with time zone": ("DateTime", "@db.Timestamptz"),
    "timestamp without time zone": ("DateTime", "@db.Timestamp"),
    "date": ("DateTime", "@db.Date"),
    "jsonb": ("Json", ""),
    "bytea": ("Bytes", ""),
}
_ACTIONS = {"a": "NoAction", "r": "Restrict", "c": "Cascade", "n": "SetNull", "d": "SetDefault"}
_METHODS = {"hash": "Hash", "brin": "Brin", "gin": "Gin", "gist": "Gist"}
_LITERAL = re.compile(r"(?:'((?:[^']|'')*)'(?:::[a-z ]+(?:\(\d+\))?)?|(-?\d+)|(true|false))")


@dataclass(frozen=True, slots=True)
class _Relation:
    constraint: str
    table: str
    target: str
    name: str  # of the field that points
    back: str  # of the field on the other side
    line: str
    one_to_one: bool


async def render(tx: Tx) -> str:
    """The whole schema of this database as a Prisma schema."""
    tables = await tx.fetch(TABLES)
    columns = _by_table(await tx.fetch(COLUMNS))
    indexes = _by_table(await tx.fetch(INDEXES))
    constraints = _by_table(await tx.fetch(CONSTRAINTS))
    relations = [
        relation
        for table in tables
        for relation in _relations(table["name"], columns[table["oid"]], indexes, constraints, table["oid"])
    ]
    taken = {table["name"]: {column["name"] for column in columns[table["oid"]]} for table in tables}
    models = [
        "\n".join(
            [
                *_comments(table, indexes.get(table["oid"], []), constraints.get(table["oid"], [])),
                f"model {table['name']} {{",
                *(f"  {line}" for line in _fields(columns[table["oid"]])),
                *(f"  {line}" for line in _relation_fields(table["name"], relations, taken)),
                *(f"  {line}" for line in _keys(indexes.get(table["oid"], []))),
                "}",
            ]
        )
        for table in tables
    ]
    return HEADER + "".join(f"\n{model}\n" for model in models)


def _by_table(rows: Sequence[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row["oid"], []).append(row)
    return found


def _comments(table: Row, indexes: Sequence[Row], constraints: Sequence[Row]) -> Iterator[str]:
    if table["comment"]:
        yield f"/// {' '.join(table['comment'].split())}"
    if table["partitioned"]:
        yield f"/// Partitioned by {table['partitioned']}."
    for check in constraints:
        if check["kind"] == b"c":
            yield f"/// {check['name']}: {' '.join(check['text'].split())}"
    for index in indexes:
        if not index["plain"]:
            yield f"/// {index['text'].replace('headrace.', '')}"


def _fields(columns: Sequence[Row]) -> Iterator[str]:
    for column in columns:
        kind, native = _type(column["type"])
        # A list is never optional in Prisma; NULL reads as the empty one.
        mark = "[]" if column["is_array"] else "?" if column["optional"] else ""
        words = [column["name"], f"{kind}{mark}", _preset(column, kind), native]
        line = " ".join(word for word in words if word)
        yield f"{line} /// {' '.join(column['comment'].split())}" if column["comment"] else line


def _type(name: str) -> tuple[str, str]:
    match = re.fullmatch(r"([a-z ]+?)(?:\(([\d,]+)\))?( with(?:out)? time zone)?", name)
    base = f"{match[1]}{match[3] or ''}" if match else name
    if match is None or base not in _TYPES:
        return f'Unsupported("{name}")', ""
    kind, native = _TYPES[base]
    return kind, f"{native}({match[2].replace(',', ', ')})" if native and match[2] else native


def _preset(column: Row, kind: str) -> str:
    if column["counts"]:
        return "@default(autoincrement())"
    text: str | None = column["preset"]
    if text is None:
        return ""
    if re.fullmatch(rf"nextval\('headrace\.\w+_{column['name']}_seq'::regclass\)", text):
        return "@default(autoincrement())"
    if text == "now()" and kind == "DateTime":
        return "@default(now())"
    literal = _LITERAL.fullmatch(text)
    if literal and not column["is_array"] and not kind.startswith(("Unsupported", "DateTime")):
        if literal[1] is None:
            return f"@default({text})"
        if kind in ("String", "Json"):
            return f"@default({_quoted(literal[1].replace(chr(39) * 2, chr(39)))})"
    if column["is_array"] and text.startswith("'{}'::"):
        return "@default([])"
    return f"@default(dbgenerated({_quoted(text)}))"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _relations(
    table: str, columns: Sequence[Row], indexes: dict[int, list[Row]], constraints: dict[int, list[Row]], oid: int
) -> Iterator[_Relation]:
    foreign = [each for each in constraints.get(oid, []) if each["kind"] == b"f"]
    targets = Counter(each["target"] for each in foreign)
    names = {column["name"] for column in columns}
    optional = {column["name"] for column in columns if column["optional"]}
    unique = [set(index["columns"]) for index in indexes.get(oid, []) if index["unique"] and index["plain"]]
    for each in foreign:
        name = each["name"]
        if len(each["fields"]) == 1 and each["fields"][0].endswith("_id"):
            short = each["fields"][0].removesuffix("_id")
            name = short if short not in names else name
        mark = "?" if optional & {*each["fields"]} else ""
        line = (
            f'{name} {each["target"]}{mark} @relation("{each["name"]}", fields: [{", ".join(each["fields"])}], '
            f"references: [{', '.join(each['points_at'])}], onDelete: {_ACTIONS[each['on_delete'].decode()]}, "
            f'onUpdate: {_ACTIONS[each["on_update"].decode()]}, map: "{each["name"]}")'
        )
        back = table if targets[each["target"]] == 1 and each["target"] != table else f"{table}_{name}"
        yield _Relation(each["name"], table, each["target"], name, back, line, {*each["fields"]} in unique)


def _relation_fields(table: str, relations: Sequence[_Relation], taken: dict[str, set[str]]) -> Iterator[str]:
    for relation in relations:
        if relation.table == table:
            yield relation.line
    for relation in relations:
        if relation.target == table:
            back = relation.back if relation.back not in taken[table] else f"{relation.back}_rows"
            yield f'{back} {relation.table}{"?" if relation.one_to_one else "[]"} @relation("{relation.constraint}")'


def _keys(indexes: Sequence[Row]) -> Iterator[str]:
    for index in indexes:
        if not index["plain"]:
            continue
        columns = f"[{', '.join(index['columns'])}]"
        if index["primary"]:
            yield f'@@id({columns}, map: "{index["name"]}")'
        elif index["unique"]:
            yield f'@@unique({columns}, map: "{index["name"]}")'
        else:
            method = f", type: {_METHODS[index['method']]}" if index["method"] in _METHODS else ""
            yield f'@@index({columns}, map: "{index["name"]}"{method})'
