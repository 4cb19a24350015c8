"""All event types: when each is published, and its payload as JSON Schema.

One catalogue for all packages, because receivers read it as one list: it is served at ``/v1/event-types`` and rendered
to docs/reference/event-types.md. An added field is no new version: receivers must ignore unknown fields. A removed
field, or one with a new meaning, makes a new version beside the old one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

Schema = Mapping[str, Any]

_TEXT: Schema = {"type": "string"}
_OPTIONAL_TEXT: Schema = {"type": ["string", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_INSTANT: Schema = {"type": "string", "format": "date-time"}
_OPTIONAL_INSTANT: Schema = {"type": ["string", "null"], "format": "date-time"}
_YES_OR_NO: Schema = {"type": "boolean"}


def _id(prefix: str) -> Schema:
    return {"type": "string", "pattern": f"^{prefix}_[0-9a-z]+$"}


def _named(what: str, schema: Schema) -> Schema:
    return {**schema, "description": what}


def _one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def _object(title: str, required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        # Fields of later releases are no error.
        "additionalProperties": True,
    }


@dataclass(frozen=True, slots=True)
class EventType:
    """A type of event in one version."""

    name: str
    version: int
    aggregate: str  # its events are ordered
    description: str
    schema: Schema

    @property
    def group(self) -> str:
        return self.name.partition(".")[0]


_USER = _named("The owner's id.", _id("u"))
_TASK: Mapping[str, Schema] = {
    "task_id": _id("tsk"),
    "type": _named("The task's type.", _TEXT),
    "user_id": _USER,
    "status": _named("The task's state at the time of the event.", _TEXT),
    "attempt": _named("The number of the attempt, from 1; 0 before the first.", _COUNT),
    "retries": _named("Failed attempts so far; null in a late `task.started`.", {"type": ["integer", "null"]}),
    "max_attempts": _COUNT,
    "queue": _TEXT,
    "priority": {"type": "integer"},
    "schedule_id": _named("The schedule that submitted it, if any.", _OPTIONAL_TEXT),
    "current_step": _OPTIONAL_TEXT,
    "progress": {"type": "integer", "minimum": 0, "maximum": 100},
    "error_code": _named("The code of the last failure.", _OPTIONAL_TEXT),
    "error_message": _named("One line of at most 500 characters; the task has the whole text.", _OPTIONAL_TEXT),
    "run_at": _INSTANT,
    "created_at": _INSTANT,
    "started_at": _named("When the last attempt began.", _OPTIONAL_INSTANT),
    "finished_at": _OPTIONAL_INSTANT,
}
_QUOTA: Mapping[str, Schema] = {
    "user_id": _USER,
    "percent": _named("The share that was reached: 80 or 100.", {"type": "integer"}),
    "total": _named("The units of the present period.", _COUNT),
    "left": _COUNT,
    "renews_at": _named("The earliest end of a present period.", _OPTIONAL_INSTANT),
}
_SUBSCRIPTION: Mapping[str, Schema] = {
    "subscription_id": _TEXT,
    "user_id": _USER,
    "plan_id": _TEXT,
    "status": _one_of("PENDING", "ACTIVE", "PAST_DUE", "CANCELED", "EXPIRED", "REFUNDED"),
    "expire_at": _OPTIONAL_INSTANT,
    "auto_renew": _YES_OR_NO,
}
_ASSET: Mapping[str, Schema] = {
    "asset_id": _TEXT,
    "user_id": _USER,
    "name": _OPTIONAL_TEXT,
    "media_type": _one_of("IMAGE", "VIDEO", "PDF", "PPT"),
    "mime_type": _OPTIONAL_TEXT,
    "size_bytes": _COUNT,
    "sha256": _OPTIONAL_TEXT,
}
_ENDPOINT: Mapping[str, Schema] = {
    "endpoint_id": _TEXT,
    "user_id": _USER,
    "name": _TEXT,
    "status": _TEXT,
    "reason": _named("The reason, in a sentence.", _OPTIONAL_TEXT),
    "failing_since": _OPTIONAL_INSTANT,
}
_DELETION: Mapping[str, Schema] = {
    "user_id": _USER,
    "deletion_id": _id("del"),
    "requested_by": _named("The user who requested it.", _TEXT),
}

_DESCRIPTIONS: Mapping[str, tuple[str, Mapping[str, Schema], str]] = {
    # name: aggregate, fields, when
    "task.created": ("task", _TASK, "It was submitted."),
    "task.started": ("task", _TASK, "An attempt has begun; one event for each attempt."),
    "task.step_changed": ("task", _TASK, "A step begins; only for types declared with `step_events=True`."),
    "task.retried": (
        "task",
        _TASK,
        "It is queued again: after a failure with attempts left, a snooze, an interruption.",
    ),
    "task.revived": ("task", _TASK, "A failed or canceled task was retried by a user and is queued again."),
    "task.succeeded": ("task", _TASK, "It ended with a result."),
    "task.failed": ("task", _TASK, "It ended: no attempt is left, or the failure is permanent."),
    "task.canceled": ("task", _TASK, "It was canceled by a user or a program."),
    "account.deleted": ("account", _DELETION, "An account and its user's data were erased."),
    "quota.reached": (
        "account",
        _QUOTA,
        "80 or 100 percent of a user's units are used or held; at most once for each share and period.",
    ),
    "subscription.activated": ("subscription", _SUBSCRIPTION, "It was paid for or granted, and is active from now on."),
    "subscription.expiring": ("subscription", _SUBSCRIPTION, "It will end soon."),
    "subscription.expired": ("subscription", _SUBSCRIPTION, "Its period has ended."),
    "subscription.past_due": ("subscription", _SUBSCRIPTION, "Its renewal was not paid."),
    "subscription.canceled": ("subscription", _SUBSCRIPTION, "Its user or an administrator canceled it."),
    "subscription.refunded": ("subscription", _SUBSCRIPTION, "Its price was refunded."),
    "asset.uploaded": ("asset", _ASSET, "A file was uploaded and its type verified."),
    "asset.deleted": ("asset", _ASSET, "A file is gone: deleted, expired or lost (`reason`)."),
    "webhook.endpoint.paused": (
        "webhook_endpoint",
        _ENDPOINT,
        "It failed for days: nothing is sent until it is resumed.",
    ),
    "webhook.endpoint.disabled": ("webhook_endpoint", _ENDPOINT, "It answered 410: nothing more is sent."),
    "webhook.test": ("webhook_endpoint", {}, "A user tests whether an endpoint receives events."),
}
_OPTIONAL: Mapping[str, Mapping[str, Schema]] = {"asset.deleted": {"reason": _TEXT}}

EVENT_TYPES: tuple[EventType, ...] = tuple(
    EventType(name, 1, aggregate, when, _object(name, fields, _OPTIONAL.get(name)))
    for name, (aggregate, fields, when) in _DESCRIPTIONS.items()
)


def find(name: str, version: int) -> EventType | None:
    return next((known for known in EVENT_TYPES if (known.name, known.version) == (name, version)), None)


@cache
def _validator(name: str, version: int) -> Any:
    import jsonschema  # slow to import, and programs that only write events do not need it

    known = find(name, version)
    assert known is not None, f"{name} in version {version} is not in the catalogue"
    return jsonschema.Draft202012Validator(known.schema)


def faults(name: str, version: int, payload: Any) -> list[str]:
    """The faults of a payload, for tests and for authors of receivers; empty for a valid one."""
    if find(name, version) is None:
        return [f"there is no event {name} in version {version}"]
    return [
        f"{'.'.join(map(str, fault.absolute_path)) or '(payload)'}: {fault.message}"
        for fault in _validator(name, version).iter_errors(payload)
    ]
