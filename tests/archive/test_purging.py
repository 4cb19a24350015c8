"""What has served its time goes, and nothing else."""

import pytest

from headrace import ids
from headrace.accounts.config import ThrottleConfig
from headrace.assembly.retention import purges
from headrace.database import Database, Tx
from headrace.database_errors import DatabaseBusy
from headrace.purging import Purge, purge

FILL = """
INSERT INTO headrace.idempotency_keys (scope, idempotency_key, request_hash, http_status, expires_at)
SELECT 'test', n::text, repeat('0', 64), 201, now() + CASE WHEN n > 2 THEN '-1 hour' ELSE '1 hour' END::interval
FROM generate_series(1, 1500) n;
INSERT INTO headrace.rate_limits VALUES ('old', now() - interval '1 day'), ('new', now() + interval '1 minute');
INSERT INTO headrace.login_throttles (subject, failures, first_failed_at, last_failed_at)
VALUES ('account:old', 3, now() - interval '2 days', now() - interval '2 days'), ('account:new', 3, now(), now());
INSERT INTO headrace.task_locks (lock_key, fence, holder_id, token, state, acquired_at, expires_at)
VALUES ('old', 1, 'h', 't', 'active', now() - interval '2 hours', now() - interval '1 hour'),
       ('new', 1, 'h', 't', 'active', now(), now() + interval '1 hour');
"""
SESSION = """
INSERT INTO headrace.sessions (id, user_id, token_hash, created_at, expires_at)
VALUES ($1, $2, sha256($4), now() - interval '100 days', now() - $3::integer * interval '1 day')
"""


async def test_old_rows_go_in_batches_and_new_ones_stay(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.connection.execute(FILL)
        for days in (70, 1):
            await tx.execute(SESSION, ids.new("ses"), ids.SYSTEM_USER, days, str(days).encode())
    done = await purge(db, purges(ThrottleConfig()))
    assert done == {
        "idempotency_keys": 1498,
        "rate_limits": 1,
        "login_failures": 1,
        "sessions": 1,
        "account_links": 0,
        "locks": 1,
        "deleted_schedules": 0,
        "deleted_tasks": 0,
        "idle_lanes": 0,
        "bulk_actions": 0,
    }
    assert not any((await purge(db, purges(ThrottleConfig()))).values())


async def test_one_that_fails_keeps_none_of_the_others_from_going(db: Database) -> None:
    async def fail(tx: Tx, limit: int) -> int:
        raise DatabaseBusy

    went: list[int] = []

    async def go(tx: Tx, limit: int) -> int:
        went.append(limit)
        return 0

    with pytest.raises(DatabaseBusy):
        await purge(db, [Purge("first", fail), Purge("second", go)])
    assert went
