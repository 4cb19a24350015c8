"""Measuring a minute, and reading the measurements."""

from dataclasses import dataclass
from datetime import datetime

from headrace.admin.statistics import store
from headrace.admin.statistics.model import ALL_TYPES, Range, Statistics
from headrace.database import Tx
from headrace.tasks.store.queues import Contents, count_contents

_QUEUES_SHOWN = 8
_TYPES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one round."""

    minutes: int = 0
    forgotten: int = 0


async def measure(tx: Tx, *, now: datetime | None = None) -> Measured:
    """Measure the past minutes that are not recorded yet; nothing if another process has done so.

    Any number of processes may try at once: the row of a minute is inserted by one of them, and one that dies takes its
    row with it.
    """
    minutes = await store.claim_minutes(tx, now=now)
    if not minutes:
        return Measured()
    await store.count_ended(tx, [*await store.find_unsettled(tx, minutes[0]), *minutes])
    contents = await count_contents(tx)
    known = {name: each for name, each in contents.items() if name is not None and each != Contents(exact=each.exact)}
    await store.keep_contents(tx, minutes[-1], known)
    return Measured(len(minutes), await store.forget(tx, now=now))


async def read_statistics(
    tx: Tx, wanted: Range, *, task_type: str | None = None, now: datetime | None = None
) -> Statistics:
    """The last hour, day or week, up to the minute that was measured last; durations of one task type, or of all."""
    until = await store.end_of_step(tx, wanted.step, now=now)
    since = until - wanted.length
    points = await store.list_points(tx, since, until, wanted.step, task_type=task_type or ALL_TYPES)
    queues = await store.list_queues(tx, since, until, wanted.step, points=points, most=_QUEUES_SHOWN)
    types = await store.list_types(tx, since, until, most=_TYPES_SHOWN)
    return Statistics(wanted, since, until, points, queues, task_type, types)
