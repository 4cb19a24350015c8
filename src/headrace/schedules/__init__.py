"""Schedules: when it runs. Other packages import only what is named here."""

from typing import TYPE_CHECKING

from headrace import lazily

if TYPE_CHECKING:
    from headrace.schedules.due import MisfireConfig, Rhythm
    from headrace.schedules.errors import (
        CronInvalid,
        CronNeverDue,
        ExecutionNotFound,
        ExecutionOver,
        RunOfSchedule,
        ScheduleInvalid,
        ScheduleNameTaken,
        ScheduleNotFound,
        TimezoneUnknown,
    )
    from headrace.schedules.executions import cancel_execution, explain_execution, get_execution, list_executions
    from headrace.schedules.firing import Fired, fire_due
    from headrace.schedules.following import ExecutionFollower, with_schedules
    from headrace.schedules.loop import Scheduler, SchedulerConfig
    from headrace.schedules.model import (
        Execution,
        ExecutionState,
        ExecutionUid,
        MisfirePolicy,
        Schedule,
        ScheduleSpec,
        ScheduleUid,
        Trigger,
    )
    from headrace.schedules.service import (
        Statistics,
        bury_deleted,
        create_schedule,
        delete_schedule,
        disable_schedule,
        enable_schedule,
        ensure_schedule,
        get_schedule,
        get_statistics,
        list_schedules,
        preview,
        run_schedule,
        upcoming,
        update_schedule,
    )
    from headrace.schedules.store.executions import ExecutionFilter, FoundExecutions
    from headrace.schedules.store.schedules import ScheduleFilter

__all__ = [
    "CronInvalid",
    "CronNeverDue",
    "Execution",
    "ExecutionFilter",
    "ExecutionFollower",
    "ExecutionNotFound",
    "ExecutionOver",
    "ExecutionState",
    "ExecutionUid",
    "Fired",
    "FoundExecutions",
    "MisfireConfig",
    "MisfirePolicy",
    "Rhythm",
    "RunOfSchedule",
    "Schedule",
    "ScheduleFilter",
    "ScheduleInvalid",
    "ScheduleNameTaken",
    "ScheduleNotFound",
    "ScheduleSpec",
    "ScheduleUid",
    "Scheduler",
    "SchedulerConfig",
    "Statistics",
    "TimezoneUnknown",
    "Trigger",
    "bury_deleted",
    "cancel_execution",
    "create_schedule",
    "delete_schedule",
    "disable_schedule",
    "enable_schedule",
    "ensure_schedule",
    "explain_execution",
    "fire_due",
    "get_execution",
    "get_schedule",
    "get_statistics",
    "list_executions",
    "list_schedules",
    "preview",
    "run_schedule",
    "upcoming",
    "update_schedule",
    "with_schedules",
]

__getattr__ = lazily.names_of(
    __name__,
    {
        "due": "MisfireConfig Rhythm",
        "errors": "CronInvalid CronNeverDue ExecutionNotFound ExecutionOver RunOfSchedule "
        "ScheduleInvalid ScheduleNameTaken ScheduleNotFound TimezoneUnknown",
        "executions": "cancel_execution explain_execution get_execution list_executions",
        "firing": "Fired fire_due",
        "following": "ExecutionFollower with_schedules",
        "loop": "Scheduler SchedulerConfig",
        "model": "Execution ExecutionState ExecutionUid MisfirePolicy Schedule ScheduleSpec ScheduleUid Trigger",
        "service": "Statistics bury_deleted create_schedule delete_schedule disable_schedule "
        "enable_schedule ensure_schedule get_schedule get_statistics list_schedules "
        "preview run_schedule upcoming update_schedule",
        "store.executions": "ExecutionFilter FoundExecutions",
        "store.schedules": "ScheduleFilter",
    },
)
