"""Every list and count of the REST API with the filters that it offers: for `benchmarks/growth.py`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.growth_rows import ADMIN, BUSY, PLAIN

_OLDEST_ENTRY = "FROM headrace.usage_ledger WHERE user_id = 'u_busy' ORDER BY created_at LIMIT 1"
# Values that each database has of its own: of its newest row, of its oldest, and of the middle.
SAMPLES: Mapping[str, str] = {
    "task": "SELECT id FROM headrace.tasks ORDER BY created_at DESC LIMIT 1",
    "old_task": "SELECT id FROM headrace.tasks WHERE user_id = 'u_busy' ORDER BY created_at LIMIT 1",
    "ledger_task": f"SELECT task_id {_OLDEST_ENTRY}",
    "entitlement": f"SELECT entitlement_id {_OLDEST_ENTRY}",
    "event": "SELECT event_id FROM headrace.webhook_deliveries WHERE endpoint_id = 'whe_u_busy_1' ORDER BY id LIMIT 1",
    "aggregate": "SELECT aggregate_id FROM headrace.outbox_events ORDER BY id LIMIT 1",
    "schedule": "SELECT uid FROM headrace.scheduled_tasks WHERE user_id = 'u_busy' ORDER BY uid LIMIT 1",
    "sha256": "SELECT sha256 FROM headrace.assets WHERE user_id = 'u_busy' ORDER BY created_at LIMIT 1",
    "lock": "SELECT lock_key FROM headrace.task_locks ORDER BY id LIMIT 1",
    "ip": "SELECT client_ip FROM headrace.audit_events ORDER BY created_at LIMIT 1",
    "request": "SELECT request_id FROM headrace.audit_events ORDER BY created_at LIMIT 1",
    "resource": "SELECT resource ->> 'identifier' FROM headrace.audit_events ORDER BY created_at LIMIT 1",
    "day": "SELECT to_char(now() - interval '1 day', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
    "half": "SELECT to_char(now() - interval '180 days', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
    "long_ago": "SELECT to_char(now() - interval '358 days', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
    "first_day": "SELECT (now() - interval '350 days')::date::text",
    "quarter": "SELECT (now() - interval '90 days')::date::text",
}


@dataclass(frozen=True)
class Case:
    """One request: whose, and what for. ``{name}`` in a value stands for a sample."""

    caller: str
    path: str
    query: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        shown = "&".join(f"{name}={value}" for name, value in self.query)
        return f"{self.path.removeprefix('/v1')}{'?' if shown else ''}{shown} ({self.caller.removeprefix('u_')})"


_TIMES = ("created_after={day}", "created_after={half}", "created_before={half}", "created_before={long_ago}")
_TASK_FILTERS = (
    *("", "status=QUEUED", "status=RUNNING", "status=FAILED", "status=SUCCEEDED", "status=CANCELED"),
    *("status=QUEUED&status=RUNNING", "type=rare", "type=nosuch", "type=report.build", "queue=default", "queue=nosuch"),
    *(*_TIMES, "internal=false", "status=FAILED&created_before={half}", "type=rare&status=QUEUED"),
)
# Of everybody, too: the administrator asks with user_id=*.
_OF_USERS: Mapping[str, tuple[str, ...]] = {
    "/v1/tasks": (
        *(*_TASK_FILTERS, "title=Report 77", "title=nosuch", "label=a=b", "key=key-1", "error=nosuch"),
        *("limit=100", "status=SUCCEEDED&type=rare"),
    ),
    "/v1/tasks/count": (*_TASK_FILTERS, "action=retry", "action=cancel", "action=delete"),
    "/v1/usage": (
        *("", "task_id={ledger_task}", "entitlement_id={entitlement}", "status=HELD", "status=COMMITTED"),
        *("status=RELEASED", "source=TASK_CREATE", "source=TASK_COMPLETE", "source=TASK_FAIL", "source=TASK_CANCEL"),
        *("source=MANUAL_ADJUST", "source=SUBSCRIPTION_GRANT", "since={day}", "until={half}", "until={long_ago}"),
        *("source=MANUAL_ADJUST&status=COMMITTED", "entitlement_id={entitlement}&source=MANUAL_ADJUST"),
    ),
    "/v1/webhooks/deliveries": (
        *("", "event_type=task.failed", "event_type=nosuch", "status=DEAD", "status=SUCCEEDED", "status=RETRYING"),
        *(*_TIMES, "event_id={event}", "endpoint_id=whe_u_busy_1", "endpoint_id=whe_u_busy_1&status=DEAD"),
        *("endpoint_id=whe_u_busy_1&created_before={half}", "event_type=task.failed&created_before={half}"),
    ),
    "/v1/assets": (
        *("", "name=rare", "name=nosuch", "name=photo", "media_type=PPT", "media_type=IMAGE", "media_type=VIDEO"),
        *("sha256={sha256}", "media_type=IMAGE&name=rare"),
    ),
    "/v1/executions": (
        *("", "schedule_id={schedule}", "status=FAILED", "status=SUCCEEDED", "status=RUNNING", "trigger=manual"),
        *("type=tick", "type=rare", "type=nosuch", "due_after={half}", "due_before={half}", "due_before={long_ago}"),
        *("schedule_id={schedule}&status=FAILED", "status=FAILED&trigger=manual", "type=tick&status=FAILED"),
    ),
    "/v1/schedules": ("", "type=tick", "enabled=true", "name=bench 77", "label=a=b", "internal=true"),
    "/v1/locks": ("", "key={lock}", "holder=host:7", "status=ACTIVE", "status=RELEASED", "key=nosuch"),
    "/v1/entitlements": ("", "status=ACTIVE", "status=EXPIRED"),
    "/v1/webhooks/endpoints": ("", "status=ACTIVE"),
    "/v1/subscriptions": ("",),
    "/v1/payments": ("",),
    "/v1/removals": ("",),
}
_OF_ONE: Mapping[str, tuple[str, ...]] = {
    "/v1/usage/balance": ("",),
    "/v1/usage/days": ("", "since={quarter}", "since={first_day}"),
    "/v1/assets/usage": ("",),
    "/v1/uploads": ("",),
    "/v1/notifications": ("", "unread=true"),
    "/v1/notifications/unread-count": ("",),
    "/v1/sessions": ("",),
    "/v1/api-keys": ("",),
    "/v1/queues": ("",),
    "/v1/task-types": ("",),
    "/v1/tasks/bulk": ("",),
    "/v1/tasks/{old_task}/logs": ("",),
    "/v1/tasks/{old_task}/steps": ("",),
    "/v1/webhooks/endpoints/whe_u_busy_1/statistics": ("",),
    "/v1/schedules/{schedule}/statistics": ("",),
}
_OF_ADMINISTRATORS: Mapping[str, tuple[str, ...]] = {
    "/v1/admin/outbox": ("",),
    "/v1/admin/outbox/events": (
        *("", "status=DEAD", "status=PENDING", "status=PUBLISHED", "type=task.failed", "type=task.succeeded"),
        *("type=nosuch", "aggregate_id={aggregate}", "user_id=u_7", "user_id=u_busy"),
    ),
    "/v1/audit/events": (
        *("", "action=deleted", "action=created", "resource_type=task", "resource_type=lock", "resource_id={resource}"),
        *("user_id=u_7", "user_id=u_busy", "client_ip={ip}", "request_id={request}", "changes=true", *_TIMES),
        *(
            "q=name-of-u_7",
            "q={request}",
            "q=nosuch",
            "resource_type=task&action=deleted",
            "action=created&user_id=u_7",
        ),
    ),
    "/v1/admin/users": ("", "username=user-77", "status=ACTIVE", "status=SUSPENDED", "role=ADMIN"),
    "/v1/workers": ("",),
    "/v1/admin/overview": ("",),
    "/v1/admin/statistics": ("", "range=week"),
    "/v1/admin/deletions": ("", "status=WAITING"),
    "/v1/admin/archives": ("",),
    "/v1/admin/partitions": ("",),
    "/v1/admin/plans": ("",),
    "/v1/admin/configs": ("",),
    "/v1/admin/risks": ("",),
}


def cases() -> Iterator[Case]:
    for path, filters in _OF_USERS.items():
        for one in filters:
            yield from (_case(caller, path, one) for caller in (BUSY, PLAIN))
            yield _case(ADMIN, path, f"{one}&user_id=*" if one else "user_id=*")
    for path, filters in _OF_ONE.items():
        callers = (BUSY,) if "{" in path or "whe_" in path else (BUSY, PLAIN)
        yield from (_case(caller, path, one) for one in filters for caller in callers)
    for path, filters in _OF_ADMINISTRATORS.items():
        yield from (_case(ADMIN, path, one) for one in filters)


def _case(caller: str, path: str, query: str) -> Case:
    pairs = (part.partition("=") for part in query.split("&") if part)
    return Case(caller, path, tuple((name, value) for name, _, value in pairs))
