"""The mark of an unfinished restore.

``headrace restore`` makes this table first and drops it last. While it exists the database is incomplete, and
everything that reads the status of the schema refuses it: each role at its start, every command, doctor and /readyz.
"""

from typing import Any

import asyncpg

from headrace.database import Tx
from headrace.errors import Conflict

TABLE = "unfinished_restore"


class RestoreUnfinished(Conflict):
    """A restore into this database has not ended."""

    code = "restore_unfinished"


MARK = f"""
CREATE TABLE IF NOT EXISTS headrace.{TABLE} (
  backup   text        NOT NULL,
  began_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE headrace.{TABLE} IS 'A restore into this database has not ended. Written by headrace restore.';
TRUNCATE headrace.{TABLE};
GRANT SELECT ON headrace.{TABLE} TO headrace_app;
"""
DESCRIBE = f"INSERT INTO headrace.{TABLE} (backup) VALUES ($1)"
UNMARK = f"DROP TABLE headrace.{TABLE}"
IS_MARKED = f"SELECT to_regclass('headrace.{TABLE}') IS NOT NULL"
READ = f"SELECT backup, began_at FROM headrace.{TABLE} LIMIT 1"


async def is_marked(connection: "asyncpg.Connection[Any] | Tx") -> bool:
    return bool(await connection.fetchval(IS_MARKED))


async def refuse_if_marked(connection: "asyncpg.Connection[Any] | Tx") -> None:
    """Raise ``RestoreUnfinished`` where a restore was interrupted or still runs."""
    if not await is_marked(connection):
        return
    row = await connection.fetchrow(READ)
    what = f"of {row['backup']} began at {row['began_at']:%Y-%m-%d %H:%M:%S} UTC" if row else "began"
    raise RestoreUnfinished(
        f"A restore {what} and has not ended, so this database is not whole. Wait if it still runs; otherwise run "
        "`headrace restore` again."
    )
