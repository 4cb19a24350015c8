"""Caps for users who are not administrators."""

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import ByteSize, Field, NonNegativeInt, PositiveInt

from headrace.settings.kinds import Duration, Group, setting


class UserCapSettings(Group):
    title: ClassVar[str] = "What users may submit"

    user_priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = setting(
        "The highest priority that a user may give a task or a schedule; the type's own value is always allowed, here "
        "and below. With 0 they put tasks behind those of others, not before. Administrators and programs on the "
        "database have no caps.",
        0,
    )
    user_attempts: Annotated[int, Field(ge=1, le=1000)] = setting("The maximum number of attempts.", 10)
    user_timeout: Duration = setting("The longest timeout of an attempt.", timedelta(days=1))
    user_delay: Duration = setting("The maximum delay of a task.", timedelta(days=366))
    user_payload_limit: ByteSize = setting("The largest payload, as JSON.", "64KiB")
    user_open_tasks: PositiveInt = setting(
        "How many tasks of one user may wait or run; concurrent submissions may exceed it slightly.", 10_000
    )
    user_lanes: PositiveInt = setting(
        "How many different limit keys, labels and priorities a user's waiting tasks may have; concurrent submissions "
        "may exceed it slightly.",
        200,
    )
    user_schedules: NonNegativeInt = setting("How many schedules one user may have.", 100)
    user_schedule_interval: Duration = setting(
        "The shortest interval between two runs of a schedule.", timedelta(minutes=1)
    )
