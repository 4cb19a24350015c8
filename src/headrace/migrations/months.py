"""``CREATE INDEX CONCURRENTLY`` on a table that is kept by months, which PostgreSQL itself refuses.

The parent's index is an entry in the catalog; each month's own is built without blocking writes, and attached to it;
with the last one the parent's is valid. A month that is made meanwhile brings its index along. A repeated run
skips the finished months, and rebuilds interrupted ones.
"""

import re

# The line above such a statement, in a file without a transaction.
_MARK = "-- headrace: month by month\n"
_INDEX = re.compile(
    r"CREATE (?P<unique>UNIQUE )?INDEX CONCURRENTLY (?P<name>\w+)\s+ON headrace\.(?P<table>\w+)\s+(?P<rest>.+);\s*",
    re.DOTALL,
)
# A row for each month that lacks the index: what to do there, in order.
_MISSING = """
SELECT format('DROP INDEX CONCURRENTLY IF EXISTS headrace.%I', index),
       format('CREATE {unique}INDEX CONCURRENTLY %I ON headrace.%I ', index, month) || $rest${rest}$rest$,
       format('ALTER INDEX headrace.{name} ATTACH PARTITION headrace.%I', index)
FROM (
  SELECT child.relname AS month, '{name}' || substr(child.relname, length('{table}') + 1) AS index
  FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
  WHERE inhparent = 'headrace.{table}'::regclass AND NOT EXISTS (
    SELECT FROM pg_index JOIN pg_inherits AS attached ON attached.inhrelid = indexrelid
    WHERE indrelid = child.oid AND attached.inhparent = 'headrace.{name}'::regclass
  )
) AS missing
ORDER BY month
"""


def month_by_month(statement: str) -> tuple[str, str] | None:
    """The parent's part of such a statement, and a query that gives the statements for the months; None for others."""
    before, mark, marked = statement.partition(_MARK)
    if not mark:
        return None
    index = _INDEX.fullmatch(marked)
    if re.search(r"^[^-\s]", before, re.MULTILINE) or index is None:
        raise ValueError(f"month by month there is only CREATE INDEX CONCURRENTLY name ON headrace.table: {statement}")
    parent = "CREATE {unique}INDEX IF NOT EXISTS {name} ON ONLY headrace.{table} {rest}"
    parts = {name: part or "" for name, part in index.groupdict().items()}
    return parent.format(**parts), _MISSING.format(**parts).strip()
