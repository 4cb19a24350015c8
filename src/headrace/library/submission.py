"""Builds parameters for ``headrace.submit``: many tasks in one statement with one parameter."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from headrace.billing.holds import EXHAUSTED, quota_exhausted
from headrace.connections import sqlstate_of
from headrace.errors import HeadraceError
from headrace.library.connections import detail_of, message_of
from headrace.tasks import storable
from headrace.tasks.errors import (
    IdempotencyKeyReused,
    PayloadInvalid,
    PayloadTooLarge,
    TaskSpecInvalid,
    TypeDenied,
    UnknownTaskType,
)
from headrace.tasks.limit_keys import limit_key
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.units import units

UnknownType = Literal["refuse", "wait"]

# A parameter of this many tasks is a few megabytes at most.
ROWS = 1000

_ERRORS: Mapping[str, type[HeadraceError]] = {
    "HR002": IdempotencyKeyReused,
    "HR003": PayloadTooLarge,
    "HR004": PayloadInvalid,
    "HR005": TaskSpecInvalid,
    "HR007": UnknownTaskType,
    "HR008": TypeDenied,
}


def submit_statement(value: str) -> str:
    """Submit all tasks in order. CAST instead of ``::``, which SQLAlchemy would read as a parameter."""
    return f"""
SELECT headrace.submit(
  type, payload, user_id => user_id, title => title, queue => queue, priority => priority, run_at => run_at,
  max_attempts => max_attempts, timeout_seconds => timeout_seconds, limit_key => limit_key, labels => labels,
  trace_id => trace_id, idempotency_key => idempotency_key, schedule_uid => schedule_uid,
  unknown_type => unknown_type, trusted => coalesce(trusted, false), payload_checked => coalesce(payload_checked, false)
) AS task_id
FROM jsonb_to_recordset(CAST({value} AS jsonb)) AS given (
  type text, payload jsonb, user_id text, title text, queue text, priority integer, run_at timestamptz,
  max_attempts integer, timeout_seconds integer, limit_key text, labels jsonb, trace_id text, idempotency_key text,
  schedule_uid text, unknown_type text, trusted boolean, payload_checked boolean
)"""


@dataclass(frozen=True, slots=True)
class How:
    """Options that apply to all tasks of a call."""

    user_id: str
    trusted: bool = False
    unknown_type: UnknownType = "refuse"


def as_row(spec: TaskSpec, how: How, *, registry: Registry | None, payload_limit: int) -> bytes:
    """A task as JSON; raises for values that its type refuses or PostgreSQL cannot store."""
    payload = {} if spec.payload is None else spec.payload
    declared = registry.get(spec.type) if registry is not None and spec.type in registry else None
    if declared is not None:
        declared.check_payload(payload)
    if spec.run_at is not None and spec.run_at.tzinfo is None:
        raise TaskSpecInvalid("run_at needs a time zone.")
    try:
        encoded = storable.encode(payload, limit=payload_limit)
    except storable.TooLarge as exc:
        raise PayloadTooLarge(f"The payload {exc}.") from None
    except storable.NotStorable as exc:
        raise PayloadInvalid(f"The payload {exc}.") from None
    if declared is not None:  # only for validation: the database computes both by the same rules
        limit_key(declared.name, declared.limit_key, spec.limit_key, payload=payload, user_id=how.user_id)
        units(declared.name, declared.units_rule, payload)
    row = {
        "type": spec.type,
        "payload": orjson.Fragment(bytes(encoded)),
        "user_id": how.user_id,
        "title": spec.title,
        "queue": spec.queue,
        "priority": spec.priority,
        "run_at": spec.run_at,
        "max_attempts": spec.max_attempts,
        "timeout_seconds": None if spec.timeout is None else max(1, round(spec.timeout.total_seconds())),
        "limit_key": spec.limit_key,
        "labels": dict(spec.labels),
        "trace_id": spec.trace_id,
        "idempotency_key": spec.idempotency_key,
        "schedule_uid": spec.schedule_uid,
        "unknown_type": how.unknown_type,
        "trusted": how.trusted or None,
        "payload_checked": declared is not None or None,  # validated by code, which can check more than a schema
    }
    return orjson.dumps({name: value for name, value in row.items() if value is not None})


def as_parameters(rows: Sequence[bytes]) -> Iterator[str]:
    """Parameters of the statements that submit these rows."""
    for start in range(0, len(rows), ROWS):
        yield (b"[" + b",".join(rows[start : start + ROWS]) + b"]").decode()


@contextmanager
def refusals() -> Iterator[None]:
    """Translate refusals of ``headrace.submit`` into our errors; others stay the library's."""
    try:
        yield
    except Exception as exc:
        if sqlstate_of(exc) == EXHAUSTED:
            raise quota_exhausted(detail_of(exc)) from exc
        kind = _ERRORS.get(sqlstate_of(exc) or "")
        if kind is None:
            raise
        raise kind(message_of(exc)) from exc


def spec_of(type_name: str, payload: Any, options: Mapping[str, Any]) -> TaskSpec:
    given = {name: value for name, value in options.items() if value is not None}
    return TaskSpec(type_name, payload, **given)
