"""What users may ask for at the most, who are no administrators."""

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import ByteSize, Field, NonNegativeInt, PositiveInt

from headrace.settings.kinds import Duration, Group, setting


class UserCapSettings(Group):
    title: ClassVar[str] = "What users may submit"

    user_priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = setting(
        "The highest priority that a user may give a task or a schedule; what its type says is always allowed, here "
        "and below. With 0 they put tasks behind those of others, not before. Administrators and programs on the "
        "database have no caps.",
        0,
    )
    user_attempts: Annotated[int, Field(ge=1, le=1000)] = setting("The most attempts.", 10)
    user_timeout: Duration = setting("The longest timeout of an attempt.", timedelta(days=1))
    user_delay: Duration = setting("How far ahead a task may be put off.", timedelta(days=366))
    user_payload_limit: ByteSize = setting("The largest payload, as JSON.", "64KiB")
    user_open_tasks: PositiveInt = setting(
        "How many tasks of one user may wait or run; those that come in at the same moment may be a few more.", 10_000
    )
    user_lanes: PositiveInt = setting(
        "Under how many different limit keys, labels and priorities tasks of one user may wait; a few more where "
        "several processes take them in at once.",
        200,
    )
    user_schedules: NonNegativeInt = setting("How many schedules one user may have.", 100)
    user_schedule_interval: Duration = setting(
        "The shortest pause between two runs of a schedule.", timedelta(minutes=1)
    )
