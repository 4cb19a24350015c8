"""A schema as PostgreSQL's catalog tells it: two databases are alike when these are equal."""

from headrace.database import DatabaseConfig, connect_alone

# One name and one text for each object; oids and whatever else differs from database to database stay out.
DESCRIBE = """
SELECT 'schema ' || nspname AS name, pg_get_userbyid(nspowner) || coalesce(nspacl::text, '') AS text
FROM pg_namespace WHERE nspname = 'headrace'
UNION ALL
SELECT relkind::text || ' ' || oid::regclass,
  concat_ws(' ', pg_get_userbyid(relowner), relpersistence, relacl, reloptions, pg_get_expr(relpartbound, oid),
            CASE relkind WHEN 'v' THEN pg_get_viewdef(oid) WHEN 'p' THEN pg_get_partkeydef(oid) END,
            obj_description(oid, 'pg_class'))
FROM pg_class WHERE relnamespace = to_regnamespace('headrace')
UNION ALL
SELECT 'column ' || attrelid::regclass || '.' || attname,
  concat_ws(' ', attnum, format_type(atttypid, atttypmod), attnotnull, attacl, pg_get_expr(adbin, adrelid),
            col_description(attrelid, attnum))
FROM pg_attribute
JOIN pg_class ON pg_class.oid = attrelid AND relkind IN ('r', 'p', 'v')
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relnamespace = to_regnamespace('headrace') AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'constraint ' || conrelid::regclass || ' ' || conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = to_regnamespace('headrace')
UNION ALL
SELECT 'index ' || indexrelid::regclass, pg_get_indexdef(indexrelid)
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = to_regnamespace('headrace')
UNION ALL
SELECT 'trigger ' || tgrelid::regclass || ' ' || tgname, tgenabled::text || pg_get_triggerdef(pg_trigger.oid)
FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = to_regnamespace('headrace') AND NOT tgisinternal
UNION ALL
SELECT 'function ' || oid::regprocedure, pg_get_functiondef(oid) || coalesce(proacl::text, '')
FROM pg_proc WHERE pronamespace = to_regnamespace('headrace')
"""


async def describe(config: DatabaseConfig) -> dict[str, str]:
    """Everything of ours in a database; nothing at all when there is no schema."""
    async with connect_alone(config) as connection:
        return {row["name"]: row["text"] for row in await connection.fetch(DESCRIBE)}
