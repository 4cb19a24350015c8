"""Errors of schedules and runs."""

from headrace.errors import Conflict, Exhausted, Invalid, NotFound


class ScheduleNotFound(NotFound):
    """There is no such schedule."""

    code = "schedule_not_found"


class ExecutionNotFound(NotFound):
    """There is no such run."""

    code = "execution_not_found"


class ScheduleInvalid(Invalid):
    """A property of the schedule is not valid. ``fields`` names it."""

    code = "schedule_invalid"


class TooManySchedules(Exhausted):
    """The user has reached the maximum number of schedules."""

    code = "too_many_schedules"


class CronInvalid(ScheduleInvalid):
    """This is not a cron expression."""

    code = "cron_invalid"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, fields=["cron"])


class CronNeverDue(CronInvalid):
    """The expression is not due in the next five years."""

    code = "cron_never_due"


class TimezoneUnknown(ScheduleInvalid):
    """There is no such time zone."""

    code = "timezone_unknown"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, fields=["timezone"])


class ScheduleNameTaken(Conflict):
    """You have another schedule with this name: names are unique per owner."""

    code = "schedule_name_taken"


class ScheduleBusy(Conflict):
    """The maximum number of runs is under way, and the overlap_policy lets none wait: try again later."""

    code = "schedule_busy"


class ExecutionOver(Conflict):
    """The run has already ended."""

    code = "execution_over"


class RunOfSchedule(Conflict):
    """The task is an ended run of a schedule: run the schedule again instead."""

    code = "run_of_schedule"
