"""How fast PostgreSQL reads a table for a constraint, builds an index, and fills a column: what `headrace migrate
--check` estimates with. ``python -m benchmarks.migration_rates`` prints one line for each."""

import asyncio
import time

import asyncpg

from benchmarks.report import console
from benchmarks.scratch import scratch_server

ROWS = 1_000_000
FILL = f"""
CREATE TABLE headrace.things (id text PRIMARY KEY, owner text NOT NULL, body text NOT NULL, tenant text);
INSERT INTO headrace.things SELECT lpad(n::text, 26, '0'), 'u_' || n % 5000, repeat(md5(n::text), 3), NULL
FROM generate_series(1, {ROWS}) AS n;
ALTER TABLE headrace.things ADD CONSTRAINT ck_things_owner CHECK (owner <> '') NOT VALID;
VACUUM ANALYZE headrace.things;
"""
STATEMENTS = {
    "scan": "ALTER TABLE headrace.things VALIDATE CONSTRAINT ck_things_owner",
    "index": "CREATE INDEX CONCURRENTLY idx_things_owner ON headrace.things (owner, id)",
    "rows": "CALL headrace.backfill('headrace.things', 'tenant = owner', 'tenant IS NULL')",
}


async def measure(url: str) -> None:
    connection = await asyncpg.connect(url, timeout=60)
    for statement in FILL.split(";\n"):
        if statement.strip():
            await connection.execute(statement, timeout=600)
    size = await connection.fetchval("SELECT pg_table_size('headrace.things')")
    for work, statement in STATEMENTS.items():
        began = time.perf_counter()
        await connection.execute(statement, timeout=600)
        took = time.perf_counter() - began
        console.print(f"{work}: {took:.2f} s, {size / took / 1e6:,.0f} MB/s, {ROWS / took:,.0f} rows/s")
    await connection.close()


if __name__ == "__main__":
    with scratch_server() as address:
        asyncio.run(measure(address))
