"""Schedulers."""

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import Field, PositiveInt

from headrace.settings.kinds import Duration, Group, Keep, setting


class SchedulerSettings(Group):
    title: ClassVar[str] = "Scheduler"

    scheduler_poll_interval: Duration = setting(
        "The longest sleep of a scheduler. It wakes by itself when something is due, and by a notification when "
        "schedules change; this is for a notification that was lost.",
        timedelta(seconds=5),
    )
    scheduler_misfire_after: Annotated[Duration, Field(ge=timedelta(seconds=1))] = setting(
        "A due time that is later than this was missed, and what becomes of it is the schedule's `misfire_policy`. "
        "Less is lateness: then every due time runs.",
        timedelta(seconds=60),
    )
    scheduler_catch_up: PositiveInt = setting(
        "How many missed due times of a schedule with the policy `all` are made up for at the most.",
        1000,
    )
    task_type_lifetime: Keep = setting(
        "How long a task type counts as registered after a program last declared it, or a worker that has it was last "
        "alive. Schedules of other types are neither made, changed nor enabled. `forever` forgets none.",
        timedelta(days=7),
    )
