"""Schedulers."""

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import Field, PositiveInt

from headrace.settings.kinds import Duration, Group, Keep, setting


class SchedulerSettings(Group):
    title: ClassVar[str] = "Scheduler"

    scheduler_poll_interval: Duration = setting(
        "The longest sleep of a scheduler. It wakes when a schedule is due, and by a notification when schedules "
        "change; this is for lost notifications.",
        timedelta(seconds=5),
    )
    scheduler_misfire_after: Annotated[Duration, Field(ge=timedelta(seconds=1))] = setting(
        "A due time that is late by more than this counts as missed, and the schedule's `misfire_policy` applies. Less "
        "late ones all run.",
        timedelta(seconds=60),
    )
    scheduler_catch_up: PositiveInt = setting(
        "The maximum number of missed due times that a schedule with the policy `all` catches up.",
        1000,
    )
    task_type_lifetime: Keep = setting(
        "How long a task type counts as registered after its last declaration by a program, or after its last worker "
        "was alive. Schedules of other types cannot be created, changed or enabled. `forever` keeps all.",
        timedelta(days=7),
    )
