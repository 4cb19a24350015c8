"""What can be wrong with schedules and their runs."""

from headrace.errors import Conflict, Exhausted, Invalid, NotFound


class ScheduleNotFound(NotFound):
    """There is no such schedule."""

    code = "schedule_not_found"


class ExecutionNotFound(NotFound):
    """There is no such run."""

    code = "execution_not_found"


class ScheduleInvalid(Invalid):
    """The schedule cannot be like this. ``fields`` names what is to be mended."""

    code = "schedule_invalid"


class TooManySchedules(Exhausted):
    """This user has as many schedules as users may have."""

    code = "too_many_schedules"


class CronInvalid(ScheduleInvalid):
    """This is no cron expression."""

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
    """You have another schedule with this name: names are unique for their owner."""

    code = "schedule_name_taken"


class ScheduleBusy(Conflict):
    """As many runs as the schedule may have are under way, and its overlap_policy lets none wait: try again later."""

    code = "schedule_busy"


class ExecutionOver(Conflict):
    """The run is over already."""

    code = "execution_over"


class RunOfSchedule(Conflict):
    """The task is a run of a schedule, and over: run the schedule again instead."""

    code = "run_of_schedule"
