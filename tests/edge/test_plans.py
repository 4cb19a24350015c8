"""What every request with a key looks up is found by an index, whoever asks, and so is what has expired."""

import pytest

from headrace import ids
from headrace.database import Row, Tx
from headrace.edge import idempotency, stored_answers

ROWS = """
INSERT INTO headrace.idempotency_keys (scope, user_id, idempotency_key, request_hash, http_status, expires_at)
SELECT 'things.create', CASE WHEN n % 2 = 0 THEN $1 END, 'key-' || n, repeat('0', 64), 201,
       now() + n * interval '1 second' - interval '1 minute'
FROM generate_series(1, 20000) AS n
"""


class Explaining(Tx):
    """Runs nothing, and keeps the plan of what it was asked to run."""

    __slots__ = ("plan",)

    async def fetchrow(self, sql: str, *args: object) -> Row | None:
        await self.count(sql, *args)
        return None

    async def count(self, sql: str, *args: object) -> int:
        self.plan = "\n".join(row[0] for row in await self.fetch(f"EXPLAIN {sql}", *args))
        return 0


@pytest.fixture
async def explaining(owner_tx: Tx) -> Explaining:
    await owner_tx.execute(ROWS, ids.SYSTEM_USER)
    await owner_tx.execute("ANALYZE headrace.idempotency_keys")
    await owner_tx.execute("SET LOCAL plan_cache_mode = force_generic_plan")
    return Explaining(owner_tx.connection)


@pytest.mark.parametrize("user_id", [ids.SYSTEM_USER, None])
async def test_a_key_is_found_by_its_unique_index(explaining: Explaining, user_id: str | None) -> None:
    await idempotency.find(explaining, idempotency.KeyedRequest("things.create", user_id, "key-7", "0" * 64))
    (condition,) = (line for line in explaining.plan.splitlines() if "Index Cond" in line)
    assert "uk_idempotency_scope_user_key" in explaining.plan
    assert all(column in condition for column in ("scope", "user_id", "idempotency_key"))


async def test_expired_keys_are_found_by_when_they_expire(explaining: Explaining) -> None:
    await stored_answers.reap(explaining, 100)
    assert "idx_idempotency_keys_expires_at" in explaining.plan
    assert "Seq Scan" not in explaining.plan
