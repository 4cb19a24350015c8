"""The lists of users, sessions, keys, deletions, locks, runs and files discard few rows, whatever is asked for.

Tasks (test_task_lists) and the trail (test_audit_lists) have tests of their own. At tens of thousands of rows in every
run, and at a million in the slow one; with values that the planner sees, and with a plan that it keeps.
"""

import itertools
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from headrace.access import Role
from headrace.accounts.model import DeletionStatus, UserStatus
from headrace.accounts.store import api_keys, deletions, sessions, users
from headrace.assets.inspection.model import MediaType
from headrace.assets.retention import ASSETS
from headrace.assets.store import assets, sweep, uploads
from headrace.database import Tx
from headrace.locks import store as locks
from headrace.locks.model import LockState
from headrace.schedules.model import ExecutionState, Trigger
from headrace.schedules.store import executions
from headrace.schedules.store.executions import ExecutionFilter
from headrace.walks import IN_INDEX_ORDER
from tests.conftest import TestServer, rolled_back
from tests.plans.filled import filled
from tests.plans.test_documents_queries import _nodes, discards

# A user in a hundred is suspended, one in a thousand an administrator; u_7 has many sessions, locks and runs. A lock in
# a thousand is held, a run in three hundred failed.
ROWS = """
INSERT INTO headrace.users (id, username, password_hash, status, role, created_at)
SELECT 'u_' || n, 'user' || n, '!', CASE n % 100 WHEN 1 THEN 'SUSPENDED' ELSE 'ACTIVE' END,
       CASE n % 1000 WHEN 2 THEN 'ADMIN' ELSE 'USER' END, now() - n * interval '1 s'
FROM generate_series(1, :rows) AS n;
INSERT INTO headrace.sessions (id, user_id, token_hash, created_at, expires_at)
SELECT 'ses_' || n, 'u_' || CASE WHEN n % 100 = 0 THEN 7 ELSE n END, sha256(n::text::bytea), now() - n * interval '1 s',
       now() + interval '30 days'
FROM generate_series(1, :rows) AS n;
INSERT INTO headrace.api_keys (id, user_id, name, key_hash, key_hint, created_at)
SELECT 'key_' || n, 'u_' || n, 'k', sha256(n::text::bytea), 'hint', now() - n * interval '1 s'
FROM generate_series(1, :rows) AS n;
INSERT INTO headrace.account_deletions (id, user_id, requested_by, status, status_before, due_at, next_try_at,
                                        started_at, ended_at, created_at)
SELECT 'del_' || n, 'u_' || n, 'u_' || n, status, 'ACTIVE', now(), now(),
       CASE status WHEN 'COMPLETED' THEN now() END, CASE WHEN status <> 'WAITING' THEN now() END,
       now() - n * interval '1 s'
FROM generate_series(1, :rows) AS n,
     LATERAL (SELECT CASE n % 1000 WHEN 1 THEN 'WAITING' WHEN 2 THEN 'CANCELED' ELSE 'COMPLETED' END) AS s (status);
INSERT INTO headrace.task_locks (lock_key, user_id, fence, holder_id, token, state, acquired_at, expires_at,
                                 released_at)
SELECT CASE state WHEN 'active' THEN 'held-' || n ELSE 'key-' || n % 5000 END,
        CASE WHEN n % 10 = 0 THEN 'u_7' ELSE 'u_' || n % 5000 END, n, 'host:' || n % 1000, 't',
       state,
       now() - interval '1 hour', now() + CASE WHEN n % 2000 = 1 THEN interval '1 hour' ELSE interval '-1 minute' END,
       CASE state WHEN 'released' THEN now() END
FROM generate_series(1, :rows) AS n,
     LATERAL (
       SELECT CASE WHEN n % 1000 = 1 THEN 'active' WHEN n % 10 = 2 THEN 'expired' ELSE 'released' END
     ) AS s (state);
INSERT INTO headrace.scheduled_tasks (uid, name, type, is_recurring, "interval", next_run)
SELECT 'sch_' || n, 'schedule ' || n, 'job', true, 60, now() FROM generate_series(1, 200) AS n;
INSERT INTO headrace.task_executions (task_uid, user_id, task_name, task_type, execution_uid, run_by, scheduled_at,
                                      started_at, finished_at, state, trigger_type, trigger_by)
SELECT 'sch_' || n % 200 + 1, CASE WHEN n % 200 < 20 THEN 'u_7' ELSE 'u_8' END, 'schedule', 'job',
       'exe_' || lpad(n::text, 26, '0'), 'host:1', now() - n * interval '1 s', now(), now(),
       CASE WHEN n % 333 = 0 THEN 'failure' ELSE 'success' END,
       CASE WHEN n % 499 = 0 THEN 'manual' ELSE 'scheduled' END, 'u_1'
FROM generate_series(1, :rows) AS n;
INSERT INTO headrace.assets (id, user_id, media_type, origin_name, mime_type, size_bytes, sha256, storage_key, status,
                             created_at, deleted_at, purged_at)
SELECT 'ast_' || n, CASE WHEN n % 50 = 0 THEN 'u_7' ELSE 'u_' || n % 5000 END,
       (ARRAY['IMAGE', 'VIDEO', 'PDF', 'PPT'])[n % 7 % 4 + 1], n || '.png', 'image/png', n, repeat(md5(n::text), 2),
       'u/ast_' || n, CASE WHEN n % 3 = 0 THEN 'DELETED' ELSE 'UPLOADED' END, now() - n * interval '1 s',
       CASE WHEN n % 3 = 0 THEN now() - n * interval '1 s' END, CASE WHEN n % 3 = 0 THEN now() END
FROM generate_series(1, :rows) AS n;
INSERT INTO headrace.uploads (id, user_id, asset_id, method, origin_name, size_bytes, part_bytes, storage_key, status,
                              expire_at, created_at)
SELECT 'upl_' || n, CASE WHEN n % 50 = 0 THEN 'u_7' ELSE 'u_' || n % 5000 END, 'ast_' || n, 'PARTS', 'x', 9, 9,
       'u/upl_' || n, CASE WHEN n % 2 = 0 THEN 'OPEN' ELSE 'COMPLETED' END, now() + interval '1 day',
       now() - n * interval '1 s'
FROM generate_series(1, :rows) AS n;
"""
MOST_DISCARDED = 1_000
LIMIT = 21


@pytest.fixture(scope="module")
def thousands(server: TestServer, template: str) -> Iterator[str]:
    yield from filled(server, template, 20_000, ROWS, name="others")


@pytest.fixture(scope="module")
def a_million(server: TestServer, template: str) -> Iterator[str]:
    yield from filled(server, template, 1_000_000, ROWS, name="others")


class Explaining(Tx):
    """Explains what it is asked, as it would be run, and gives no rows."""

    plan: dict[str, Any]

    async def fetch(self, sql: str, *args: object) -> list[Any]:
        found = await self.connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", *args)
        self.plan = json.loads(found)[0]["Plan"]
        return []


List = Callable[[Tx], Awaitable[object]]


def lists() -> Iterator[tuple[str, List]]:
    """Every list with every combination of its filters, on the first page and on a later one."""
    middle = datetime.now(UTC) - timedelta(hours=2)
    for mark in (None, (middle, "x")):
        page: dict[str, Any] = {"older_than": mark, "limit": LIMIT}
        for status, role in itertools.product((None, *UserStatus), (None, *Role)):
            yield f"users {status} {role}", partial(users.list_users, status=status, role=role, **page)
        for deletion in (None, *DeletionStatus):
            yield f"deletions {deletion}", partial(deletions.list_deletions, status=deletion, **page)
        yield "sessions", partial(sessions.list_sessions, user_id="u_7", idle_lifetime=timedelta(days=7), **page)
        yield "keys", partial(api_keys.list_api_keys, user_id="u_7", **page)
        whose = itertools.product(("u_7", None), ("sch_7", None), (None, "job"))
        which = itertools.product((None, [ExecutionState.FAILURE], list(ExecutionState)), (None, *Trigger))
        for (user, uid, kind), (states, trigger) in itertools.product(whose, which):
            wanted = ExecutionFilter(user, uid, states, trigger, kind)
            yield f"runs {wanted}", partial(executions.list_executions, wanted=wanted, **page)
        for user, media, sha256 in itertools.product(("u_7", None), (None, *MediaType), (None, "ab" * 32)):
            files = assets.Filter(user, media, None, sha256)
            yield f"files {files}", partial(assets.list_assets, wanted=files, **page)
        yield "uploads", partial(uploads.list_uploads, user_id="u_7", **page)
    yield "files to remove", lambda tx: tx.fetch(ASSETS.due, datetime.now(UTC) - timedelta(hours=5), LIMIT)
    yield "files to purge", partial(assets.list_to_purge, limit=LIMIT)
    yield "files to check", partial(sweep.list_to_check, limit=LIMIT)
    for user, key, holder, state, before in itertools.product(
        ("u_7", None), (None, "key-7"), (None, "host:7"), (None, *LockState), (None, 9_000)
    ):
        asked = locks.Filter(user, key, holder, state)
        yield f"locks {asked} {before}", partial(locks.list_locks, wanted=asked, before=before, limit=LIMIT)


# Each request has a transaction of its own, and its settings end with it.
IN_ANY_ORDER = IN_INDEX_ORDER.replace("= off", "= on")


async def check(url: str) -> None:
    found: list[str] = []
    async with rolled_back(url) as tx:
        explaining = Explaining(tx.connection)
        for mode in ("force_custom_plan", "force_generic_plan"):
            await tx.execute(f"SET LOCAL plan_cache_mode = {mode}")
            for name, listing in lists():
                await tx.execute(IN_ANY_ORDER)
                await listing(explaining)
                thrown = max(map(discards, _nodes(explaining.plan)))
                if thrown > MOST_DISCARDED:
                    found.append(f"{name} {mode}: discards {thrown} rows")
    assert not found, "\n".join(found)


@pytest.mark.both
async def test_every_list_discards_few_rows(server: TestServer, thousands: str) -> None:
    await check(server.url(thousands, role="headrace_app"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_every_list_discards_few_rows_at_a_million(server: TestServer, a_million: str) -> None:
    await check(server.url(a_million, role="headrace_app"))
