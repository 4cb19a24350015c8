"""Whatever must not be in the database is refused by the database. W-01, S-02, S-10, S-13, A-02, W-15, W-21."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg
import pytest

from headrace import audit, ids
from headrace.database import Tx
from tests.migrations.rows import HASH, HOLD, LATER, NOW, ROWS, TASK, USER, insert, insert_all_before
from tests.migrations.schema_reader import read_schema

NEXT_MONTH = LATER.replace(month=12)
TOO_LONG = "x" * 65537


@pytest.mark.both
@pytest.mark.parametrize("table", ROWS)
async def test_the_row_that_the_others_are_made_from_is_accepted(tx: Tx, table: str) -> None:
    await insert_all_before(tx, table)
    await insert(tx, table)


# Nearly ids: too short, another kind, letters that are none, more bits than a UUID has.
NOT_IDS = ("aud_01m7hqsczr", ids.new("tsk", at=NOW), f"{ids.new('aud', at=NOW)[:-12]}!! not uuid!", "aud_8" + "z" * 25)

# table, what is changed in the acceptable row, the constraint that refuses it
REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("users", {"status": "ASLEEP"}, "ck_users_status"),
    ("users", {"status": "DELETED"}, "ck_users_deleted"),
    ("users", {"deleted_at": NOW}, "ck_users_deleted"),
    ("users", {"role": "ROOT"}, "ck_users_role"),
    ("users", {"mobile": "0301234567"}, "ck_users_mobile"),
    ("users", {"mobile": "+49 301234567"}, "ck_users_mobile"),
    ("users", {"password_hash": None}, "ck_users_credential"),
    ("users", {"username": None}, "ck_users_credential"),
    ("users", {"username": ""}, "ck_users_username"),
    ("users", {"username": "SYSTEM"}, "idx_users_username"),  # D-01: whatever the case
    ("sessions", {"token_hash": b"short"}, "ck_sessions_token_hash"),
    ("sessions", {"expires_at": NOW.replace(year=2000)}, "ck_sessions_expires_at"),
    ("sessions", {"user_id": "u_nobody"}, "fk_sessions_users_user_id"),
    ("api_keys", {"name": " "}, "ck_api_keys_name"),
    ("api_keys", {"key_hash": b"short"}, "ck_api_keys_key_hash"),
    ("api_keys", {"scopes": ["tasks", None]}, "ck_api_keys_scopes"),
    ("account_links", {"token_hash": b"short"}, "ck_account_links_token_hash"),
    ("account_links", {"purpose": "ANOTHER"}, "ck_account_links_purpose"),
    ("account_links", {"expires_at": NOW.replace(year=2000)}, "ck_account_links_expires_at"),
    ("recovery_codes", {"code_hash": b"short"}, "ck_recovery_codes_code_hash"),
    ("login_throttles", {"failures": -1}, "ck_login_throttles_failures"),
    ("login_throttles", {"last_failed_at": NOW.replace(year=2000)}, "ck_login_throttles_order"),
    ("account_deletions", {"status": "DONE"}, "ck_account_deletions_status"),
    ("account_deletions", {"status_before": "DELETED"}, "ck_account_deletions_status_before"),
    ("account_deletions", {"status": "RUNNING"}, "ck_account_deletions_started"),
    ("account_deletions", {"status": "CANCELED"}, "ck_account_deletions_ended"),
    ("account_deletions", {"attempt": -1}, "ck_account_deletions_attempt"),
    ("account_deletions", {"user_id": "u_nobody"}, "fk_account_deletions_users_user_id"),
    #
    ("audit_events", {"action": "modified"}, "ck_audit_events_action"),
    ("audit_events", {"action": "Created"}, "ck_audit_events_action"),
    (
        "audit_events",
        {"resource_type": "teapot", "resource": {"type": "teapot", "identifier": "1"}},
        "ck_audit_events_resource_type",
    ),
    ("audit_events", {"resource": {"identifier": TASK}}, "ck_audit_events_resource"),
    ("audit_events", {"resource": {"type": "asset", "identifier": TASK}}, "ck_audit_events_resource"),
    ("audit_events", {"resource": {"type": "task"}}, "ck_audit_events_resource"),
    ("audit_events", {"user": {"username": "ada", "type": "user"}}, "ck_audit_events_user"),
    ("audit_events", {"user": {"uid": "", "username": "ada", "type": "user"}}, "ck_audit_events_user"),
    ("audit_events", {"user": {"uid": USER, "username": "ada", "type": "robot"}}, "ck_audit_events_user"),
    ("audit_events", {"user": {"uid": USER, "username": "ada"}}, "ck_audit_events_user"),
    ("audit_events", {"diff_object": {"old_object": TOO_LONG}}, "ck_audit_events_diff_object"),
    ("audit_events", {"diff_object": {"new_object": TOO_LONG}}, "ck_audit_events_diff_object"),
    ("audit_events", {"actor_type": "ROBOT"}, "ck_audit_events_actor_type"),
    *[("audit_events", dict[str, object](id=value), "ck_audit_events_id") for value in NOT_IDS],
    ("audit_events", {"seq": 0}, "ck_audit_events_seq"),
    *[
        ("task_executions", dict[str, object](execution_uid=value), "ck_task_executions_execution_uid")
        for value in ("hello", "", ids.new("aud", at=NOW), "exe_8" + "0" * 25, "exe_" + "u" * 26, "exe_0" + "0" * 26)
    ],
    ("audit_events", {"created_at": LATER}, "ck_audit_events_created_at"),
    ("audit_events", {"id": ids.new("aud", at=LATER)}, "ck_audit_events_id"),
    ("event_interests", {"consumer": ""}, "ck_event_interests_consumer"),
    ("event_interests", {"pattern": "*.created"}, "ck_event_interests_pattern"),
    ("outbox_events", {"status": "SENT"}, "ck_outbox_events_status"),
    ("outbox_events", {"status": "PUBLISHED"}, "ck_outbox_events_published_at"),
    ("outbox_events", {"event_version": 0}, "ck_outbox_events_event_version"),
    ("outbox_events", {"retry_count": -1}, "ck_outbox_events_retry_count"),
    ("assets", {"media_type": "AUDIO"}, "ck_assets_media_type"),
    ("assets", {"size_bytes": 0}, "ck_assets_size_bytes"),
    ("assets", {"status": "LOST"}, "ck_assets_status"),
    ("assets", {"status": "DELETED"}, "ck_assets_deleted"),
    ("assets", {"sha256": "0"}, "ck_assets_sha256"),
    ("assets", {"user_id": "u_nobody"}, "fk_assets_users_user_id"),
    ("assets", {"purged_at": NOW}, "ck_assets_purged"),
    ("uploads", {"method": "MAIL"}, "ck_uploads_method"),
    ("uploads", {"size_bytes": -1}, "ck_uploads_size_bytes"),
    ("uploads", {"sha256": "0"}, "ck_uploads_sha256"),
    ("uploads", {"part_bytes": 0}, "ck_uploads_part_bytes"),
    ("uploads", {"part_bytes": None}, "ck_uploads_parts"),
    ("uploads", {"status": "LOST"}, "ck_uploads_status"),
    ("uploads", {"status": "COMPLETING"}, "ck_uploads_lease"),
    ("uploads", {"lease_token": "t"}, "ck_uploads_lease"),
    ("uploads", {"user_id": "u_nobody"}, "fk_uploads_users_user_id"),
    ("upload_parts", {"number": 0}, "ck_upload_parts_number"),
    ("upload_parts", {"size_bytes": 0}, "ck_upload_parts_size_bytes"),
    ("upload_parts", {"sha256": "0"}, "ck_upload_parts_sha256"),
    ("upload_parts", {"upload_id": "upl_none"}, "fk_upload_parts_uploads_upload_id"),
    ("tasks", {"status": "queued"}, "ck_tasks_status"),
    ("tasks", {"status": "SUCCEEDED"}, "ck_tasks_finished_at"),
    ("tasks", {"finished_at": NOW}, "ck_tasks_finished_at"),
    ("tasks", {"quality_level": "LOW"}, "ck_tasks_quality_level"),
    ("tasks", {"mode": "MAGIC"}, "ck_tasks_mode"),
    ("tasks", {"progress": 101}, "ck_tasks_progress"),
    ("tasks", {"progress": -1}, "ck_tasks_progress"),
    ("tasks", {"eta_sec": -1}, "ck_tasks_eta_sec"),
    ("tasks", {"attempt": -1}, "ck_tasks_attempt"),
    ("tasks", {"retries": -1}, "ck_tasks_retries"),
    ("tasks", {"max_attempts": 0}, "ck_tasks_max_attempts"),
    ("tasks", {"timeout_seconds": 0}, "ck_tasks_timeout_seconds"),
    ("tasks", {"grace_seconds": -1}, "ck_tasks_grace_seconds"),
    ("tasks", {"extension_seconds": -1}, "ck_tasks_extension_seconds"),
    ("tasks", {"queue": ""}, "ck_tasks_queue"),
    ("tasks", {"current_step": "Detecting"}, "ck_tasks_current_step"),
    ("tasks", {"current_step": "POLISHING"}, "ck_tasks_current_step"),
    # media columns: required for media, refused elsewhere
    ("tasks", {"input_asset_id": None}, "ck_tasks_media"),
    ("tasks", {"quality_level": None}, "ck_tasks_media"),
    ("tasks", {"mode": None}, "ck_tasks_media"),
    ("tasks", {"output_format": None}, "ck_tasks_media"),
    ("tasks", {"task_type": "report"}, "ck_tasks_media"),
    ("tasks", {"user_id": "u_nobody"}, "fk_tasks_users_user_id"),
    ("tasks", {"input_asset_id": "ast_none"}, "fk_tasks_assets_input_asset_id"),
    ("task_steps", {"step_name": "POLISHING"}, "ck_task_steps_step_name"),
    ("task_steps", {"step_name": ""}, "ck_task_steps_step_name"),
    ("task_steps", {"status": "SUCCEEDED"}, "ck_task_steps_status"),
    ("task_steps", {"attempt": 0}, "ck_task_steps_attempt"),
    ("task_steps", {"duration_ms": -1}, "ck_task_steps_duration_ms"),
    ("task_logs", {"attempt": -1}, "ck_task_logs_attempt"),
    ("idempotency_keys", {"request_hash": "0"}, "ck_idempotency_keys_request_hash"),
    ("idempotency_keys", {"http_status": 99}, "ck_idempotency_keys_http_status"),
    ("idempotency_keys", {"idempotency_key": ""}, "ck_idempotency_keys_idempotency_key"),
    # S-02
    ("scheduled_tasks", {"name": " "}, "ck_scheduled_tasks_name"),
    ("scheduled_tasks", {"type": ""}, "ck_scheduled_tasks_type"),
    ("scheduled_tasks", {"cron_expr": None}, "ck_scheduled_tasks_recurrence"),
    ("scheduled_tasks", {"interval": 60}, "ck_scheduled_tasks_recurrence"),
    ("scheduled_tasks", {"cron_expr": " "}, "ck_scheduled_tasks_cron_expr"),
    ("scheduled_tasks", {"cron_expr": None, "interval": 0}, "ck_scheduled_tasks_interval"),
    ("scheduled_tasks", {"timezone": ""}, "ck_scheduled_tasks_timezone"),
    ("scheduled_tasks", {"misfire_policy": "some"}, "ck_scheduled_tasks_misfire_policy"),
    ("scheduled_tasks", {"max_duration_seconds": 0, "timeout_grace_period": 0}, "*ck_scheduled_tasks_"),
    ("scheduled_tasks", {"timeout_grace_period": -1}, "ck_scheduled_tasks_timeout_grace_period"),
    ("scheduled_tasks", {"timeout_grace_period": 3600}, "ck_scheduled_tasks_timeout_grace_period"),
    ("scheduled_tasks", {"max_extension_seconds": -1}, "ck_scheduled_tasks_max_extension_seconds"),
    ("scheduled_tasks", {"max_retries": -1}, "ck_scheduled_tasks_max_retries"),
    ("scheduled_tasks", {"max_concurrent": 0}, "ck_scheduled_tasks_max_concurrent"),
    ("scheduled_tasks", {"labels": ["a"]}, "ck_scheduled_tasks_labels"),
    ("scheduled_tasks", {"labels": {"zone": 1}}, "ck_scheduled_tasks_labels"),
    ("scheduled_tasks", {"data": "x" * 10239}, "ck_scheduled_tasks_data"),  # and two quotes
    ("scheduled_tasks", {"success_executions": 1}, "ck_scheduled_tasks_statistics"),
    ("scheduled_tasks", {"total_executions": 1, "consecutive_failures": 1}, "ck_scheduled_tasks_statistics"),
    ("scheduled_tasks", {"skipped_runs": -1}, "ck_scheduled_tasks_skipped_runs"),
    ("scheduled_tasks", {"deleted_at": NOW}, "ck_scheduled_tasks_deleted_at"),
    # S-10, S-12
    ("task_executions", {"state": "paused"}, "ck_task_executions_state"),
    ("task_executions", {"state": "pending"}, "ck_task_executions_started"),
    ("task_executions", {"run_by": None}, "ck_task_executions_started"),
    ("task_executions", {"started_at": None}, "ck_task_executions_started"),
    ("task_executions", {"state": "success"}, "ck_task_executions_finished_at"),
    ("task_executions", {"finished_at": LATER}, "ck_task_executions_finished_at"),
    (
        "task_executions",
        {"state": "success", "started_at": LATER, "finished_at": NOW},
        "ck_task_executions_finished_at",
    ),
    ("task_executions", {"progress": 101}, "ck_task_executions_progress"),
    ("task_executions", {"progress": -1}, "ck_task_executions_progress"),
    ("task_executions", {"duration_ms": -1}, "ck_task_executions_duration_ms"),
    ("task_executions", {"retry_count": -1}, "ck_task_executions_retry_count"),
    ("task_executions", {"trigger_type": "webhook"}, "ck_task_executions_trigger_type"),
    ("task_executions", {"trigger_type": "manual"}, "ck_task_executions_trigger_by"),
    ("task_executions", {"result": "x" * 65537}, "ck_task_executions_result"),
    ("task_executions", {"error_stack": "x" * 10241}, "ck_task_executions_error_stack"),
    ("task_executions", {"task_uid": "sch_none"}, "fk_task_executions_scheduled_tasks_task_uid"),
    ("task_executions", {"task_id": "tsk_none"}, "fk_task_executions_tasks_task_id"),
    # S-13
    ("task_locks", {"state": "held"}, "ck_task_locks_state"),
    ("task_locks", {"lock_key": ""}, "ck_task_locks_lock_key"),
    ("task_locks", {"fence": 0}, "ck_task_locks_fence"),
    ("task_locks", {"expires_at": NOW}, "ck_task_locks_expires_at"),
    ("task_locks", {"state": "released"}, "ck_task_locks_released_at"),
    ("task_locks", {"released_at": LATER}, "ck_task_locks_released_at"),
    ("task_locks", {"state": "released", "released_at": NOW.replace(year=2000)}, "ck_task_locks_released_at"),
    ("lock_fences", {"fence": 0}, "ck_lock_fences_fence"),
    # what is paid for
    ("plans", {"price_cents": -1}, "ck_plans_price_cents"),
    ("plans", {"monthly_quota": -1}, "ck_plans_monthly_quota"),
    ("subscriptions", {"status": "FREE"}, "ck_subscriptions_status"),
    ("subscriptions", {"channel": "CASH"}, "ck_subscriptions_channel"),
    ("subscriptions", {"plan_id": "pln_none"}, "fk_subscriptions_plans_plan_id"),
    ("entitlements", {"quota_left": -1}, "ck_entitlements_quota_left"),
    ("entitlements", {"quota_left": 11}, "ck_entitlements_quota"),
    ("entitlements", {"quota_total": -1, "quota_left": -1}, "*ck_entitlements_quota_"),
    ("entitlements", {"status": "PAUSED"}, "ck_entitlements_status"),
    ("entitlements", {"period_end": NOW}, "ck_entitlements_period"),
    ("entitlements", {"subscription_id": "sub_none"}, "fk_entitlements_subscriptions_subscription_id"),
    ("payment_orders", {"kind": "GIFT"}, "ck_payment_orders_kind"),
    ("payment_orders", {"method": "CASH"}, "ck_payment_orders_method"),
    ("payment_orders", {"status": "LOST", "paid_at": NOW}, "ck_payment_orders_status"),
    ("payment_orders", {"amount_cents": 0}, "ck_payment_orders_amount_cents"),
    ("payment_orders", {"units": -1}, "ck_payment_orders_units"),
    ("payment_orders", {"status": "PAID"}, "ck_payment_orders_paid_at"),
    ("payment_orders", {"paid_at": NOW}, "ck_payment_orders_paid_at"),
    ("payment_orders", {"refunded_at": NOW}, "ck_payment_orders_refunded_at"),
    ("payment_orders", {"status": "REFUNDING", "paid_at": NOW}, "ck_payment_orders_refund_id"),
    ("payment_orders", {"subscription_id": "sub_none"}, "fk_payment_orders_subscriptions_subscription_id"),
    ("usage_ledger", {"consume_unit": 0}, "ck_usage_ledger_consume_unit"),
    ("usage_ledger", {"direction": "BOTH"}, "ck_usage_ledger_direction"),
    ("usage_ledger", {"status": "PAID", "expires_at": None}, "ck_usage_ledger_status"),
    ("usage_ledger", {"source": "GIFT"}, "ck_usage_ledger_source"),
    ("usage_ledger", {"hold_id": HOLD}, "ck_usage_ledger_hold"),
    ("usage_ledger", {"status": "RELEASED", "expires_at": None}, "ck_usage_ledger_hold"),
    ("usage_ledger", {"status": "COMMITTED"}, "ck_usage_ledger_hold"),
    ("usage_ledger", {"id": ids.new("led", at=NEXT_MONTH)}, "ck_usage_ledger_period"),
    ("usage_ledger", {"idempotency_key": "202612:k"}, "ck_usage_ledger_idempotency_key"),
    ("usage_ledger", {"idempotency_key": "k"}, "ck_usage_ledger_idempotency_key"),
    (
        "usage_ledger",
        {"status": "COMMITTED", "expires_at": None, "hold_id": ids.new("led", at=NEXT_MONTH)},
        "ck_usage_ledger_hold_period",
    ),
    ("usage_ledger", {"entitlement_id": "ent_none"}, "fk_usage_ledger_entitlements_entitlement_id"),
    # webhooks
    ("webhook_endpoints", {"status": "BROKEN"}, "ck_webhook_endpoints_status"),
    ("webhook_endpoints", {"timeout_ms": 999}, "ck_webhook_endpoints_timeout_ms"),
    ("webhook_endpoints", {"timeout_ms": 30001}, "ck_webhook_endpoints_timeout_ms"),
    ("webhook_endpoints", {"max_retries": 11}, "ck_webhook_endpoints_max_retries"),
    ("webhook_endpoints", {"max_retries": -1}, "ck_webhook_endpoints_max_retries"),
    ("webhook_endpoints", {"subscribed_events": {}}, "ck_webhook_endpoints_subscribed_events"),
    ("webhook_endpoints", {"allow_ips": "10.0.0.1"}, "ck_webhook_endpoints_allow_ips"),
    ("webhook_endpoints", {"task_types": "IMAGE"}, "ck_webhook_endpoints_task_types"),
    ("webhook_endpoints", {"status_reason": "mood"}, "ck_webhook_endpoints_status_reason"),
    ("bulk_actions", {"resource": "locks"}, "ck_bulk_actions_action"),
    ("bulk_actions", {"action": "enable"}, "ck_bulk_actions_action"),
    ("bulk_actions", {"expected": -1}, "ck_bulk_actions_expected"),
    ("bulk_actions", {"matched": -1}, "ck_bulk_actions_matched"),
    ("bulk_actions", {"done": -1}, "ck_bulk_actions_counts"),
    ("bulk_actions", {"position_id": "tsk_1"}, "ck_bulk_actions_position"),
    ("bulk_actions", {"user_id": "u_none"}, "fk_bulk_actions_users_user_id"),
    ("statistics_minutes", {"minute": NOW.replace(second=7)}, "ck_statistics_minutes_minute"),
    ("statistics_minutes", {"workers": 1}, "ck_statistics_minutes_workers"),
    ("statistics_durations", {"number": 0}, "ck_statistics_durations_number"),
    ("statistics_queues", {"failed": -1}, "ck_statistics_queues_counts"),
    ("webhook_queue", {"attempt": 0}, "ck_webhook_queue_attempt"),
    ("webhook_queue", {"failures": -1}, "ck_webhook_queue_failures"),
    ("webhook_queue", {"losses": -1}, "ck_webhook_queue_losses"),
    ("webhook_queue", {"endpoint_id": "whe_none"}, "fk_webhook_queue_endpoints_endpoint_id"),
    ("webhook_health", {"failures": -1}, "ck_webhook_health_failures"),
    ("webhook_health", {"failed_trials": -1}, "ck_webhook_health_failed_trials"),
    ("webhook_health", {"endpoint_id": "whe_none"}, "fk_webhook_health_endpoints_endpoint_id"),
    ("webhook_deliveries", {"status": "SENT"}, "ck_webhook_deliveries_status"),
    ("webhook_deliveries", {"attempt": 0}, "ck_webhook_deliveries_attempt"),
    ("webhook_deliveries", {"duration_ms": -1}, "ck_webhook_deliveries_duration_ms"),
    ("webhook_deliveries", {"delivery_id": ids.new("whd", at=NEXT_MONTH)}, "ck_webhook_deliveries_delivery_period"),
    ("webhook_deliveries", {"event_id": ids.new("evt", at=NEXT_MONTH)}, "ck_webhook_deliveries_event_period"),
    ("webhook_deliveries", {"endpoint_id": "whe_none"}, "fk_webhook_deliveries_endpoints_endpoint_id"),
    ("notifications", {"type": "HELLO"}, "ck_notifications_type"),
    ("notifications", {"is_read": True}, "ck_notifications_read_at"),
    # W-21
    ("system_configs", {"config_scope": "TEAM", "scope_id": "x"}, "ck_system_configs_config_scope"),
    ("system_configs", {"config_scope": "USER"}, "ck_system_configs_scope_id"),
    ("system_configs", {"scope_id": USER}, "ck_system_configs_scope_id"),
    ("tech_risk_ledger", {"category": "WEATHER"}, "ck_tech_risk_ledger_category"),
    ("tech_risk_ledger", {"severity": "MILD"}, "ck_tech_risk_ledger_severity"),
    ("tech_risk_ledger", {"status": "DONE"}, "ck_tech_risk_ledger_status"),
    ("removals", {"asset_sha256": "short"}, "ck_removals_asset_sha256"),
    ("removals", {"units": 0}, "ck_removals_units"),
    ("removals", {"rights_basis": "FINDER"}, "ck_removals_rights_basis"),
]


@pytest.mark.parametrize("table", sorted({table for table, _, _ in REFUSED}))
async def test_a_forbidden_value_is_refused(tx: Tx, table: str) -> None:
    await insert_all_before(tx, table)
    for _, changed, constraint in (line for line in REFUSED if line[0] == table):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refusal:
            async with tx.savepoint():
                await insert(tx, table, **changed)
        # A star: two constraints refuse it, and PostgreSQL names the one that sorts first.
        name = refusal.value.constraint_name or ""
        as_expected = name.startswith(constraint[1:]) if constraint.startswith("*") else name == constraint
        assert as_expected, f"{changed} was refused by {name}, not by {constraint}"


async def test_every_check_is_tried(owner_tx: Tx) -> None:
    """A CHECK that no line above runs into is one that could be lost unseen."""
    schema = await read_schema(owner_tx, "headrace")
    checks = {check for table in ROWS for check in schema[table].checks}
    untried = {name for name in checks if not any(constraint.lstrip("*") in name for _, _, constraint in REFUSED)}
    assert untried <= {
        "ck_audit_events_rules",  # names the rule that is broken: those above
        "ck_tasks_task_type",  # see below
        "ck_users_system",  # see below
    }


async def test_an_address_that_is_none_is_refused(tx: Tx) -> None:  # audit_logs.ip must never fail
    with pytest.raises(asyncpg.InvalidTextRepresentationError):
        await insert(tx, "audit_events", client_ip="fe80::1%eth0")


async def test_a_task_has_a_type(tx: Tx) -> None:
    await insert_all_before(tx, "tasks")
    media = dict.fromkeys(("input_asset_id", "quality_level", "mode", "output_format"))
    with pytest.raises(asyncpg.CheckViolationError, match="ck_tasks_task_type"):
        await insert(tx, "tasks", task_type="", **media)


@pytest.mark.parametrize(
    "name", ["林 夕", "a\tb", "a\u00a0b", "a\u200bb", "\u3000a", "a\u202eb", "a\x7fb", "a\nb", "\ufeffa"]
)
async def test_blanks_and_invisible_letters_are_refused_in_names(tx: Tx, name: str) -> None:
    with pytest.raises(asyncpg.CheckViolationError, match="ck_users_username"):
        await insert(tx, "users", username=name)


@pytest.mark.parametrize("name", ["林夕", "Zoë", "ada@example.com", "o'hara", "नमस्ते", "a", "あ" * 64])
async def test_names_of_any_script_are_accepted(tx: Tx, name: str) -> None:
    await insert(tx, "users", username=name)


async def test_a_wechat_user_needs_no_password(tx: Tx) -> None:
    await insert(tx, "users", username=None, password_hash=None, wechat_openid="o1")


async def test_a_deleted_account_needs_nothing(tx: Tx) -> None:  # W-16
    await insert(tx, "users", username=None, password_hash=None, status="DELETED", deleted_at=NOW)


@pytest.mark.parametrize(
    "damage", ["SET status = 'SUSPENDED'", "SET password_hash = 'x'", "SET role = 'USER'", "SET wechat_openid = 'o'"]
)
async def test_the_system_user_stays_as_it_is(tx: Tx, damage: str) -> None:
    with pytest.raises(asyncpg.CheckViolationError, match="ck_users_system"):
        await tx.execute(f"UPDATE headrace.users {damage} WHERE id = $1", ids.SYSTEM_USER)


async def test_the_system_user_cannot_be_deleted(owner_tx: Tx) -> None:
    with pytest.raises(asyncpg.RestrictViolationError, match="system user"):
        await owner_tx.execute("DELETE FROM headrace.users")


async def test_a_task_of_another_type_names_its_own_steps(tx: Tx) -> None:
    await insert(tx, "users")
    media = dict.fromkeys(("input_asset_id", "quality_level", "mode", "output_format"))
    await insert(tx, "tasks", task_type="report.monthly", current_step="render-page.1", status="RUNNING", **media)
    await insert(tx, "task_steps", step_name="render-page.1")


OTHER_EXECUTION = ids.new("exe", at=NOW)
# table, what makes a second row different enough (or not), the constraint that refuses it
TWICE: list[tuple[str, dict[str, object], str | None]] = [
    ("users", {"id": "u_2", "username": "ADA"}, "idx_users_username"),
    ("sessions", {"id": "ses_2"}, "uk_sessions_token_hash"),
    ("api_keys", {"id": "key_2", "key_hash": bytes(31) + b"1"}, "uk_api_keys_user_name_active"),
    ("api_keys", {"id": "key_2", "key_hash": bytes(31) + b"1", "revoked_at": NOW}, None),
    ("outbox_events", {}, "uk_outbox_events_event_id"),
    ("assets", {"id": "ast_2"}, "uk_assets_storage_key"),
    ("uploads", {"id": "upl_2"}, "uk_uploads_storage_key"),
    ("task_steps", {}, "uk_task_steps_task_step_attempt"),
    ("task_steps", {"attempt": 2}, None),
    ("task_results", {}, "uk_task_results_task_id"),
    ("idempotency_keys", {}, "uk_idempotency_scope_user_key"),  # W-15
    ("idempotency_keys", {"scope": "assets"}, None),
    ("scheduled_tasks", {"uid": "sch_2"}, "uk_scheduled_tasks_user_name"),
    ("task_executions", {"retry_count": 1}, "uk_task_executions_execution_uid"),
    ("task_executions", {"execution_uid": OTHER_EXECUTION}, "uk_task_executions_fire"),  # S-14
    ("task_executions", {"execution_uid": OTHER_EXECUTION, "retry_count": 1}, None),
    ("task_executions", {"execution_uid": OTHER_EXECUTION, "trigger_type": "manual", "trigger_by": USER}, None),
    ("task_locks", {"fence": 2}, "idx_task_locks_key"),
    ("task_locks", {"fence": 2, "state": "expired"}, None),
    ("task_locks", {"state": "expired"}, "uk_task_locks_key_fence"),
    ("plans", {"id": "pln_2"}, "uk_plans_name"),
    ("subscriptions", {"id": "sub_2"}, "uk_subscriptions_external_order_id"),
    ("subscriptions", {"id": "sub_2", "external_order_id": None}, "uk_subscriptions_user_live"),
    ("subscriptions", {"id": "sub_2", "external_order_id": None, "status": "PENDING"}, None),
    ("entitlements", {"id": "ent_2"}, "uk_entitlements_subscription_start"),
    ("entitlements", {"id": "ent_2", "subscription_id": None}, None),
    ("payment_orders", {"id": "ord_2", "entitlement_id": None, "transaction_id": None, "status": "CLOSED"}, None),
    (
        "payment_orders",
        {"id": "ord_2", "entitlement_id": None, "transaction_id": None},
        "uk_payment_orders_subscription_pending",
    ),
    ("payment_orders", {"id": "ord_2", "entitlement_id": None, "status": "CLOSED"}, "uk_payment_orders_transaction_id"),
    ("payment_orders", {"id": "ord_2", "transaction_id": None, "status": "CLOSED"}, "uk_payment_orders_entitlement_id"),
    ("usage_ledger", {"id": ids.new("led", at=NOW)}, "uk_usage_ledger_user_idempotency"),
    ("webhook_endpoints", {"id": "whe_2"}, "uk_webhook_endpoints_user_url_active"),
    ("webhook_endpoints", {"id": "whe_2", "deleted_at": NOW}, None),
    ("webhook_deliveries", {"attempt": 2}, "uk_webhook_delivery_id"),
    ("webhook_deliveries", {"delivery_id": ids.new("whd", at=NOW)}, "uk_webhook_endpoint_event_attempt"),
    ("notifications", {}, "uk_notifications_event"),
    ("notifications", {"event_id": None}, None),
    ("system_configs", {}, "uk_system_configs_key_scope"),
    ("system_configs", {"config_scope": "USER", "scope_id": USER}, None),
    ("tech_risk_ledger", {}, "uk_tech_risk_ledger_risk_id"),
]


@pytest.mark.parametrize("table", sorted({table for table, _, _ in TWICE}))
async def test_what_must_be_one_of_a_kind_is(tx: Tx, table: str) -> None:
    await insert_all_before(tx, table)
    await insert(tx, table)
    for _, changed, constraint in (line for line in TWICE if line[0] == table):
        if constraint is None:
            async with _undone(tx):
                await insert(tx, table, **changed)
            continue
        with pytest.raises(asyncpg.UniqueViolationError) as refusal:
            async with tx.savepoint():
                await insert(tx, table, **changed)
        # A partition's key is named after the partitioned table's: uk_…_y2026m11.
        assert (refusal.value.constraint_name or "").startswith(constraint), changed


class _Undo(Exception):
    pass


@asynccontextmanager
async def _undone(tx: Tx) -> AsyncIterator[None]:
    with suppress(_Undo):
        async with tx.savepoint():
            yield
            raise _Undo


async def test_a_key_without_a_user_is_one_of_a_kind_too(tx: Tx) -> None:  # W-15
    await insert(tx, "idempotency_keys", user_id=None)
    with pytest.raises(asyncpg.UniqueViolationError, match="uk_idempotency_scope_user_key"):
        await insert(tx, "idempotency_keys", user_id=None, request_hash=HASH)


async def test_the_enums_in_code_are_the_lists_in_the_database(owner_tx: Tx) -> None:
    rules = await owner_tx.fetchval("SELECT prosrc FROM pg_proc WHERE proname = 'is_audit_event'")
    for enum, rule in ((audit.Action, "action"), (audit.ResourceType, "resource_type")):
        (listed,) = re.findall(rf"WHEN {rule} NOT IN \((.*?)\) THEN '{rule}'", rules, re.DOTALL)
        assert sorted(re.findall(r"'(\w+)'", listed)) == sorted(enum)
    check = await owner_tx.fetchval(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE conname = 'ck_audit_events_actor_type' AND conrelid = 'headrace.audit_events'::regclass"
    )
    assert sorted(re.findall(r"'(\w+)'", check)) == sorted(audit.ActorType)


async def test_an_event_of_no_time_is_refused(owner_tx: Tx) -> None:
    with pytest.raises(asyncpg.CheckViolationError, match="ck_audit_events_timestamp"):
        await owner_tx.fetchval("SELECT headrace.is_audit_event(NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL)")
