"""The definition of a task type at submission: from the program's own registry, or from the declarations in the
database, for a process without the code (the API, a program in another language)."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Protocol

import orjson

from headrace import logs
from headrace.database import Row, Tx
from headrace.tasks import payload_checks, retention_periods
from headrace.tasks.errors import PayloadInvalid, UnknownTaskType
from headrace.tasks.model import MEDIA_TYPES
from headrace.tasks.registry import Registry, TaskType
from headrace.tasks.rights import ADMINS
from headrace.tasks.store.queues import count_running_tasks

log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class KnownType:
    """How tasks of a type are queued and checked."""

    name: str
    queue: str
    priority: int
    max_attempts: int
    timeout_seconds: int | None
    emits_events: bool
    check_payload: Callable[[Any], Any]
    limit_key: str | None = None  # a rule, see limit_keys.py
    followers: tuple[str, ...] = ()
    emits_always: bool = False  # writes events even without subscribers
    units: str | None = None  # a rule, see units.py
    submit: str = ADMINS  # a rule, see rights.py


class Catalog(Protocol):
    constant: bool  # whether its answer about a type stays true for the life of the process

    async def get(self, tx: Tx, name: str) -> KnownType:
        """The type of this name; ``UnknownTaskType`` if it was never registered."""

    async def check_registered(self, tx: Tx, name: str) -> None:
        """``UnknownTaskType`` for a type that no program has registered lately: tasks planned with it would wait."""


class RegistryCatalog:
    """The types of this very program."""

    constant = True

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def get(self, tx: Tx, name: str) -> KnownType:  # noqa: ARG002
        return known_type(self._registry.get(name))

    async def check_registered(self, tx: Tx, name: str) -> None:
        await self.get(tx, name)


@lru_cache(maxsize=1024)
def known_type(declared: TaskType) -> KnownType:
    return KnownType(
        name=declared.name,
        queue=declared.queue,
        priority=declared.priority,
        max_attempts=declared.max_attempts,
        timeout_seconds=None if declared.timeout is None else max(1, round(declared.timeout.total_seconds())),
        emits_events=bool(declared.events),
        # The documents demand them (W-06 to W-08).
        emits_always=declared.events == "always" or (bool(declared.events) and declared.name in MEDIA_TYPES),
        check_payload=declared.check_payload,
        limit_key=declared.limit_key,
        followers=declared.followers,
        units=declared.units_rule,
        submit=declared.submit,
    )


GET_TYPE = """
SELECT name, queue, priority, max_attempts, timeout_seconds, emits_events,
       coalesce(emits_always, false) AS emits_always,
       limit_key, followers, units, coalesce(submit, 'admins') AS submit, payload_schema
FROM headrace.task_types WHERE name = $1
"""
# Declared by a program with its code, or alive in a worker: the later of the two, by the database's clock.
LAST_SEEN = """
SELECT seen.at, seen.at >= now() - $2::interval AS lately
FROM headrace.task_types AS type
CROSS JOIN LATERAL (
  SELECT greatest(type.seen_at, max(heartbeat_at)) AS at FROM headrace.workers WHERE type.name = ANY (types)
) AS seen
WHERE type.name = $1
"""
# Those of the product itself are nothing that anybody submits.
LIST_TYPE_NAMES = """
SELECT name FROM headrace.task_types WHERE NOT starts_with(name, 'headrace.') ORDER BY name LIMIT 50
"""


class StoredCatalog:
    """The types that programs have declared in the database; remembered for a few seconds.

    A type that was neither declared nor run for ``lifetime`` is no longer registered; None never forgets.
    """

    constant = False

    def __init__(self, *, remember_seconds: float = 5, lifetime: timedelta | None = timedelta(days=7)) -> None:
        self._remember = remember_seconds
        self._lifetime = lifetime
        self._known: dict[str, tuple[float, KnownType]] = {}

    async def get(self, tx: Tx, name: str) -> KnownType:
        kept = self._known.get(name)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        row = await tx.fetchrow(GET_TYPE, name)
        if row is None:
            names = [row["name"] for row in await tx.fetch(LIST_TYPE_NAMES)]
            near = get_close_matches(name, names, n=1)
            there = f"did you mean {near[0]}?" if near else f"known are: {', '.join(names) or 'none'}."
            raise UnknownTaskType(f"No worker has ever registered the task type {name!r}; {there}")
        known = _from_row(row)
        self._known[name] = (time.monotonic() + self._remember, known)
        return known

    async def check_registered(self, tx: Tx, name: str) -> None:
        await self.get(tx, name)
        if self._lifetime is None:
            return
        seen = await tx.fetchrow(LAST_SEEN, name, self._lifetime)
        if seen is not None and not seen["lately"]:
            when = f"{seen['at']:%Y-%m-%d %H:%M} UTC"
            raise UnknownTaskType(
                f"The task type {name!r} is no longer registered: it was not declared, and no worker with it "
                f"was alive, since {when}. Start a worker with this type."
            )


def _from_row(row: Row) -> KnownType:
    values = dict(row)
    values["followers"] = tuple(values["followers"])
    schema = values.pop("payload_schema")
    return KnownType(check_payload=_checker(row["name"], orjson.dumps(schema)) if schema else _anything, **values)


def _anything(payload: Any) -> Any:
    return payload


@lru_cache(maxsize=256)
def _checker(name: str, schema: bytes) -> Callable[[Any], Any]:
    import jsonschema  # a worker, which checks with its own types, never needs it

    validator = jsonschema.Draft202012Validator(orjson.loads(schema))

    def check(payload: Any) -> Any:
        faults = sorted(validator.iter_errors(payload), key=lambda fault: list(map(str, fault.path)))
        if faults:
            raise PayloadInvalid(
                f"The payload does not fit {name}: " + "; ".join(f"{_where(f)}: {f.message}" for f in faults[:5]),
                fields=[_where(fault) for fault in faults[:20]],
            )
        return payload

    return check


def _where(fault: Any) -> str:
    path = [*map(str, fault.absolute_path)]
    if fault.validator == "required":  # the fault is the object's, but users look for the field
        path.append(fault.message.removesuffix(" is a required property").strip("'\""))
    return ".".join(path) or "(payload)"


DECLARE_TYPE = """
INSERT INTO headrace.task_types AS known
  (name, queue, priority, max_attempts, timeout_seconds, emits_events, max_running, max_running_per_key, payload_schema,
   description, followers, limit_key, emits_always, units, submit, payload_check, retention,
   limited_by_plan)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
ON CONFLICT (name) DO UPDATE
SET queue = $2, priority = $3, max_attempts = $4, timeout_seconds = $5, emits_events = $6, max_running = $7,
    max_running_per_key = $8, payload_schema = $9, description = $10, followers = $11, limit_key = $12,
    emits_always = $13, units = $14, submit = $15, payload_check = $16, retention = $17, limited_by_plan = $18
-- Ten workers that start at once must not write ten times.
WHERE (known.queue, known.priority, known.max_attempts, known.timeout_seconds, known.emits_events, known.max_running,
       known.max_running_per_key, known.payload_schema, known.description, known.followers, known.limit_key,
       known.emits_always, known.units, known.submit, known.payload_check, known.retention,
       known.limited_by_plan)
  IS DISTINCT FROM ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
"""

# Rounded to the hour, without waiting for locks: the process that holds the row writes the same value.
NOTE_SEEN = """
UPDATE headrace.task_types SET seen_at = now() WHERE name = ANY (ARRAY(
  SELECT name FROM headrace.task_types WHERE name = ANY ($1) AND seen_at < now() - interval '1 hour'
  FOR NO KEY UPDATE SKIP LOCKED
))
"""


@lru_cache(maxsize=1024)
def _check_of(declared: TaskType) -> Mapping[str, Any] | bool | None:
    """The part of its schema that the database checks; the rest is logged once; only programs and the API check it."""
    if declared.payload_schema is None:
        return None
    check, left_out = payload_checks.compile_schema(declared.payload_schema)
    if left_out:
        log.warning("task_type.partly_checked_in_sql", type=declared.name, left_out=sorted(left_out))
    return check


async def declare_types(tx: Tx, registry: Registry) -> None:
    """Tell the database what this program can run, so that every process agrees on limits and can check payloads.

    A limit that is new counts what runs already; ``DatabaseBusy`` if that stays locked.
    """
    limited: list[str] = []
    for declared in sorted(registry, key=lambda each: each.name):  # one order for all: no deadlock between workers
        known = known_type(declared)
        changed = await tx.count(
            DECLARE_TYPE,
            known.name,
            known.queue,
            known.priority,
            known.max_attempts,
            known.timeout_seconds,
            known.emits_events,
            declared.max_running,
            declared.max_running_per_key,
            declared.payload_schema,
            declared.description,
            list(declared.followers),
            declared.limit_key,
            known.emits_always,
            declared.units_rule,
            declared.submit,
            _check_of(declared),
            retention_periods.seconds_by_status(declared.retention),
            declared.limited_by_plan,
        )
        if changed and (declared.max_running or declared.max_running_per_key or declared.limited_by_plan):
            limited.append(known.name)
    await tx.execute(NOTE_SEEN, [declared.name for declared in registry])
    if limited:  # last: no claims from here to the commit, and waiting for a type must not hold claims back
        await count_running_tasks(tx, types=limited)
