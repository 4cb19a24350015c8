"""Upper limits on what users may request: settings of a deployment that apply to everyone but administrators.

The defaults of a task type are always allowed. A user with free choice of priority could overtake all others, and one
with any number of open tasks could fill the queue.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import orjson

from headrace import clock
from headrace.access import Caller
from headrace.database import Tx
from headrace.tasks.catalog import Catalog, KnownType
from headrace.tasks.errors import LabelsUndeclared, OverCap, QueueUndeclared
from headrace.tasks.limit_keys import limit_key
from headrace.tasks.model import TaskSpec
from headrace.tasks.open_tasks import LaneKey
from headrace.tasks.submit import check_spec


@dataclass(frozen=True, slots=True)
class Caps:
    """The defaults are those of the settings."""

    priority: int = 0
    attempts: int = 10
    timeout: timedelta = timedelta(days=1)
    delay: timedelta = timedelta(days=366)
    payload_bytes: int = 64 * 1024
    open_tasks: int = 10_000
    lanes: int = 200
    schedules: int = 100
    schedule_interval: timedelta = timedelta(minutes=1)


async def check_caps(tx: Tx, catalog: Catalog, caps: Caps, caller: Caller, specs: Sequence[TaskSpec]) -> None:
    """Refuse what asks for more than a user may; administrators may all that can be."""
    if caller.is_admin:
        return
    declared: set[str] = set()
    for spec in specs:
        known = await catalog.get(tx, spec.type)
        check_spec(spec)  # what no user may request is refused with its own error
        _check(caps, known, spec)
        if spec.queue is not None and spec.queue != known.queue and spec.queue not in declared:
            if not await tx.fetchval(IS_DECLARED, spec.queue):
                raise QueueUndeclared(
                    f"The queue {spec.queue!r} is not declared: leave it out, or name one that a type, a worker or "
                    "an administrator has.",
                    queue=spec.queue,
                )
            declared.add(spec.queue)
        await check_labels(tx, spec.labels)


async def check_labels(tx: Tx, labels: Mapping[str, str]) -> None:
    """``LabelsUndeclared`` unless some worker has had all of these: no other worker would ever take the task."""
    if labels and not await tx.fetchval(HAVE_LABELS, dict(labels)):
        raise LabelsUndeclared(
            f"No worker has the labels {', '.join(f'{name}={value}' for name, value in sorted(labels.items()))}: leave "
            "them out, or ask the operator to start a worker with them.",
            labels=dict(labels),
        )


def lane_key(caller: Caller, known: KnownType, spec: TaskSpec) -> LaneKey | None:
    """What tells this task's lane from others of its user; None if it is the lane that its type has anyway."""
    payload = {} if spec.payload is None else spec.payload
    key = limit_key(known.name, known.limit_key, spec.limit_key, payload=payload, user_id=caller.user_id)
    priority = known.priority if spec.priority is None else spec.priority
    if (not key or key == caller.user_id) and not spec.labels and priority == known.priority:
        return None
    return known.name, spec.queue or known.queue, key, tuple(sorted(spec.labels.items())), priority


def _check(caps: Caps, known: KnownType, spec: TaskSpec) -> None:
    if spec.priority is not None:
        check_cap("priority", spec.priority, max(caps.priority, known.priority))
    if spec.max_attempts is not None:
        check_cap("max_attempts", spec.max_attempts, max(caps.attempts, known.max_attempts))
    if spec.timeout is not None:
        check_cap("timeout", spec.timeout, max(caps.timeout, timedelta(seconds=known.timeout_seconds or 0)))
    if spec.run_at is not None and spec.run_at.tzinfo is not None:
        check_cap("delay", spec.run_at - clock.now(), caps.delay)
    if spec.payload:
        with suppress(TypeError):  # a payload that is not JSON is refused with its own error
            check_cap("payload_bytes", len(orjson.dumps(spec.payload)), caps.payload_bytes)


def check_cap(name: str, requested: int | timedelta, maximum: int | timedelta) -> None:
    """``OverCap`` if a user asks for more than this."""
    over = requested > maximum  # type: ignore[operator] # both are of one kind
    if over:
        shown, limit = (
            value if isinstance(value, int) else round(value.total_seconds()) for value in (requested, maximum)
        )
        unit = "" if isinstance(maximum, int) else " seconds"
        raise OverCap(
            f"{name} may be at most {limit:,}{unit} for users, not {shown:,} (HEADRACE_USER_{_SETTINGS[name]}).",
            cap=name,
            most=limit,
            asked=shown,
        )


_SETTINGS = {
    "priority": "PRIORITY",
    "max_attempts": "ATTEMPTS",
    "timeout": "TIMEOUT",
    "delay": "DELAY",
    "payload_bytes": "PAYLOAD_LIMIT",
}

# An ended worker counts for as long as its row is kept: a restart does not cause refusals.
HAVE_LABELS = "SELECT EXISTS (SELECT FROM headrace.workers WHERE labels @> $1)"

# Declared by the operator: an administrator, a program or a worker. Queues that users invented do not count, and the
# product's own queue is not for users.
IS_DECLARED = """
SELECT $1 = 'default'
    OR EXISTS (SELECT FROM headrace.queues WHERE name = $1)
    OR EXISTS (SELECT FROM headrace.task_types WHERE queue = $1 AND name NOT LIKE 'headrace.%')
    OR EXISTS (SELECT FROM headrace.workers WHERE ended_at IS NULL AND $1 = ANY (queues) AND $1 <> 'headrace')
"""
