"""One acceptable row of each table, and a way to write it with something changed."""

from datetime import UTC, date, datetime, timedelta

from headrace import ids
from headrace.database import Tx
from tests.conftest import may_date_events

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
PERIOD = date(2026, 11, 1)
HASH = "0" * 64

USER = ids.new("u", at=NOW)
ASSET = ids.new("ast", at=NOW)
UPLOAD = ids.new("upl", at=NOW)
TASK = ids.new("tsk", at=NOW)
PLAN = ids.new("pln", at=NOW)
SUBSCRIPTION = ids.new("sub", at=NOW)
ENTITLEMENT = ids.new("ent", at=NOW)
ORDER = ids.new("ord", at=NOW)
SCHEDULE = ids.new("sch", at=NOW)
EVENT = ids.new("evt", at=NOW)
ENDPOINT = ids.new("whe", at=NOW)
HOLD = ids.new("led", at=NOW)
EXECUTION = ids.new("exe", at=NOW)
AUDIT = ids.new("aud", at=NOW)

Values = dict[str, object]

# In an order in which each row's references are there before it.
MINUTE = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
ROWS: dict[str, Values] = {
    "users": {"id": USER, "username": "ada", "password_hash": "$argon2id$"},
    "sessions": {
        "id": "ses_1",
        "user_id": USER,
        "token_hash": bytes(32),
        "expires_at": datetime(2100, 1, 1, tzinfo=UTC),
    },
    "api_keys": {"id": "key_1", "user_id": USER, "name": "ci", "key_hash": bytes(32), "key_hint": "…q7x2"},
    "account_links": {
        "id": "lnk_1",
        "user_id": USER,
        "purpose": "PASSWORD_RESET",
        "token_hash": bytes(32),
        "email": "ada@example.org",
        "expires_at": datetime(2100, 1, 1, tzinfo=UTC),
    },
    "second_factors": {"user_id": USER, "sealed_secret": "sealed"},
    "recovery_codes": {"user_id": USER, "code_hash": bytes(32)},
    "login_throttles": {"subject": "account:ada", "first_failed_at": NOW, "last_failed_at": LATER},
    "account_deletions": {
        "id": "del_1",
        "user_id": USER,
        "requested_by": USER,
        "status_before": "ACTIVE",
        "due_at": NOW,
        "next_try_at": NOW,
    },
    "audit_events": {
        "id": AUDIT,
        "timestamp": round(NOW.timestamp() * 1000),
        "action": "created",
        "resource_type": "task",
        "resource": {"type": "task", "identifier": TASK},
        "user": {"uid": USER, "username": "ada", "type": "user"},
        "client_ip": "192.0.2.7",
        "created_at": NOW,
        "actor_type": "USER",
    },
    "outbox_events": {
        "event_id": EVENT,
        "event_type": "task.created",
        "event_version": 1,
        "aggregate_type": "task",
        "aggregate_id": TASK,
        "payload_json": {},
        "status": "PENDING",
    },
    "event_interests": {"consumer": "webhooks", "pattern": "task.*"},
    "relays": {"id": "rly_1", "host": "here", "pid": 1},
    "broker_messages": {"event_position": 1},
    "assets": {
        "id": ASSET,
        "user_id": USER,
        "media_type": "IMAGE",
        "origin_name": "cat.png",
        "mime_type": "image/png",
        "size_bytes": 1,
        "sha256": HASH,
        "storage_key": "a/b",
    },
    "uploads": {
        "id": UPLOAD,
        "user_id": USER,
        "asset_id": "ast_2",
        "method": "PARTS",
        "origin_name": "cat.png",
        "size_bytes": 1,
        "part_bytes": 1,
        "storage_key": "a/c",
        "expire_at": LATER,
    },
    "upload_parts": {"upload_id": UPLOAD, "number": 1, "size_bytes": 1, "sha256": HASH},
    "tasks": {
        "id": TASK,
        "user_id": USER,
        "task_type": "IMAGE",
        "title": "A cat",
        "input_asset_id": ASSET,
        "quality_level": "HIGH",
        "mode": "AUTO",
        "output_format": "png",
    },
    "task_steps": {"task_id": TASK, "step_name": "DETECTING", "status": "RUNNING"},
    "task_results": {"task_id": TASK, "result_key": "r"},
    "removals": {
        "task_id": TASK,
        "user_id": USER,
        "asset_id": ASSET,
        "asset_sha256": HASH,
        "units": 1,
        "rights_basis": "OWNER",
        "principal_uid": USER,
    },
    "removal_passwords": {"task_id": TASK, "sealed": "0123abcd.c2VhbGVk"},
    "task_logs": {"task_id": TASK, "status": "SUCCEEDED"},
    "idempotency_keys": {
        "scope": "tasks",
        "user_id": USER,
        "idempotency_key": "k",
        "request_hash": HASH,
        "http_status": 201,
        "expires_at": LATER,
    },
    "rate_limits": {"bucket": "key:1", "tat": NOW},
    "scheduled_tasks": {
        "uid": SCHEDULE,
        "name": "nightly",
        "type": "report",
        "is_recurring": True,
        "cron_expr": "0 2 * * *",
        "labels": {"zone": "a"},
        "data": {"depth": 1},
    },
    "task_executions": {
        "task_uid": SCHEDULE,
        "user_id": USER,
        "task_name": "nightly",
        "task_type": "report",
        "execution_uid": EXECUTION,
        "task_id": TASK,
        "run_by": "host:1",
        "scheduled_at": NOW,
        "started_at": NOW,
        "state": "running",
        "trigger_type": "scheduled",
    },
    "task_locks": {
        "lock_key": "task:1",
        "fence": 1,
        "holder_id": "host:1",
        "token": "t",
        "state": "active",
        "acquired_at": NOW,
        "expires_at": LATER,
    },
    "lock_fences": {"lock_key": "task:1", "fence": 1},
    "plans": {"id": PLAN, "name": "Pro (test)", "price_cents": 100, "monthly_quota": 10},
    "subscriptions": {
        "id": SUBSCRIPTION,
        "user_id": USER,
        "plan_id": PLAN,
        "status": "ACTIVE",
        "channel": "WECHAT_PAY",
        "external_order_id": "order-1",
    },
    "entitlements": {
        "id": ENTITLEMENT,
        "user_id": USER,
        "plan_id": PLAN,
        "subscription_id": SUBSCRIPTION,
        "quota_total": 10,
        "quota_left": 10,
        "period_start": NOW,
        "period_end": LATER,
        "status": "ACTIVE",
    },
    "usage_ledger": {
        "id": HOLD,
        "period": PERIOD,
        "user_id": USER,
        "task_id": TASK,
        "entitlement_id": ENTITLEMENT,
        "consume_unit": 1,
        "direction": "DEBIT",
        "status": "HELD",
        "source": "TASK_CREATE",
        "idempotency_key": f"202611:{TASK}:hold",
        "expires_at": LATER,
    },
    "payment_orders": {
        "id": ORDER,
        "user_id": USER,
        "plan_id": PLAN,
        "subscription_id": SUBSCRIPTION,
        "entitlement_id": ENTITLEMENT,
        "kind": "PURCHASE",
        "method": "NATIVE",
        "status": "PENDING",
        "description": "Pro",
        "amount_cents": 100,
        "currency": "CNY",
        "units": 10,
        "features_json": [],
        "transaction_id": "4200",
        "expires_at": LATER,
    },
    "webhook_endpoints": {
        "id": ENDPOINT,
        "user_id": USER,
        "name": "hook",
        "url": "https://example.com/",
        "status": "ACTIVE",
        "secret_ciphertext": "s",
    },
    "webhook_deliveries": {
        "period": PERIOD,
        "delivery_id": ids.new("whd", at=NOW),
        "endpoint_id": ENDPOINT,
        "event_id": EVENT,
        "event_type": "task.created",
        "attempt": 1,
        "status": "PENDING",
    },
    "webhook_queue": {"endpoint_id": ENDPOINT, "delivery_id": ids.new("whd", at=NOW), "period": PERIOD},
    "webhook_health": {"endpoint_id": ENDPOINT},
    "notifications": {
        "user_id": USER,
        "type": "TASK_SUCCEEDED",
        "title": "Done",
        "body": "It is done.",
        "event_id": EVENT,
    },
    "system_configs": {"config_key": "upload.limit", "config_value": 1},
    "bulk_actions": {
        "task_id": TASK,
        "user_id": USER,
        "as_admin": False,
        "resource": "tasks",
        "action": "cancel",
        "filter": {},
        "expected": 1,
        "matched": 1,
    },
    "statistics_minutes": {"minute": MINUTE, "waited": [], "ran": []},
    "statistics_queues": {"minute": MINUTE, "queue": "default"},
    "statistics_durations": {
        "minute": MINUTE,
        "task_type": "work",
        "number": 1,
        "waited_classes": [0],
        "waited_counts": [1],
        "longest_wait": 0.0,
        "ran_classes": [0],
        "ran_counts": [1],
        "longest_run": 0.0,
    },
    "tech_risk_ledger": {
        "risk_id": "R-1",
        "category": "LICENSE",
        "severity": "LOW",
        "status": "OPEN",
        "trigger_condition": "t",
        "mitigation_plan": "m",
        "owner": "ada",
    },
}
# Tables that only the product itself fills.
OWN_ROWS: dict[str, Values] = {
    "audit_seals": {
        "number": 900,
        "month": PERIOD,
        "after_seq": 1,
        "last_seq": 2,
        "events": 1,
        "root": bytes(32),
        "previous": bytes(32),
        "chain": bytes(32),
        "sealed_at": NOW,
    },
    "audit_leaves": {"seal": 900, "month": PERIOD, "ids": b"", "leaves": b""},
}


def row(table: str, **changed: object) -> Values:
    return (ROWS | OWN_ROWS)[table] | changed


async def insert(tx: Tx, table: str, **changed: object) -> None:
    values = row(table, **changed)
    columns = ", ".join(f'"{column}"' for column in values)
    places = ", ".join(f"${place}" for place in range(1, len(values) + 1))
    sql = f"INSERT INTO headrace.{table} ({columns}) VALUES ({places})"
    if table == "audit_events" and await tx.fetchval("SELECT current_user = 'headrace_app'"):
        await may_date_events(tx)
        await tx.execute(sql, *values.values())
        await tx.execute("SET LOCAL ROLE headrace_app")
    else:
        await tx.execute(sql, *values.values())


async def insert_all_before(tx: Tx, table: str) -> None:
    """Write the rows that a row of ``table`` may refer to."""
    for name in ROWS:
        if name == table:
            return
        await insert(tx, name)
