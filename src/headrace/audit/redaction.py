"""Which fields of which thing may enter the trail: an allow-list, so that a new secret column is not logged by default.

A field that is not on the list leaves no value behind. If it differs between the two sides, the new one says
``(changed)``: that a password was replaced is worth knowing, what it was is not (A-09).
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from headrace.audit.model import ResourceType
from headrace.database import Row

CHANGED = "(changed)"
HIDDEN = "(hidden)"
_SECRET_WORDS = ("password", "secret", "token", "authorization", "cookie")


def _fields(*groups: str) -> frozenset[str]:
    return frozenset(name for group in groups for name in group.split())


_TIMES = "created_at updated_at deleted_at"

# What a person wrote into a task or a schedule (payload, data, result) is not here: nobody knows what is in it.
FIELDS: Mapping[ResourceType, frozenset[str]] = {
    ResourceType.USER: _fields("id username email mobile status role version last_login_at", _TIMES),
    ResourceType.SESSION: _fields("id user_id client_ip user_agent created_at last_seen_at expires_at revoked_at"),
    ResourceType.API_KEY: _fields(
        "id user_id name key_hint scopes expires_at last_used_at revoked_at created_at updated_at"
    ),
    ResourceType.TASK: _fields(
        "id user_id task_type title status priority queue run_at progress current_step attempt retries max_attempts",
        "input_asset_id quality_level mode output_format source trace_id schedule_uid error_code error_message",
        "timeout_seconds cancel_requested_at canceled_at queued_at started_at finished_at version",
        _TIMES,
    ),
    ResourceType.SCHEDULED_TASK: _fields(
        "uid name type description is_recurring cron_expr interval timezone misfire_policy next_run enabled labels",
        "max_duration_seconds timeout_grace_period max_retries max_concurrent priority created_by version",
        _TIMES,
    ),
    ResourceType.EXECUTION: _fields(
        "execution_uid task_uid state trigger_type trigger_by run_by retry_count scheduled_at started_at finished_at",
        "created_at",
    ),
    ResourceType.QUEUE: _fields("name paused paused_at max_running version", _TIMES),
    ResourceType.WORKER: _fields("id host pid queues labels started_at stopped_at", _TIMES),
    ResourceType.LOCK: _fields("id lock_key owner state acquired_at expires_at released_at", _TIMES),
    ResourceType.ASSET: _fields(
        "id user_id asset_type file_name mime_type size_bytes checksum_sha256 width height duration_sec page_count",
        "status expire_at",
        _TIMES,
    ),
}


def show(
    type_: ResourceType, old: object | None, new: object | None
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Both sides with the allowed fields only; takes stored rows, mappings and dataclasses."""
    allowed = FIELDS.get(type_, frozenset())
    before, after = _as_dict(old), _as_dict(new)
    shown_before, shown_after = _keep(before, allowed), _keep(after, allowed)
    if before is not None and after is not None and shown_after is not None:
        for name in sorted((before.keys() | after.keys()) - allowed):
            if before.get(name) != after.get(name):
                shown_after[name] = CHANGED
    return shown_before, shown_after


def without_secrets(data: Mapping[str, str]) -> dict[str, str]:
    """Free-form facts, for the day somebody hands over a secret among them after all."""
    return {
        name: HIDDEN if any(word in name.lower() for word in _SECRET_WORDS) else value for name, value in data.items()
    }


def _keep(row: dict[str, Any] | None, allowed: Iterable[str]) -> dict[str, Any] | None:
    return None if row is None else {name: value for name, value in row.items() if name in allowed}


def _as_dict(value: object | None) -> dict[str, Any] | None:
    if value is None:
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping | Row):
        return dict(value.items())
    raise TypeError(f"{type(value).__name__} is neither a row, a mapping nor a dataclass")
