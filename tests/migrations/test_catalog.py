"""The schema held against the three documents, column by column and index by index. W-01, S-01, S-10, S-13, A-01, W-21.

The documents' DDL is run into schemas of its own, and PostgreSQL's catalog tells the difference. Every difference is in
``DECIDED`` with its reason, and everything in ``DECIDED`` is still a difference.
"""

import re
from dataclasses import replace

import pytest

from headrace.database import Tx
from tests.migrations.documents import DOCUMENTS
from tests.migrations.schema_reader import Schema, differences, read_schema

TYPE_ID = "ids are TypeIDs: the 16 bytes are inside, the prefix outside"
INSTANT = "an instant is an instant in every time zone; 002 asks for timestamptz"
JSONB = "002 keeps JSON in jsonb: checked when written, searched by index"
MEDIA_ONLY = "only media tasks have it: ck_tasks_media asks for it there and refuses it elsewhere"
PARTITIONED = (
    "a key of a partitioned table holds the partition column; a CHECK makes that follow from the rest of the key"
)
OUTLIVES = "history outlives what it tells of: a foreign key would pin that row for as long as the history is kept"
TAG_ONLY = "only a struct tag asks for it, the index design does not; "

# "what the document says: what we have", with * for any column. The one list of deviations.
DECIDED = {
    # -- 000, the task dispatch service
    "000 *: timestamp without time zone: timestamp with time zone": INSTANT,
    "000 *: json: jsonb": JSONB,
    "000 *: uuid: character varying(64)": TYPE_ID,
    "000 *: bigint: character varying(64)": TYPE_ID,
    "000 users.id: default nextval('users_id_seq'::regclass): None": "made by the application, before the insert",
    "000 users.username: not null: null": "a WeChat user has none; ck_users_credential: password and name, or openid",
    "000 users.password_hash: not null: null": "a WeChat user has none; ck_users_credential",
    "000 users: idx_users_username unique (username): unique (lower(username::text))": (
        "MySQL's utf8mb4 collation compares without case, so 000's names are unique without case"
    ),
    "000 tasks.priority: null: not null": "no priority is 0",
    "000 tasks.retries: null: not null": "no retries are 0",
    "000 tasks.status: character varying(32): character varying(24)": "002's length; every status of the list fits",
    "000 tasks.status: default 'queued'::character varying: 'QUEUED'::character varying": "002's spelling",
    "000 tasks: idx_tasks_user_status (user_id, status): served by idx_tasks_user_status_created_at": "its prefix",
    "000 task_logs: idx_task_logs_task (task_id): (task_id, id)": "the same searches, and the lines come in order",
    "000 idempotency_keys.key: missing": "002's idempotency_key, of the same length",
    "000 idempotency_keys: primary key unique (key): unique (id)": (
        "002's: a key is one user's and one scope's, by uk_idempotency_scope_user_key"
    ),
    # -- 001, the scheduler and the audit trail
    "001 *: timestamp without time zone: timestamp with time zone": INSTANT,
    "001 *: text: jsonb": JSONB,
    "001 scheduled_tasks.labels: null: not null": "no labels are {}",
    "001 scheduled_tasks.labels: default None: '{}'::jsonb": "no labels are {}",
    "001 scheduled_tasks: idx_scheduled_tasks_created_at (created_at): missing": TAG_ONLY + "a few hundred rows",
    "001 scheduled_tasks: idx_scheduled_tasks_updated_at (updated_at): missing": TAG_ONLY + "every count would move it",
    "001 scheduled_tasks: scheduled_tasks_name_key unique (name): missing": (
        "uk_scheduled_tasks_user_name (user_id, name): a name is its owner's, and free before a history is gone"
    ),
    "001 task_executions.run_by: not null: null": "nobody runs it while pending (ck_task_executions_started)",
    "001 task_executions.started_at: not null: null": "not started while pending (ck_task_executions_started)",
    "001 task_executions: idx_task_executions_task_uid (task_uid): (task_uid, scheduled_at DESC, execution_uid DESC)": (
        "the same searches, and the runs come in order"
    ),
    "001 task_executions: idx_task_executions_state (state): (state, scheduled_at DESC, execution_uid DESC)": (
        "the same searches, and the runs come in order"
    ),
    "001 task_executions: idx_task_executions_updated_at (updated_at): missing": (
        TAG_ONLY + "each step of progress would rewrite every index"
    ),
    "001 task_locks: task_locks_lock_key_key unique (lock_key): missing": (
        "the appendix's UNIQUE forbids the history; idx_task_locks_key, over active locks, is the document's own remedy"
    ),
    "001 task_locks: idx_task_locks_key unique (lock_key) where state = 'active': "
    "unique (user_id, lock_key) where state = 'active'": "a key is a name among its owner's: no stranger is in the way",
    "001 task_locks: idx_task_locks_state (state): (state, id)": "the same searches, and the locks come in order",
    "001 task_locks: idx_task_locks_holder (holder_id): (holder_id, id)": "the same searches, in order as well",
    "001 task_locks: idx_task_locks_acquired_at (acquired_at): missing": TAG_ONLY + "nothing asks by it",
    "001 task_locks: idx_task_locks_created_at (created_at): missing": TAG_ONLY + "nothing asks by it",
    "001 task_locks: idx_task_locks_updated_at (updated_at): missing": TAG_ONLY + "each renewal would move it",
    "001 audit_events.created_at: default now(): None": "it is the instant inside the id, and comes with it",
    "001 audit_events: primary key unique (id): unique (id, created_at)": PARTITIONED,
    "001 audit_events: idx_audit_events_action (action): served by idx_audit_logs_action_created_at": "its prefix",
    '001 audit_events: idx_audit_events_resource_type (resource_type): (resource_type, "timestamp" DESC)': (
        "newest first at once"
    ),
    '001 audit_events: idx_audit_events_client_ip (client_ip): (client_ip, "timestamp" DESC)': "newest first at once",
    "001 audit_events: idx_audit_events_created_at (created_at): missing": TAG_ONLY + "it is the timestamp, indexed",
    # -- 002, the watermark service
    "002 notifications: check type IN ('TASK_SUCCEEDED', 'TASK_FAILED', 'SUBSCRIPTION_ACTIVATED', "
    "'SUBSCRIPTION_EXPIRING', 'ACCOUNT_DELETE_COMPLETED'): missing": (
        "the same list and QUOTA_REACHED (ck_notifications_type), for a quota that is nearly used"
    ),
    "002 assets: check media_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT'): missing": (
        "the same list and OTHER (ck_assets_media_type), for files that the settings allow beside media"
    ),
    "002 tasks.task_type: character varying(16): character varying(255)": "every registered type; 001's length",
    "002 tasks: check task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT'): missing": "every registered type",
    "002 tasks.input_asset_id: not null: null": MEDIA_ONLY,
    "002 tasks.quality_level: not null: null": MEDIA_ONLY,
    "002 tasks.mode: not null: null": MEDIA_ONLY,
    "002 tasks.mode: default 'AUTO'::character varying: None": "would fill the column of tasks that have no mode",
    "002 tasks.output_format: not null: null": MEDIA_ONLY,
    "002 tasks: idx_tasks_asset_id (input_asset_id): (input_asset_id) where input_asset_id IS NOT NULL": (
        "serves the same searches, and other tasks pay nothing for it"
    ),
    "002 tasks: check status IN ('UPLOADED', 'QUEUED', 'PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING', "
    "'SUCCEEDED', 'FAILED', 'CANCELED'): missing": "the same list and RUNNING (ck_tasks_status)",
    "002 tasks.status: default None: 'QUEUED'::character varying": "000's default",
    "002 tasks.current_step: character varying(24): character varying(64)": "other types name their own steps",
    "002 task_steps.step_name: character varying(24): character varying(64)": "other types name their own steps",
    "002 task_steps: check step_name IN ('PREPROCESSING', 'DETECTING', 'INPAINTING', 'PACKAGING'): missing": (
        "these, or another type's lower-case name (ck_task_steps_step_name)"
    ),
    "002 usage_ledger: primary key unique (id): unique (id, period)": PARTITIONED,
    "002 usage_ledger: uk_usage_ledger_user_idempotency unique (user_id, idempotency_key): "
    "unique (user_id, idempotency_key, period)": PARTITIONED,
    "002 usage_ledger: fk_usage_ledger_tasks_task_id FOREIGN KEY (task_id) REFERENCES tasks(id): missing": OUTLIVES,
    "002 webhook_deliveries: fk_webhook_deliveries_outbox_event_id FOREIGN KEY (event_id) "
    "REFERENCES outbox_events(event_id): missing": OUTLIVES,
    "002 webhook_deliveries.next_retry_at: default None: now()": "due at once, as an event is",
    "002 webhook_deliveries: primary key unique (id): unique (id, period)": (
        "a key of a partitioned table holds the partition column; ids come from one sequence, delivery_id names the row"
    ),
    "002 webhook_deliveries: uk_webhook_delivery_id unique (delivery_id): unique (delivery_id, period)": PARTITIONED,
    "002 webhook_deliveries: uk_webhook_endpoint_event_attempt unique (endpoint_id, event_id, attempt): "
    "unique (endpoint_id, event_id, attempt, period)": PARTITIONED,
    "002 idempotency_keys: uk_idempotency_scope_user_key unique (scope, user_id, idempotency_key): "
    "unique (scope, user_id, idempotency_key) nulls not distinct": "or every key without a user would be new",
    "002 idempotency_keys.http_status: null: not null": (
        "a key is written together with its answer, in the transaction of what was done"
    ),
    "002 outbox_events.next_retry_at: default None: now()": "§7's query finds only what has a time; new is due at once",
    "002 outbox_events: idx_outbox_events_aggregate (aggregate_type, aggregate_id): missing": (
        "every event would pay for it; what waits has idx_outbox_events_open, and the published are kept for days"
    ),
    "002 outbox_events: idx_outbox_events_event_type_created_at (event_type, created_at DESC): missing": (
        "every event would pay for it, and nothing asks by it"
    ),
    "002 system_configs: uk_system_configs_key_scope unique (config_key, config_scope): "
    "unique (config_key, config_scope, scope_id)": "one tenant's value must not be another's",
    # -- 002's audit_logs is a view over audit_events; it is compared with the columns and indexes beneath it
    "002 audit_logs.id: default nextval('audit_logs_id_seq'::regclass): nextval('audit_events_seq'::regclass)": (
        "audit_events.seq"
    ),
    "002 audit_logs.created_at: default now(): None": "001's audit_events.created_at, see there",
    "002 audit_logs: primary key unique (id): unique (id, created_at)": "001's audit_events.id, see there",
    "002 audit_logs: fk_audit_logs_users_user_id FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE SET NULL: "
    "missing": "001: the trail has no foreign keys; SET NULL would rewrite evidence",
    "002 audit_logs: idx_audit_logs_actor_created_at (actor_type, actor_id, created_at DESC): "
    "(actor_type, (((\"user\" ->> 'uid'::text))::character varying(64)), created_at DESC)": "the view's actor_id",
}

BENEATH_THE_VIEW = {"id": "seq", "actor_type": "actor_type", "action": "action", "created_at": "created_at"}


async def read_ours(tx: Tx) -> Schema:
    ours = await read_schema(tx, "headrace")
    trail, view = ours["audit_events"], ours["audit_logs"]
    columns = {
        name: replace(trail.columns[BENEATH_THE_VIEW[name]], type=column.type) if name in BENEATH_THE_VIEW else column
        for name, column in view.columns.items()
    }
    ours["audit_logs"] = replace(trail, columns=columns)
    return ours


async def found_differences(tx: Tx, document: str) -> set[str]:
    schema = f"document_{document}"
    await tx.execute(f"CREATE SCHEMA {schema}; SET LOCAL search_path = {schema}; {DOCUMENTS[document]}")
    theirs = await read_schema(tx, schema)
    assert theirs
    lines = {f"{document} {line}" for line in differences(theirs, await read_ours(tx))}
    return {line if line in DECIDED else _for_any_column(line) for line in lines}


def _for_any_column(line: str) -> str:
    rule = re.sub(r"^(\d+) \w+\.\w+:", r"\1 *:", line)
    return rule if rule in DECIDED else line


@pytest.mark.both
@pytest.mark.parametrize("document", DOCUMENTS)
async def test_the_documents_differ_from_the_schema_only_where_decided(owner_tx: Tx, document: str) -> None:
    decided = {line for line in DECIDED if line.startswith(document)}
    found = await found_differences(owner_tx, document)
    assert found - decided == set(), "differences that nobody decided"
    assert decided - found == set(), "decisions that no longer differ from the document"


async def test_audit_logs_has_002s_columns_in_002s_order(owner_tx: Tx) -> None:  # W-01
    await owner_tx.execute(f"CREATE SCHEMA theirs; SET LOCAL search_path = theirs; {DOCUMENTS['002']}")
    asked = (await read_schema(owner_tx, "theirs"))["audit_logs"].columns
    found = (await read_schema(owner_tx, "headrace"))["audit_logs"].columns
    assert [(name, column.type) for name, column in found.items()] == [
        (name, column.type) for name, column in asked.items()
    ]


@pytest.mark.parametrize(
    ("document", "damage", "says"),
    [
        ("002", "ALTER TABLE headrace.users DROP COLUMN mobile", "users.mobile: missing"),
        ("002", "ALTER TABLE headrace.users ALTER mobile TYPE varchar(31)", "users.mobile: character varying(32)"),
        ("002", "ALTER TABLE headrace.plans ALTER currency DROP DEFAULT", "plans.currency: default 'CNY'"),
        ("002", "ALTER TABLE headrace.plans ALTER name DROP NOT NULL", "plans.name: not null: null"),
        ("002", "ALTER TABLE headrace.plans DROP CONSTRAINT ck_plans_price_cents", "check price_cents >= 0: missing"),
        (
            "002",
            "ALTER TABLE headrace.users DROP CONSTRAINT ck_users_status, "
            "ADD CONSTRAINT ck_users_status CHECK (status IN ('ACTIVE', 'SUSPENDED', 'DELETED', 'ASLEEP'))",
            "check status IN ('ACTIVE', 'SUSPENDED', 'DELETED'): missing",
        ),
        ("002", "ALTER TABLE headrace.assets DROP CONSTRAINT fk_assets_users_user_id", "fk_assets_users_user_id"),
        (
            "002",
            "ALTER TABLE headrace.task_steps DROP CONSTRAINT fk_task_steps_tasks_task_id, ADD CONSTRAINT "
            "fk_task_steps_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks (id)",
            "ON DELETE CASCADE: FOREIGN KEY (task_id) REFERENCES tasks(id)",
        ),
        ("002", "ALTER TABLE headrace.plans DROP CONSTRAINT uk_plans_name", "uk_plans_name unique (name): missing"),
        ("002", "DROP INDEX headrace.uk_webhook_endpoints_user_url_active", "where deleted_at IS NULL: missing"),
        ("002", "DROP INDEX headrace.idx_audit_logs_trace_id", "idx_audit_logs_trace_id (trace_id): missing"),
        ("002", "DROP TABLE headrace.tech_risk_ledger", "tech_risk_ledger: missing"),
        ("001", "ALTER TABLE headrace.task_locks DROP CONSTRAINT task_locks_pkey", "primary key unique (id): missing"),
        (
            "001",
            "DROP INDEX headrace.idx_scheduled_tasks_priority; "
            "CREATE INDEX idx_scheduled_tasks_priority ON headrace.scheduled_tasks (priority)",
            "idx_scheduled_tasks_priority (priority DESC): (priority)",
        ),
        ("001", "DROP INDEX headrace.idx_task_locks_key", "unique (lock_key) where state = 'active': missing"),
        (
            "000",
            "DROP INDEX headrace.idx_tasks_user_status_created_at",
            "idx_tasks_user_status (user_id, status): miss",
        ),
    ],
)
async def test_what_goes_missing_is_noticed(owner_tx: Tx, document: str, damage: str, says: str) -> None:
    await owner_tx.execute(damage)
    new = await found_differences(owner_tx, document) - set(DECIDED)
    assert [line for line in new if says in line], new


# -- what the documents do not say


MISNAMED = """
SELECT conrelid::regclass || ' ' || conname
FROM pg_constraint
JOIN pg_class ON pg_class.oid = conrelid
WHERE connamespace = 'headrace'::regnamespace AND NOT relispartition AND contype IN ('c', 'f', 'u')
  AND conname !~ CASE contype WHEN 'c' THEN '^ck_' WHEN 'f' THEN '^fk_' ELSE '^uk_' END
UNION ALL
SELECT indexrelid::regclass::text
FROM pg_index
JOIN pg_class ON pg_class.oid = indrelid
WHERE relnamespace = 'headrace'::regnamespace AND NOT relispartition
  AND indexrelid::regclass::text !~ '^headrace\\.(idx_|uk_|\\w+_pkey$)'
UNION ALL
SELECT tgrelid::regclass || ' ' || tgname
FROM pg_trigger
JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = 'headrace'::regnamespace AND NOT tgisinternal AND tgname !~ '^tr_'
"""


async def test_names_say_what_they_name(owner_tx: Tx) -> None:  # W-01: 002 §4.1
    assert await owner_tx.fetch(MISNAMED) == []


SILENT = """
SELECT oid::regclass::text FROM pg_class
WHERE relnamespace = 'headrace'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition
  AND obj_description(oid, 'pg_class') IS NULL
"""


async def test_every_table_says_what_it_is_for(owner_tx: Tx) -> None:
    assert await owner_tx.fetch(SILENT) == []


UNTOUCHED = """
SELECT attrelid::regclass::text
FROM pg_attribute
JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'headrace'::regnamespace AND relkind IN ('r', 'p') AND attname = 'updated_at' AND NOT EXISTS (
  SELECT FROM pg_trigger WHERE tgrelid = attrelid AND tgfoid = 'headrace.touch_updated_at'::regproc
)
"""


async def test_every_updated_at_is_kept_by_the_database(owner_tx: Tx) -> None:  # D-01
    assert await owner_tx.fetch(UNTOUCHED) == []


ALL_ROWS = {"SELECT", "INSERT", "UPDATE", "DELETE"}
LESS = {
    "audit_events": {"SELECT"},  # A-03; and INSERT of all columns but its number
    "usage_ledger": {"SELECT", "INSERT"},
    "payment_orders": {"SELECT", "INSERT", "UPDATE"},  # what was paid is not deleted
    "audit_logs": {"SELECT"},
    "audit_seals": {"SELECT", "INSERT"},
    "audit_leaves": {"SELECT", "INSERT"},
    "schema_migrations": {"SELECT"},
    "schema_definitions": {"SELECT"},
    "archives": {"SELECT"},  # the owner's own book
    "removal_passwords": {"SELECT", "INSERT", "DELETE"},  # never changed
    "retention_minimums": {"SELECT"},  # what limits the application must not be its own to change
    "row_archives": {"SELECT", "INSERT"},  # what was deleted and where it is: only ever added to
}
RIGHTS = """
SELECT relname, relispartition, array_agg(privilege) FILTER (WHERE has_table_privilege('headrace_app', oid, privilege))
  AS privileges
FROM pg_class
CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS privilege
WHERE relnamespace = 'headrace'::regnamespace AND relkind IN ('r', 'p', 'v')
GROUP BY relname, relispartition
"""


async def test_the_application_may_do_what_it_needs_and_no_more(owner_tx: Tx) -> None:
    for row in await owner_tx.fetch(RIGHTS):
        expected = {"SELECT"} if row["relispartition"] else LESS.get(row["relname"], ALL_ROWS)
        assert set(row["privileges"]) == expected, row["relname"]


MAY_NOT_SET = """
SELECT attname::text
FROM pg_attribute
WHERE attrelid = 'headrace.audit_events'::regclass AND attnum > 0
  AND NOT has_column_privilege('headrace_app', attrelid, attnum, 'INSERT')
"""


async def test_the_application_may_not_number_its_events(owner_tx: Tx) -> None:
    assert [row[0] for row in await owner_tx.fetch(MAY_NOT_SET)] == ["seq"]


STEERED = """
SELECT oid::regprocedure::text AS function, 'jit=off' = ANY (proconfig) AS uncompiled
FROM pg_proc
WHERE pronamespace = 'headrace'::regnamespace AND array_to_string(proconfig, ' ') ~ '\\yenable_'
"""


async def test_what_steers_its_plans_is_not_compiled(owner_tx: Tx) -> None:
    """To PostgreSQL 15, a step that is switched off and needed costs so much that every call would be compiled."""
    steered = {row["function"]: row["uncompiled"] for row in await owner_tx.fetch(STEERED)}
    assert len(steered) > 5
    assert all(steered.values()), steered
