"""A year of rows, made by the database itself: for `benchmarks/growth.py`."""

import asyncpg

BUSY, PLAIN, ADMIN = "u_busy", "u_7", "u_admin"
SCHEDULES = 200
RARE = 30  # rows of what is rare, as old as can be

# Row n of :rows is n / :rows of a year old, and every fifth is the busy user's. The shares of the tables are those of a
# year of ten million tasks. A name in capitals is replaced by its number of rows.
_MOMENTS = """
CREATE TEMP TABLE moments AS
SELECT n, at, CASE WHEN n % 5 = 0 THEN 'u_busy' ELSE 'u_' || n % 299 END AS user_id, n > :rows - {RARE} AS old,
       millis, headrace.letters_of_millis(millis) || lpad(to_hex(n), 16, '0') AS tail
FROM generate_series(1, :rows::bigint) AS n,
     LATERAL (SELECT (extract(epoch FROM now()) * 1000 - n * 360.0 * 86400000 / :rows)::bigint AS millis) AS moment,
     LATERAL (SELECT headrace.instant_of_millis(millis) AS at) AS instant;
ANALYZE moments
""".replace("{RARE}", str(RARE))
STATEMENTS: list[tuple[float, str]] = [
    (
        1.0,
        """
INSERT INTO headrace.tasks (id, user_id, task_type, title, status, attempt, finished_at, created_at, updated_at,
                            deleted_at, payload, queue_seq)
SELECT 'tsk_' || tail, user_id, CASE WHEN old THEN 'rare' ELSE 'report.build' END, 'Report ' || n, status, 1,
       CASE WHEN NOT old THEN at END, at, at, CASE WHEN n <= 1000 AND n % 50 = 1 THEN at END, '{"pages": 3}',
       CASE WHEN old THEN n END
FROM moments, LATERAL (
  SELECT CASE WHEN old THEN 'QUEUED' WHEN n % 33 = 0 THEN 'FAILED' WHEN n % 99 = 1 THEN 'CANCELED' ELSE 'SUCCEEDED' END
) AS s (status)
ORDER BY n DESC
""",
    ),
    (
        1.0,
        """
INSERT INTO headrace.task_logs (task_id, status, message, created_at)
SELECT 'tsk_' || tail, 'SUCCEEDED', 'done', at FROM moments ORDER BY n DESC
""",
    ),
    (
        1.0,
        """
INSERT INTO headrace.task_queue (seq, run_at, lane_id, route_id, precedence, task_id, delayed)
SELECT n, now() + interval '1 year', lane.id, lane.route_id, 0, 'tsk_' || tail, true
FROM moments JOIN headrace.task_lanes AS lane ON lane.task_type = 'rare' WHERE old
""",
    ),
    (
        0.3,
        """
INSERT INTO headrace.audit_events (id, "timestamp", created_at, action, resource_type, resource, "user", client_ip,
                                   request_id, trace_id, actor_type)
SELECT 'aud_' || tail, millis, at,
       (ARRAY['created', 'updated', 'deleted', 'read'])[n % 4 + 1], type,
       jsonb_build_object('type', type, 'identifier', 'thing-' || n / 10),
       jsonb_build_object('uid', user_id, 'username', 'name-of-' || user_id, 'type', 'user'),
       '10.' || n / 65536 % 256 || '.' || n / 256 % 256 || '.' || n % 256, 'req-' || n, 'trace-' || n, 'USER'
FROM moments, LATERAL (SELECT (ARRAY['task', 'asset', 'plan', 'user', 'session'])[n % 5 + 1]) AS r (type)
ORDER BY n DESC
""",
    ),
    (
        0.1,
        """
INSERT INTO headrace.usage_ledger (id, period, user_id, task_id, entitlement_id, hold_id, consume_unit, direction,
                                   status, source, idempotency_key, created_at)
SELECT entry.id, headrace.typeid_month(hold), user_id, 'tsk_' || tail, 'ent_' || user_id || to_char(at, 'YYYYMM'),
       entry.hold_id, 1, entry.direction, entry.status, entry.source,
       to_char(headrace.typeid_month(hold), 'YYYYMM') || ':' || entry.id, at
FROM moments
CROSS JOIN LATERAL (SELECT 'led_' || tail AS hold) AS held
CROSS JOIN LATERAL (
  VALUES (hold, NULL, 'DEBIT', 'HELD', 'TASK_CREATE'),
         (headrace.settlement_id(hold, CASE WHEN n % 10 = 0 THEN 'RELEASED' ELSE 'COMMITTED' END), hold,
          CASE WHEN n % 10 = 0 THEN 'CREDIT' ELSE 'DEBIT' END,
          CASE WHEN n % 10 = 0 THEN 'RELEASED' ELSE 'COMMITTED' END,
          CASE WHEN old THEN 'MANUAL_ADJUST' WHEN n % 10 = 0 THEN 'TASK_FAIL' ELSE 'TASK_COMPLETE' END)
) AS entry (id, hold_id, direction, status, source)
ORDER BY n DESC
""",
    ),
    (
        0.1,
        """
INSERT INTO headrace.outbox_events (event_id, event_type, event_version, aggregate_type, aggregate_id, user_id,
                                    payload_json, status, next_retry_at, published_at, created_at)
SELECT 'evt_' || tail, CASE WHEN old THEN 'task.failed' ELSE 'task.succeeded' END, 1, 'task', 'tsk_' || tail,
       CASE WHEN old THEN 'u_7' ELSE user_id END, '{"n": 1}', CASE WHEN old THEN 'DEAD' ELSE 'PUBLISHED' END, at,
       CASE WHEN NOT old THEN at END, at
FROM moments ORDER BY n DESC
""",
    ),
    (
        0.1,
        """
INSERT INTO headrace.webhook_deliveries (period, delivery_id, endpoint_id, event_id, event_type, attempt, status,
                                         next_retry_at, delivered_at, response_status, duration_ms, created_at)
SELECT headrace.typeid_month('evt_' || tail), 'whd_' || tail, 'whe_' || user_id || '_' || n % 3, 'evt_' || tail,
       CASE WHEN old THEN 'task.failed' ELSE 'task.succeeded' END, 1, CASE WHEN old THEN 'DEAD' ELSE 'SUCCESS' END,
       NULL, CASE WHEN NOT old THEN at END, 200, 12, at
FROM moments ORDER BY n DESC
""",
    ),
    (
        0.1,
        """
INSERT INTO headrace.task_executions (task_uid, user_id, task_name, task_type, execution_uid, run_by, scheduled_at,
                                      started_at, finished_at, state, trigger_type, trigger_by, created_at)
SELECT 'sch_' || lpad((n % 200 + 1)::text, 26, '0'), CASE WHEN n % 5 = 0 THEN 'u_busy' ELSE 'u_7' END,
       'bench ' || n % 200 + 1, CASE WHEN old THEN 'rare' ELSE 'tick' END, 'exe_' || tail, 'host:1', at, at, at,
       CASE WHEN n % 33 = 0 THEN 'failure' ELSE 'success' END, CASE WHEN old THEN 'manual' ELSE 'scheduled' END,
       'u_admin', at
FROM moments ORDER BY n DESC
""",
    ),
    (
        0.02,
        """
INSERT INTO headrace.notifications (user_id, type, title, body, is_read, read_at, created_at)
SELECT user_id, 'TASK_SUCCEEDED', 'Done', 'It is done.', n > 100, CASE WHEN n > 100 THEN at END, at
FROM moments ORDER BY n DESC
""",
    ),
    (
        0.02,
        """
INSERT INTO headrace.assets (id, user_id, media_type, origin_name, mime_type, size_bytes, sha256, storage_key,
                             created_at)
SELECT 'ast_' || tail, user_id, CASE WHEN old THEN 'PPT' ELSE 'IMAGE' END,
       CASE WHEN old THEN 'rare' ELSE 'photo' END || n || '.png', 'image/png', 1000,
       encode(sha256(n::text::bytea), 'hex'), 'media/' || n, at
FROM moments ORDER BY n DESC
""",
    ),
    (
        0.02,
        """
INSERT INTO headrace.task_locks (lock_key, user_id, fence, holder_id, token, state, acquired_at, expires_at,
                                 released_at)
SELECT 'key-' || n, user_id, n, 'host:' || n % 100, 't', CASE WHEN n <= 20 THEN 'active' ELSE 'released' END, at,
       now() + interval '1 day', CASE WHEN n > 20 THEN at END
FROM moments ORDER BY n DESC
""",
    ),
    (
        0.02,
        """
INSERT INTO headrace.idempotency_keys (scope, user_id, idempotency_key, request_hash, http_status, expires_at)
SELECT 'tasks.submit', user_id, 'key-' || n, encode(sha256(n::text::bytea), 'hex'), 201, now() + interval '1 day'
FROM moments
""",
    ),
    (
        0.002,
        """
INSERT INTO headrace.users (id, username, password_hash, created_at)
SELECT 'u_of_' || n, 'user-' || n, '!', at FROM moments
""",
    ),
    (
        0.002,
        """
INSERT INTO headrace.sessions (id, user_id, token_hash, created_at, last_seen_at, expires_at)
SELECT 'ses_' || tail, user_id, sha256(n::text::bytea), at, now(), now() + interval '30 days' FROM moments
""",
    ),
    (
        0.002,
        """
INSERT INTO headrace.api_keys (id, user_id, name, key_hash, key_hint, created_at)
SELECT 'key_' || tail, user_id, 'k' || n, sha256(n::text::bytea), 'hint', at FROM moments
""",
    ),
]
_FIRST = """
INSERT INTO headrace.users (id, username, password_hash, role)
SELECT 'u_' || n, 'user' || n, '!', 'USER' FROM generate_series(0, 298) AS n
UNION ALL VALUES ('u_busy', 'busy', '!', 'USER'), ('u_admin', 'admin', '!', 'ADMIN');

INSERT INTO headrace.webhook_endpoints (id, user_id, name, url, status, secret_ciphertext)
SELECT 'whe_' || users.id || '_' || n, users.id, 'hook', 'https://example.com/' || n, 'ACTIVE', 's'
FROM headrace.users, generate_series(0, 2) AS n WHERE users.id LIKE 'u\\_%';

INSERT INTO headrace.entitlements (id, user_id, plan_id, quota_total, quota_left, period_start, period_end, status)
SELECT 'ent_' || users.id || to_char(month, 'YYYYMM'), users.id, 'pln_00000000000000000000000000', 1000, 500, month,
       month + interval '1 month', 'ACTIVE'
FROM headrace.users, generate_series(date_trunc('month', now()) - interval '12 months', now(), '1 month') AS month
WHERE users.id LIKE 'u\\_%';

INSERT INTO headrace.scheduled_tasks (uid, user_id, name, type, is_recurring, cron_expr, next_run, max_concurrent)
SELECT 'sch_' || lpad(n::text, 26, '0'), CASE WHEN n % 5 = 0 THEN 'u_busy' ELSE 'u_7' END, 'bench ' || n, 'tick', true,
       '* * * * *', date_trunc('minute', now()) + interval '1 day', 1000
FROM generate_series(1, 200) AS n;
INSERT INTO headrace.task_routes (task_type, queue) VALUES ('report.build', 'default');
SELECT headrace.assign_lane('default', 'rare', 'u_busy', '', '{}', false);
"""
_MONTHS = """
SELECT headrace.create_month_partitions(parent::regclass, (now() - interval '13 months')::date, now()::date)
FROM unnest(ARRAY['headrace.usage_ledger', 'headrace.webhook_deliveries', 'headrace.audit_events']) AS parent
"""


async def fill(url: str, rows: int) -> None:
    """Make a year of this many tasks, and the other tables in proportion, in an empty database."""
    connection = await asyncpg.connect(url, command_timeout=7200)
    try:
        await connection.execute("SET statement_timeout = 0; SET timezone = 'UTC'")
        await connection.execute(_MONTHS)
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(_FIRST)
        made = None
        for share, statement in STATEMENTS:
            count = max(RARE + 1, round(rows * share))
            if count != made:
                await connection.execute("DROP TABLE IF EXISTS moments")
                await connection.execute(_MOMENTS.replace(":rows", str(count)))
                made = count
            await connection.execute(statement)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()
