"""Reads PostgreSQL's catalog: the tables, months, sequences, roles and rights that belong into a backup."""

import re
from collections.abc import Collection
from typing import Any

import asyncpg

from headrace.backup.model import NOT_COPIED, OURS, Grant, Role, Sequence, Table, quoted
from headrace.migrations import available

# The roles that `headrace database schema` has made: each owns a schema of its name and is a member of headrace_app.
LIST_OWN_SCHEMAS = """
SELECT role.rolname::text FROM pg_roles AS role
JOIN pg_namespace AS own ON own.nspname = role.rolname AND own.nspowner = role.oid
JOIN pg_auth_members AS membership ON membership.member = role.oid
JOIN pg_roles AS app ON app.oid = membership.roleid AND app.rolname = 'headrace_app'
WHERE NOT role.rolsuper AND role.rolname NOT LIKE 'headrace%' ORDER BY 1
"""


async def list_own_schemas(connection: "asyncpg.Connection[Any]") -> list[str]:
    return [row["rolname"] for row in await connection.fetch(LIST_OWN_SCHEMAS)]


# A partition's rows are read and written through its parent.
LIST_TABLES = """
SELECT nspname::text AS schema, relname::text AS name,
       array(SELECT attname::text FROM pg_attribute
             WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
             ORDER BY attnum) AS columns
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = ANY ($1) AND relkind IN ('r', 'p') AND NOT relispartition AND relpersistence <> 't'
ORDER BY 1, 2
"""


async def list_tables(connection: "asyncpg.Connection[Any]", schemas: Collection[str]) -> list[Table]:
    rows = await connection.fetch(LIST_TABLES, list(schemas))
    tables = [Table(row["schema"], row["name"], list(row["columns"])) for row in rows]
    return [table for table in tables if not (table.schema == OURS and table.name in NOT_COPIED)]


def made_by_migrations() -> frozenset[str]:
    """The names of all tables that a migration has ever made."""
    scripts = "\n".join(migration.up for migration in available())
    made = re.findall(r"CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?headrace\.(\w+)", scripts)
    renamed = re.findall(r"ALTER TABLE (?:ONLY )?headrace\.\w+ RENAME TO (\w+)", scripts)
    return frozenset([*made, *renamed])


LIST_MONTHS = """
SELECT parent.relname::text AS parent, child.relname::text AS child
FROM pg_inherits
JOIN pg_class AS parent ON parent.oid = inhparent
JOIN pg_class AS child ON child.oid = inhrelid
WHERE parent.relnamespace = to_regnamespace('headrace') AND parent.relkind = 'p' ORDER BY 1, 2
"""
_MONTH = re.compile(r".*_y(\d{4})m(\d\d)")


async def list_months(connection: "asyncpg.Connection[Any]") -> dict[str, list[str]]:
    months: dict[str, list[str]] = {}
    for row in await connection.fetch(LIST_MONTHS):
        if match := _MONTH.fullmatch(row["child"]):
            months.setdefault(row["parent"], []).append(f"{match[1]}-{match[2]}-01")
    return months


LIST_SEQUENCES = """
SELECT nspname::text AS schema, relname::text AS name
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = ANY ($1) AND relkind = 'S' ORDER BY 1, 2
"""


async def list_sequences(connection: "asyncpg.Connection[Any]", schemas: Collection[str]) -> list[Sequence]:
    """Read after the rows: a sequence is of no snapshot, and must not be behind what a row has of it."""
    sequences = []
    for schema, name in await connection.fetch(LIST_SEQUENCES, list(schemas)):
        row = await connection.fetchrow(f"SELECT last_value, is_called FROM {quoted(schema)}.{quoted(name)}")
        assert row is not None
        sequences.append(Sequence(schema, name, row["last_value"], row["is_called"]))
    return sequences


# Rights that no migration gives: on Headrace's schema, tables, columns and functions, to other roles.
LIST_GRANTS = """
WITH given AS (
  SELECT 'SCHEMA headrace' AS target, (aclexplode(nspacl)).*, nspowner AS owner, ''::text AS of_columns
  FROM pg_namespace WHERE nspname = 'headrace'
  UNION ALL
  SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || format('headrace.%I', relname),
         (aclexplode(relacl)).*, relowner, ''
  FROM pg_class WHERE relnamespace = to_regnamespace('headrace') AND relkind IN ('r', 'p', 'v', 'S')
    AND relname <> 'unfinished_restore'
  UNION ALL
  SELECT 'TABLE ' || format('headrace.%I', relname), (aclexplode(attacl)).*, relowner, format('(%I)', attname)
  FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
  WHERE relnamespace = to_regnamespace('headrace') AND relkind IN ('r', 'p', 'v') AND NOT attisdropped
  UNION ALL
  SELECT 'FUNCTION ' || pg_proc.oid::regprocedure, (aclexplode(proacl)).*, proowner, ''
  FROM pg_proc WHERE pronamespace = to_regnamespace('headrace')
)
SELECT DISTINCT privilege_type || of_columns AS privilege, target, role.rolname::text AS role, is_grantable AS grantable
FROM given JOIN pg_roles AS role ON role.oid = grantee
WHERE grantee <> owner AND role.rolname NOT IN ('headrace_owner', 'headrace_app') ORDER BY 2, 3, 1
"""


async def list_grants(connection: "asyncpg.Connection[Any]") -> list[Grant]:
    return [Grant(**row) for row in await connection.fetch(LIST_GRANTS)]


LIST_OTHER_GRANTEES = """
WITH given AS (
  SELECT (aclexplode(relacl)).grantee FROM pg_class WHERE relnamespace = ANY ($1::text[]::regnamespace[])
  UNION ALL
  SELECT (aclexplode(nspacl)).grantee FROM pg_namespace WHERE oid = ANY ($1::text[]::regnamespace[])
  UNION ALL
  SELECT relowner FROM pg_class WHERE relnamespace = ANY ($1::text[]::regnamespace[])
)
SELECT DISTINCT rolname::text FROM given JOIN pg_roles ON pg_roles.oid = grantee
WHERE NOT rolsuper AND rolname NOT LIKE 'pg\\_%' AND rolname NOT IN ('headrace_owner', 'headrace_app') ORDER BY 1
"""
IS_MEMBER = "SELECT pg_has_role($1, 'headrace_app', 'MEMBER')"
MAY_READ_VERIFIERS = "SELECT has_table_privilege('pg_authid', 'SELECT')"
READ_VERIFIER = "SELECT rolpassword FROM pg_authid WHERE rolname = $1 AND rolpassword LIKE 'SCRAM-SHA-256$%'"


async def list_roles(
    connection: "asyncpg.Connection[Any]", schemas: Collection[str], grants: Collection[Grant]
) -> list[Role]:
    """The owners of the programs' schemas, and roles with grants there or on Headrace's tables."""
    rows = await connection.fetch(LIST_OTHER_GRANTEES, [quoted(schema) for schema in schemas])
    names = {*schemas, *(row["rolname"] for row in rows), *(grant.role for grant in grants)}
    may_read = await connection.fetchval(MAY_READ_VERIFIERS)  # only a superuser may
    roles = []
    for name in sorted(names):
        owns = name in schemas
        verifier = await connection.fetchval(READ_VERIFIER, name) if owns and may_read else None
        roles.append(Role(name, owns, bool(await connection.fetchval(IS_MEMBER, name)), verifier))
    return roles
