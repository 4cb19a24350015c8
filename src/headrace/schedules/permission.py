"""Permissions of schedules: types that their owner may submit, within the caps of users.

A schedule runs with the rights of its owner, which are checked again each time it fires.
"""

from datetime import timedelta
from itertools import islice, pairwise

from headrace import clock
from headrace.access import Caller, Scope
from headrace.database import Tx
from headrace.schedules.due import Rhythm
from headrace.schedules.errors import ScheduleInvalid, TooManySchedules
from headrace.schedules.model import ScheduleSpec
from headrace.tasks.caps import Caps, check_cap, check_labels
from headrace.tasks.rights import Rights, rights_of_user
from headrace.tasks.service import Tasks

_SAMPLED_TIMES = 50  # due times of an expression that are examined for the shortest interval


async def check_type(tx: Tx, tasks: Tasks, caller: Caller, type_name: str) -> None:
    """``TypeDenied`` or ``ScopeMissing`` for a type that the caller may not submit."""
    known = await tasks.catalog.get(tx, type_name)
    Rights.of(caller, through=Scope.SCHEDULES_WRITE).check(known.name, known.submit)


async def check_spec(tx: Tx, tasks: Tasks, caller: Caller, spec: ScheduleSpec, *, owner: str) -> None:
    """Refuse a schedule that exceeds the permissions of the caller or of its owner."""
    await check_type(tx, tasks, caller, spec.type)
    known = await tasks.catalog.get(tx, spec.type)
    (await rights_of_user(tx, owner, [known.submit])).check(known.name, known.submit)
    if caller.is_admin:
        return
    caps = tasks.caps
    check_cap("priority", spec.priority, max(caps.priority, known.priority))
    check_cap("max_attempts", spec.max_retries + 1, max(caps.attempts, known.max_attempts))
    longest = timedelta(seconds=spec.max_duration_seconds + spec.max_extension_seconds)
    check_cap("timeout", longest, max(caps.timeout, timedelta(seconds=known.timeout_seconds or 0)))
    await check_labels(tx, spec.labels or {})
    _check_pause(caps, spec)


def _check_pause(caps: Caps, spec: ScheduleSpec) -> None:
    if not spec.is_recurring:
        return
    rhythm = Rhythm(spec.cron, spec.interval, spec.timezone)
    times = islice(rhythm.times(rhythm.first(clock.now())), _SAMPLED_TIMES if spec.cron else 2)
    if min((later - earlier for earlier, later in pairwise(times)), default=caps.schedule_interval) < (
        caps.schedule_interval
    ):
        raise ScheduleInvalid(
            f"A user's schedule may run at most every {round(caps.schedule_interval.total_seconds()):,} seconds "
            "(HEADRACE_USER_SCHEDULE_INTERVAL).",
            fields=["cron" if spec.cron else "interval"],
            cap="schedule_interval",
        )


# Concurrent creations wait here, so that the cap is exact.
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('headrace.schedules.' || $1, 0))"
COUNT = """
SELECT count(*) FROM (
  SELECT FROM headrace.scheduled_tasks WHERE user_id = $1 AND deleted_at IS NULL LIMIT $2
) AS theirs
"""


async def check_count(tx: Tx, caps: Caps, caller: Caller) -> None:
    """``TooManySchedules`` if the user has reached the cap."""
    if caller.is_admin:
        return
    await tx.execute(ONE_AT_A_TIME, caller.user_id)
    if await tx.fetchval(COUNT, caller.user_id, caps.schedules) >= caps.schedules:
        raise TooManySchedules(
            f"A user may have {caps.schedules:,} schedules: delete one first (HEADRACE_USER_SCHEDULES).",
            cap="schedules",
            most=caps.schedules,
        )
