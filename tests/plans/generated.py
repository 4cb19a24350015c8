"""Rows by the thousand or the million, made by the database itself; for looking at plans."""

from headrace.database import Tx

# Ids for row n: hex digits are letters of the id's alphabet, so the tail is the number itself.
HELPERS = """
CREATE FUNCTION pg_temp.letter(value bigint) RETURNS text LANGUAGE sql IMMUTABLE
RETURN substr('0123456789abcdefghjkmnpqrstvwxyz', (value & 31)::int + 1, 1);

CREATE FUNCTION pg_temp.typeid(prefix text, millis bigint, n bigint) RETURNS text LANGUAGE sql IMMUTABLE
RETURN prefix || '_'
  || pg_temp.letter(millis >> 45) || pg_temp.letter(millis >> 40) || pg_temp.letter(millis >> 35)
  || pg_temp.letter(millis >> 30) || pg_temp.letter(millis >> 25) || pg_temp.letter(millis >> 20)
  || pg_temp.letter(millis >> 15) || pg_temp.letter(millis >> 10) || pg_temp.letter(millis >> 5)
  || pg_temp.letter(millis) || lpad(to_hex(n), 16, '0');

CREATE FUNCTION pg_temp.user_id(n bigint) RETURNS text LANGUAGE sql IMMUTABLE
RETURN pg_temp.typeid('u', 1, n % greatest(:users, 1) + 1);
"""

# Row n of :rows happened n / :rows of 25 days after the first. One row in a hundred still waits for something. Let the
# number of users be prime: then user and status do not depend on each other.
STATEMENTS = """
INSERT INTO headrace.users (id, username, password_hash)
SELECT pg_temp.user_id(n), 'user-' || n, 'x' FROM generate_series(1, :users) AS n;

CREATE TEMP TABLE moments AS
SELECT n, millis, headrace.instant_of_millis(millis) AS instant,
       headrace.typeid_month(pg_temp.typeid('x', millis, n)) AS month
FROM generate_series(1, :rows) AS n,
     floor(extract(epoch FROM now() - interval '25 days') * 1000) AS start,
     floor(start + 25 * 86400000.0 / :rows * n) AS moment,
     cast(moment AS bigint) AS millis;
ANALYZE moments;

INSERT INTO headrace.tasks (id, user_id, task_type, title, status, finished_at, created_at, updated_at)
SELECT pg_temp.typeid('tsk', millis, n), pg_temp.user_id(n), 'report', 'Report ' || n,
       CASE WHEN n % 100 = 0 THEN 'QUEUED' WHEN n % 20 = 1 THEN 'FAILED' ELSE 'SUCCEEDED' END,
       CASE WHEN n % 100 <> 0 THEN instant END, instant, instant
FROM moments;

INSERT INTO headrace.task_logs (task_id, status, message, created_at)
SELECT pg_temp.typeid('tsk', millis, n), 'SUCCEEDED', 'done', instant FROM moments;

INSERT INTO headrace.outbox_events (event_id, event_type, event_version, aggregate_type, aggregate_id, payload_json,
                                    status, next_retry_at, published_at, created_at)
SELECT pg_temp.typeid('evt', millis, n), 'task.succeeded', 1, 'task', pg_temp.typeid('tsk', millis, n), '{}',
       CASE WHEN n % 1000 = 0 THEN 'PENDING' ELSE 'PUBLISHED' END, instant,
       CASE WHEN n % 1000 <> 0 THEN instant END, instant
FROM moments;

INSERT INTO headrace.webhook_endpoints (id, user_id, name, url, status, secret_ciphertext)
SELECT pg_temp.typeid('whe', 1, n), pg_temp.user_id(n), 'hook', 'https://example.com/' || n, 'ACTIVE', 's'
FROM generate_series(1, :users) AS n;

INSERT INTO headrace.webhook_deliveries (period, delivery_id, endpoint_id, event_id, event_type, attempt, status,
                                         next_retry_at, created_at)
SELECT month, pg_temp.typeid('whd', millis, n), pg_temp.typeid('whe', 1, n % :users + 1),
       pg_temp.typeid('evt', millis, n), 'task.succeeded', 1,
       CASE WHEN n % 100 = 0 THEN 'RETRYING' ELSE 'SUCCESS' END, instant, instant
FROM moments;

INSERT INTO headrace.usage_ledger (id, period, user_id, task_id, consume_unit, direction, status, source,
                                   idempotency_key, created_at)
SELECT pg_temp.typeid('led', millis, n), month, pg_temp.user_id(n), pg_temp.typeid('tsk', millis, n), 1, 'DEBIT',
       'HELD', 'TASK_CREATE', to_char(month, 'YYYYMM:') || n, instant
FROM moments;

INSERT INTO headrace.notifications (user_id, type, title, body, is_read, read_at, created_at)
SELECT pg_temp.user_id(n), 'TASK_SUCCEEDED', 'Done', 'It is done.', n % 50 <> 0, CASE WHEN n % 50 <> 0 THEN instant END,
       instant
FROM moments;

INSERT INTO headrace.audit_events (id, "timestamp", created_at, action, resource_type, resource, "user", client_ip,
                                   request_id, trace_id, actor_type)
SELECT pg_temp.typeid('aud', millis, n), millis, instant,
       (ARRAY['created', 'updated', 'deleted', 'read'])[n % 4 + 1],
       (ARRAY['task', 'asset', 'plan', 'user', 'session'])[n % 5 + 1],
       jsonb_build_object('type', (ARRAY['task', 'asset', 'plan', 'user', 'session'])[n % 5 + 1],
                          'identifier', 'thing-' || n / 10),
       jsonb_build_object('uid', pg_temp.user_id(n), 'username', 'user-' || n, 'type', 'user'),
       '10.' || n / 65536 % 256 || '.' || n / 256 % 256 || '.' || n % 256, 'req-' || n, 'trace-' || n,
       CASE WHEN n % 10 = 0 THEN 'ADMIN' ELSE 'USER' END
FROM moments;

INSERT INTO headrace.scheduled_tasks (uid, name, type, is_recurring, "interval", next_run, labels)
SELECT 'sch_' || n, 'schedule-' || n, 'report', true, 60, now() + n * interval '1 minute',
       jsonb_build_object('zone', 'zone-' || n)
FROM generate_series(1, least(:rows, 10000)) AS n;

INSERT INTO headrace.task_executions (task_uid, user_id, task_name, task_type, execution_uid, run_by, scheduled_at,
                                      started_at, finished_at, state, trigger_type, created_at)
SELECT 'sch_' || n % :users + 1, 'u_' || n % :users + 1, 'schedule-' || n % :users + 1, 'report',
       'exe_' || lpad(n::text, 26, '0'), 'host:1', instant, instant,
       instant, CASE WHEN n % 50 = 0 THEN 'failure' ELSE 'success' END, 'scheduled', instant
FROM moments;

INSERT INTO headrace.system_configs (config_key, config_scope, scope_id, config_value)
SELECT 'key-' || n % 500, 'USER', 'u-' || n, '1' FROM generate_series(1, 5000) AS n;

INSERT INTO headrace.tech_risk_ledger (risk_id, category, severity, status, trigger_condition, mitigation_plan, owner)
SELECT 'R-' || n, 'TECHNICAL', CASE WHEN n % 100 = 0 THEN 'CRITICAL' ELSE 'LOW' END,
       CASE WHEN n % 10 = 0 THEN 'OPEN' ELSE 'CLOSED' END, 't', 'm', 'owner-' || n % 100
FROM generate_series(1, 5000) AS n;
"""


async def generate(tx: Tx, *, rows: int, users: int) -> None:
    """Fill the tables that the documents' queries read. As a superuser: references are right by construction."""
    await tx.execute("SET LOCAL session_replication_role = replica; SET LOCAL statement_timeout = 0")
    for sql in (HELPERS, *STATEMENTS.strip().removesuffix(";").split(";\n")):
        await tx.execute(sql.replace(":rows", str(rows)).replace(":users", str(users)))
