"""The allow-list of fields in the trail for each resource type, so that new secret columns are not logged by default.

Values of other fields are not recorded. If one differs between the two sides, the new side says ``(changed)``: so the
trail shows that a password was replaced, without its value (A-09).
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Any

from headrace.audit.model import ResourceType
from headrace.database import Row

CHANGED = "(changed)"
HIDDEN = "(hidden)"
_SECRET_WORDS = ("password", "secret", "token", "authorization", "cookie")
_FOREIGN_SECRET_WORDS = ("passwd", "pwd", "credential", "kubeconfig", "private", "apikey", "api_key", "access_key")


def _fields(*groups: str) -> frozenset[str]:
    return frozenset(name for group in groups for name in group.split())


# Left out on purpose: e-mail addresses and telephone numbers, which could not be erased with an account; user data of
# tasks and schedules (payload, data, result), which may hold anything; URLs of webhooks, which often are secrets; and
# output of workers, which has its own logs.
FIELDS: Mapping[ResourceType, frozenset[str]] = {
    ResourceType.USER: _fields(
        "id username status role version last_login_at second_factor_at created_at updated_at deleted_at"
    ),
    ResourceType.SESSION: _fields("id user_id client_ip user_agent created_at last_seen_at expires_at revoked_at"),
    ResourceType.API_KEY: _fields(
        "id user_id name key_hint scopes expires_at last_used_at revoked_at created_at updated_at"
    ),
    ResourceType.TASK: _fields(
        "id user_id task_type title status priority queue labels run_at attempt retries max_attempts timeout_seconds",
        "input_asset_id quality_level mode output_format schedule_uid trace_id error_code cancel_requested_at",
        "queued_at started_at finished_at version created_at updated_at deleted_at",
    ),
    ResourceType.SCHEDULED_TASK: _fields(
        "uid user_id name type description is_recurring cron_expr interval timezone next_run misfire_policy enabled",
        "max_duration_seconds timeout_grace_period max_extension_seconds max_retries max_concurrent priority labels",
        "overlap_policy max_waiting version",
        "created_at updated_at",
    ),
    ResourceType.EXECUTION: _fields(
        "id execution_uid task_uid task_name task_type task_id state trigger_type trigger_by run_by retry_count",
        "scheduled_at started_at deadline_at finished_at created_at updated_at",
    ),
    ResourceType.QUEUE: _fields("name paused_at max_running version created_at updated_at"),
    ResourceType.WORKER: _fields("id host pid queues types labels concurrency started_at stopping_at ended_at"),
    ResourceType.LOCK: _fields(
        "id user_id lock_key fence holder_id state purpose acquired_at expires_at released_at created_at updated_at"
    ),
    ResourceType.ASSET: _fields(
        "id user_id media_type origin_name mime_type size_bytes sha256 status created_at updated_at deleted_at"
    ),
    ResourceType.PLAN: _fields(
        "id name price_cents currency monthly_quota features_json is_active sort_order version created_at updated_at"
    ),
    ResourceType.SUBSCRIPTION: _fields(
        "id user_id plan_id status channel external_order_id started_at effective_at expire_at canceled_at auto_renew",
        "version created_at updated_at",
    ),
    ResourceType.ENTITLEMENT: _fields(
        "id user_id plan_id subscription_id quota_total quota_left period_start period_end status",
        "created_at updated_at",
    ),
    ResourceType.PAYMENT: _fields(
        "id user_id plan_id subscription_id entitlement_id kind method status amount_cents currency units",
        "transaction_id refund_id problem expires_at paid_at refunded_at version created_at updated_at",
    ),
    ResourceType.WEBHOOK_ENDPOINT: _fields(
        "id user_id name status secret_hint secret_rotated_at subscribed_events timeout_ms max_retries allow_ips",
        "failing_since version created_at updated_at deleted_at",
    ),
    ResourceType.OUTBOX_EVENT: _fields(
        "id event_id event_type event_version aggregate_type aggregate_id user_id status retry_count next_retry_at",
        "published_at created_at",
    ),
    ResourceType.NOTIFICATION: _fields("id user_id type event_id is_read read_at created_at"),
    ResourceType.ARCHIVE: _fields(
        "id table_name period state location row_count min_id max_id min_at max_at size_bytes sha256 detached_at",
        "archived_at verified_at dropped_at restored_as",
    ),
    ResourceType.SYSTEM_CONFIG: _fields(
        "id config_key config_scope scope_id config_value version is_active created_at updated_at"
    ),
    ResourceType.TECH_RISK: _fields(
        "id risk_id category severity status trigger_condition mitigation_plan owner refs_json created_at updated_at"
    ),
}


def show(
    type_: ResourceType, old: object | None, new: object | None
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Both sides with the allowed fields only; accepts stored rows, mappings and dataclasses."""
    allowed = FIELDS.get(type_, frozenset())
    before, after = _allowed_fields(old, allowed), _allowed_fields(new, allowed)
    if before is not None and after is not None:
        hidden = {*_names(old), *_names(new)} - allowed
        was, is_ = _values(old, hidden), _values(new, hidden)
        after |= {name: CHANGED for name in sorted(hidden) if was.get(name) != is_.get(name)}
    return before, after


def without_secrets(data: Mapping[str, str]) -> dict[str, str]:
    """Free-form facts with secret-like fields hidden, as a second line of defence."""
    return {
        name: HIDDEN if any(word in name.lower() for word in _SECRET_WORDS) else value for name, value in data.items()
    }


def hide_secrets(value: Any) -> Any:
    """The same for data of other systems, at any depth, because it has no allow-list."""
    if isinstance(value, Mapping):
        return {key: HIDDEN if _is_secret(str(key)) else hide_secrets(each) for key, each in value.items()}
    if isinstance(value, list):
        return [hide_secrets(each) for each in value]
    return value


def _is_secret(name: str) -> bool:
    lowered = name.lower()
    return any(word in lowered for word in (*_SECRET_WORDS, *_FOREIGN_SECRET_WORDS))


def _allowed_fields(row: object | None, allowed: AbstractSet[str]) -> dict[str, Any] | None:
    return None if row is None else _values(row, allowed)


def _values(row: object, wanted: AbstractSet[str]) -> dict[str, Any]:
    """The wanted fields of a row, in the row's order."""
    if isinstance(row, Mapping | Row):
        return {name: value for name, value in row.items() if name in wanted}
    return {name: getattr(row, name) for name in _names(row) if name in wanted}


def _names(row: object) -> list[str]:
    if isinstance(row, Mapping | Row):
        return list(row.keys())
    if is_dataclass(row) and not isinstance(row, type):
        return [field.name for field in fields(row)]
    raise TypeError(f"{type(row).__name__} is neither a row, a mapping nor a dataclass")
