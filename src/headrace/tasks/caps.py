"""What users may ask for at the most: settings of a deployment, for everybody who is no administrator.

What a type says itself is always allowed. A user who may ask for any priority goes before all others, and one who may
have any number of open tasks fills the queue of all.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson

from headrace.access import Caller
from headrace.database import Tx
from headrace.tasks.catalog import Catalog, KnownType
from headrace.tasks.errors import OverCap, QueueUndeclared
from headrace.tasks.model import TaskSpec
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
    schedules: int = 100
    schedule_interval: timedelta = timedelta(minutes=1)


async def check_caps(tx: Tx, catalog: Catalog, caps: Caps, caller: Caller, specs: Sequence[TaskSpec]) -> None:
    """Refuse what asks for more than a user may; administrators may all that can be."""
    if caller.is_admin:
        return
    declared: set[str] = set()
    for spec in specs:
        known = await catalog.get(tx, spec.type)
        check_spec(spec)  # what nobody may is told as that
        _check(caps, known, spec)
        if spec.queue is not None and spec.queue != known.queue and spec.queue not in declared:
            if not await tx.fetchval(IS_DECLARED, spec.queue):
                raise QueueUndeclared(
                    f"Nobody has declared the queue {spec.queue!r}: leave it out, or name one that a type, a worker or "
                    "an administrator has.",
                    queue=spec.queue,
                )
            declared.add(spec.queue)


def _check(caps: Caps, known: KnownType, spec: TaskSpec) -> None:
    if spec.priority is not None:
        check_cap("priority", spec.priority, max(caps.priority, known.priority))
    if spec.max_attempts is not None:
        check_cap("max_attempts", spec.max_attempts, max(caps.attempts, known.max_attempts))
    if spec.timeout is not None:
        check_cap("timeout", spec.timeout, max(caps.timeout, timedelta(seconds=known.timeout_seconds or 0)))
    if spec.run_at is not None and spec.run_at.tzinfo is not None:
        check_cap("delay", spec.run_at - datetime.now(UTC), caps.delay)
    if spec.payload:
        with suppress(TypeError):  # what is no JSON is refused as that
            check_cap("payload_bytes", len(orjson.dumps(spec.payload)), caps.payload_bytes)


def check_cap(name: str, asked: int | timedelta, most: int | timedelta) -> None:
    """``OverCap`` if a user asks for more than this."""
    over = asked > most  # type: ignore[operator] # both are of one kind
    if over:
        told, limit = (value if isinstance(value, int) else round(value.total_seconds()) for value in (asked, most))
        unit = "" if isinstance(most, int) else " seconds"
        raise OverCap(
            f"{name} may be {limit:,}{unit} at the most for users, not {told:,} (HEADRACE_USER_{_SETTINGS[name]}).",
            cap=name,
            most=limit,
            asked=told,
        )


_SETTINGS = {
    "priority": "PRIORITY",
    "max_attempts": "ATTEMPTS",
    "timeout": "TIMEOUT",
    "delay": "DELAY",
    "payload_bytes": "PAYLOAD_LIMIT",
}

# By whoever runs the product: an administrator, a program or a worker. A queue that a user has made up is none, and the
# product's own is not for users.
IS_DECLARED = """
SELECT $1 = 'default'
    OR EXISTS (SELECT FROM headrace.queues WHERE name = $1)
    OR EXISTS (SELECT FROM headrace.task_types WHERE queue = $1 AND name NOT LIKE 'headrace.%')
    OR EXISTS (SELECT FROM headrace.workers WHERE ended_at IS NULL AND $1 = ANY (queues) AND $1 <> 'headrace')
"""
