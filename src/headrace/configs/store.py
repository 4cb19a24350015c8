"""SQL for system_configs. A trigger notifies listeners of every change, also of those by hand."""

from typing import Any

from headrace.configs.model import Config, ConfigScope, ConfigTarget
from headrace.database import Row, Tx
from headrace.sql import Mark, Where

COLUMNS = "id, config_key, config_scope, scope_id, config_value, version, is_active, created_at, updated_at"


def config_of(row: Row) -> Config:
    fields = {name: row[name] for name in Config.__dataclass_fields__}
    return Config(**fields | {"config_scope": ConfigScope(row["config_scope"])})


FIND = f"""
SELECT {COLUMNS} FROM headrace.system_configs WHERE config_key = $1 AND config_scope = $2 AND scope_id = $3
"""


async def find_config(tx: Tx, key: str, target: ConfigTarget) -> Config | None:
    row = await tx.fetchrow(FIND, key, target.scope, target.id)
    return None if row is None else config_of(row)


async def lock_config(tx: Tx, key: str, target: ConfigTarget) -> Config | None:
    """Read and lock it until this transaction ends."""
    row = await tx.fetchrow(f"{FIND} FOR NO KEY UPDATE", key, target.scope, target.id)
    return None if row is None else config_of(row)


# A value may be null, which the column stores as JSON null.
INSERT = f"""
INSERT INTO headrace.system_configs (config_key, config_scope, scope_id, config_value, is_active)
VALUES ($1, $2, $3, coalesce($4, 'null'::jsonb), $5)
ON CONFLICT ON CONSTRAINT uk_system_configs_key_scope DO NOTHING
RETURNING {COLUMNS}
"""


async def insert_config(tx: Tx, key: str, target: ConfigTarget, value: Any, *, is_active: bool) -> Config | None:
    """None if another transaction has just set it."""
    row = await tx.fetchrow(INSERT, key, target.scope, target.id, value, is_active)
    return None if row is None else config_of(row)


UPDATE = f"""
UPDATE headrace.system_configs SET config_value = coalesce($3, 'null'::jsonb), is_active = $4, version = version + 1
WHERE id = $1 AND version = $2
RETURNING {COLUMNS}
"""


async def update_config(tx: Tx, old: Config, value: Any, *, is_active: bool) -> Config | None:
    row = await tx.fetchrow(UPDATE, old.id, old.version, value, is_active)
    return None if row is None else config_of(row)


DELETE = "DELETE FROM headrace.system_configs WHERE id = $1 AND version = $2"


async def delete_config(tx: Tx, old: Config) -> bool:
    return await tx.count(DELETE, old.id, old.version) == 1


# The narrowest first. Three lookups by the unique key; inactive values are ignored.
RESOLVE = """
SELECT config_value
FROM headrace.system_configs
WHERE config_key = $1 AND is_active
  AND (config_scope, scope_id) IN (('USER', $2), ('TENANT', $3), ('GLOBAL', ''))
ORDER BY CASE config_scope WHEN 'USER' THEN 1 WHEN 'TENANT' THEN 2 ELSE 3 END
LIMIT 1
"""


async def resolve(tx: Tx, key: str, *, user_id: str | None, tenant_id: str | None) -> tuple[Any] | None:
    """The effective value for this user and tenant, in a tuple because it may be null; None if none is set."""
    row = await tx.fetchrow(RESOLVE, key, user_id, tenant_id)
    return None if row is None else (row["config_value"],)


SELECT_CONFIGS = f"SELECT {COLUMNS} FROM headrace.system_configs"


async def list_configs(
    tx: Tx,
    *,
    key: str | None,
    scope: ConfigScope | None,
    scope_id: str | None,
    is_active: bool | None,
    older_than: Mark | None,
    limit: int,
) -> list[Config]:
    """Newest first."""
    where = (
        Where()
        .eq("is_active", is_active)
        .eq("config_key", key)
        .eq("config_scope", scope)
        .eq("scope_id", scope_id)
        .older_than(("created_at", "id"), None if older_than is None else (older_than[0], int(older_than[1])))
    )
    rows = await tx.fetch(
        f"{SELECT_CONFIGS} {where.sql} ORDER BY created_at DESC, id DESC LIMIT ${where.next}", *where.args, limit
    )
    return [config_of(row) for row in rows]


DELETE_OF_USER = "DELETE FROM headrace.system_configs WHERE config_scope = 'USER' AND scope_id = $1"


async def delete_of_user(tx: Tx, user_id: str) -> int:
    return await tx.count(DELETE_OF_USER, user_id)
