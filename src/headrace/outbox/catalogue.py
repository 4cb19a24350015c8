"""Every type of event there is: when it is told, and what its payload holds, as JSON Schema.

The one place for all packages, because receivers read it as one list: it is served at ``/v1/event-types`` and rendered
to docs/reference/event-types.md. A field that is added is no new version; receivers must not stumble over one that they
do not know. A field that goes, or means something else, is a new version beside the old one.
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
        # What a later release adds is no error.
        "additionalProperties": True,
    }


@dataclass(frozen=True, slots=True)
class EventType:
    """A type of event in one version."""

    name: str
    version: int
    aggregate: str  # what its events are in order for
    description: str
    schema: Schema

    @property
    def group(self) -> str:
        return self.name.partition(".")[0]


_USER = _named("Whose it is.", _id("u"))
_TASK: Mapping[str, Schema] = {
    "task_id": _id("tsk"),
    "type": _named("The task's type.", _TEXT),
    "user_id": _USER,
    "status": _named("As it was then.", _TEXT),
    "attempt": _named("Which attempt, from 1; 0 while none has begun.", _COUNT),
    "retries": _named(
        "Failed attempts that were spent; null in a start that is told late.", {"type": ["integer", "null"]}
    ),
    "max_attempts": _COUNT,
    "queue": _TEXT,
    "priority": {"type": "integer"},
    "schedule_id": _named("Of the schedule that fired it, if one did.", _OPTIONAL_TEXT),
    "current_step": _OPTIONAL_TEXT,
    "progress": {"type": "integer", "minimum": 0, "maximum": 100},
    "error_code": _named("Of the last failure.", _OPTIONAL_TEXT),
    "error_message": _named("One line of 500 characters at the most; the whole is in the task.", _OPTIONAL_TEXT),
    "run_at": _INSTANT,
    "created_at": _INSTANT,
    "started_at": _named("Of the last attempt.", _OPTIONAL_INSTANT),
    "finished_at": _OPTIONAL_INSTANT,
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
    "reason": _named("Why, in a sentence.", _OPTIONAL_TEXT),
    "failing_since": _OPTIONAL_INSTANT,
}
_DELETION: Mapping[str, Schema] = {
    "user_id": _USER,
    "deletion_id": _id("del"),
    "requested_by": _named("Who asked for it.", _TEXT),
}

_DESCRIPTIONS: Mapping[str, tuple[str, Mapping[str, Schema], str]] = {
    # name: aggregate, fields, when
    "task.created": ("task", _TASK, "It was submitted."),
    "task.started": ("task", _TASK, "An attempt runs; one event for each attempt."),
    "task.step_changed": ("task", _TASK, "A step begins; only for types declared with `step_events=True`."),
    "task.retried": ("task", _TASK, "It waits again: after a failure with attempts left, a snooze, an interruption."),
    "task.revived": ("task", _TASK, "It was over, failed or canceled, and waits again because a person asked."),
    "task.succeeded": ("task", _TASK, "It is over, and has its result."),
    "task.failed": ("task", _TASK, "It is over: no attempt is left, or another makes no sense."),
    "task.canceled": ("task", _TASK, "It is over, because somebody asked."),
    "account.deleted": ("account", _DELETION, "An account and all that was its user's is gone."),
    "subscription.activated": ("subscription", _SUBSCRIPTION, "It was paid for, or given, and counts from now on."),
    "subscription.expiring": ("subscription", _SUBSCRIPTION, "It will end soon."),
    "subscription.expired": ("subscription", _SUBSCRIPTION, "Its time is over."),
    "subscription.past_due": ("subscription", _SUBSCRIPTION, "Its renewal was not paid for."),
    "subscription.canceled": ("subscription", _SUBSCRIPTION, "It was ended by its user or an administrator."),
    "subscription.refunded": ("subscription", _SUBSCRIPTION, "Its price was paid back."),
    "asset.uploaded": ("asset", _ASSET, "A file is there, and was found to be what it says."),
    "asset.deleted": ("asset", _ASSET, "A file is gone: deleted, expired or lost (`reason`)."),
    "webhook.endpoint.paused": (
        "webhook_endpoint",
        _ENDPOINT,
        "It failed for days, and nothing is sent until resumed.",
    ),
    "webhook.endpoint.disabled": ("webhook_endpoint", _ENDPOINT, "It answered 410: nothing is sent there any more."),
    "webhook.test": ("webhook_endpoint", {}, "Somebody wants to see whether an endpoint receives."),
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
    import jsonschema  # whoever only writes events never needs it

    known = find(name, version)
    assert known is not None, f"{name} in version {version} is not in the catalogue"
    return jsonschema.Draft202012Validator(known.schema)


def faults(name: str, version: int, payload: Any) -> list[str]:
    """What is wrong with a payload, for tests and for people who build receivers; nothing for a good one."""
    if find(name, version) is None:
        return [f"there is no event {name} in version {version}"]
    return [
        f"{'.'.join(map(str, fault.absolute_path)) or '(payload)'}: {fault.message}"
        for fault in _validator(name, version).iter_errors(payload)
    ]
