"""Schedules and runs as the API shows them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from headrace.edge.instants import Instant
from headrace.edge.text import Line, Text
from headrace.edge.vocabulary import AsShown
from headrace.schedules import rules
from headrace.schedules.due import Rhythm
from headrace.schedules.executions import RunExplanation
from headrace.schedules.model import (
    Execution,
    ExecutionState,
    MisfirePolicy,
    OverlapPolicy,
    Schedule,
    ScheduleSpec,
    Trigger,
)
from headrace.schedules.service import Disabled, Statistics
from headrace.tasks.schemas import Labels
from headrace.tasks.why import Reason
from headrace.tasks.why_schemas import ReasonOut

SCHEDULE_ID = "sch_01h455vb4pex5vsknk084sn02q"
EXECUTION_ID = "exe_01h455vb4pex5vsknk084sn02q"
_AT = "2026-03-01T02:00:00Z"
MOST_TIMES = 100

_Cron = Annotated[
    Annotated[Text, Field(min_length=1, max_length=255)] | None,
    Field(
        description="When: five fields, with names of days and months, or a nickname such as `@daily`; read on the "
        "wall clock of `timezone`.",
        examples=["0 2 * * *"],
    ),
]
_Interval = Annotated[
    int | None, Field(ge=1, le=rules.LONGEST_INTERVAL, description="Or every so many seconds.", examples=[None])
]
_RunAt = Annotated[
    Instant | None, Field(description="Or once at this time; of an interval, the first time.", examples=[None])
]
_Timezone = Annotated[Text, Field(min_length=1, max_length=64, examples=["Asia/Shanghai"])]
_Name = Annotated[Line, Field(min_length=1, max_length=255, pattern=r"\S", examples=["Nightly report"])]
_Description = Annotated[Annotated[Text, Field(max_length=10_000)] | None, Field(examples=[None])]
_Policy = Annotated[
    MisfirePolicy,
    Field(
        description="What becomes of due times that nobody was there to fire: the `latest` runs, `all` of them up to a "
        "limit, or `none`. The others are counted in `skipped_runs`."
    ),
]
_Duration = Annotated[
    int, Field(ge=1, le=rules.LONGEST_RUN, description="How long a run may take before it is asked to stop.")
]
_Grace = Annotated[
    int,
    Field(ge=0, lt=rules.LONGEST_RUN, description="Seconds it then has until it is killed; less than the duration."),
]
_Extension = Annotated[
    int, Field(ge=0, le=rules.LONGEST_RUN, description="How many seconds more a run may ask for while it runs.")
]
_Retries = Annotated[int, Field(ge=0, le=rules.MOST_RETRIES, description="How often a failed run is tried again.")]
_Concurrent = Annotated[
    int,
    Field(
        ge=1, le=1_000_000, description="Runs at once, over all machines. `overlap_policy` says what becomes of more."
    ),
]
_Overlap = Annotated[
    OverlapPolicy,
    Field(
        description="What becomes of a due time that finds `max_concurrent` runs under way: `queue_all` lets it wait "
        "as `PENDING`, `queue_one` too unless another one waits, `skip` leaves it out, `cancel_running` tells the "
        "oldest run to stop and puts it in its place. What is left out is counted in `skipped_runs`."
    ),
]
_Waiting = Annotated[
    Annotated[int, Field(ge=1, le=rules.MOST_WAITING)] | None,
    Field(
        description="With `queue_all`: how many runs may wait. Further due times are left out. Null: any number.",
        examples=[None],
    ),
]
_Priority = Annotated[int, Field(ge=-1_000_000, le=1_000_000, description="Higher starts first.")]
_Labels = Annotated[Labels, Field(description="Only a worker that has all of these runs it.")]
_Data = Annotated[
    Any, Field(description="What the handler is given: JSON of at most 10 KB that fits the type.", examples=[{}])
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ScheduleIn(_Body):
    """A schedule to make. When it runs is said by `cron`, by `interval`, or, for a single run, by `run_at`."""

    name: _Name
    type: Annotated[Text, Field(min_length=1, max_length=255, examples=["report.build"])]
    cron: _Cron = None
    interval: _Interval = None
    run_at: _RunAt = None
    timezone: _Timezone = "UTC"
    description: _Description = None
    misfire_policy: _Policy = MisfirePolicy.LATEST
    enabled: bool = True
    max_duration_seconds: _Duration = 3600
    timeout_grace_period: _Grace = 30
    max_extension_seconds: _Extension = 0
    max_retries: _Retries = 3
    max_concurrent: _Concurrent = 1
    overlap_policy: _Overlap = OverlapPolicy.QUEUE_ALL
    max_waiting: _Waiting = None
    priority: _Priority = 0
    labels: _Labels = {}
    data: _Data = None

    def spec(self) -> ScheduleSpec:
        return ScheduleSpec(**{name: getattr(self, name) for name in type(self).model_fields})


_MAY_BE_NULL = frozenset({"cron", "interval", "run_at", "description", "data", "max_waiting"})


class ScheduleChangeIn(_Body):
    """What to change; what is left out stays. Saying `cron`, `interval` or `run_at` replaces the others."""

    name: _Name | None = None
    cron: _Cron = None
    interval: _Interval = None
    run_at: _RunAt = None
    timezone: _Timezone | None = None
    description: _Description = None
    misfire_policy: _Policy | None = None
    enabled: bool | None = None
    max_duration_seconds: _Duration | None = None
    timeout_grace_period: _Grace | None = None
    max_extension_seconds: _Extension | None = None
    max_retries: _Retries | None = None
    max_concurrent: _Concurrent | None = None
    overlap_policy: _Overlap | None = None
    max_waiting: _Waiting = None
    priority: _Priority | None = None
    labels: _Labels | None = None
    data: _Data = None

    def changes(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: value for name, value in given.items() if value is not None or name in _MAY_BE_NULL}


class ScheduleItemOut(BaseModel):
    """A schedule and how it has done, as lists have it."""

    id: str = Field(examples=[SCHEDULE_ID])
    user_id: str
    name: str = Field(examples=["Nightly report"])
    type: str = Field(examples=["report.build"])
    description: str | None
    cron: str | None = Field(examples=["0 2 * * *"])
    interval: int | None = Field(description="Seconds from one due time to the next.")
    timezone: str = Field(examples=["Asia/Shanghai"])
    is_recurring: bool
    next_run: datetime | None = Field(description="The next due time; null when there is none.", examples=[_AT])
    misfire_policy: MisfirePolicy
    enabled: bool
    max_duration_seconds: int
    timeout_grace_period: int
    max_extension_seconds: int
    max_retries: int
    max_concurrent: int
    overlap_policy: OverlapPolicy
    max_waiting: int | None
    priority: int
    labels: dict[str, Any]
    data: Any = Field(examples=[{}])
    total_executions: int = Field(description="Runs that are over: a due time counts once, whatever its attempts.")
    succeeded_executions: int = Field(description="Runs whose last attempt succeeded.")
    failed_executions: int = Field(description="Runs whose last attempt ended as `FAILED` or `TIMED_OUT`.")
    consecutive_failures: int = Field(description="Failed runs since the last success.")
    total_attempts: int = Field(description="Attempts that are over, each counted.")
    skipped_runs: int = Field(
        description="Due times that did not run: missed and not made up for, or left out by `overlap_policy`."
    )
    last_executed_at: datetime | None
    last_failure_error: str | None
    created_at: datetime = Field(examples=[_AT])
    updated_at: datetime = Field(examples=[_AT])
    version: int = Field(description="The `ETag`: send it as `If-Match` to change only what you have seen.")

    @classmethod
    def of(cls, schedule: Schedule) -> Self:
        # One name for a thing over the whole API; the table keeps the document's.
        renamed = {
            "id": schedule.uid,
            "cron": schedule.cron_expr,
            "succeeded_executions": schedule.success_executions,
            "failed_executions": schedule.failure_executions,
        }
        return cls.model_validate(
            {
                name: renamed[name] if name in renamed else getattr(schedule, name)
                for name in ScheduleItemOut.model_fields
            }
        )


class ScheduleOut(ScheduleItemOut):
    """A schedule and how it has done."""

    warnings: list[ReasonOut] = Field(
        default=[],
        description="Why its runs would wait: no worker that is alive takes them; or that it was due in the past. None "
        "while it is disabled.",
    )

    @classmethod
    def warned(cls, schedule: Schedule, warnings: Sequence[Reason]) -> Self:
        shown = cls.of(schedule)
        shown.warnings = [ReasonOut(code=each.code, text=each.text, facts=each.facts) for each in warnings]
        return shown


class DisabledOut(ScheduleOut):
    """A schedule that fires no more."""

    canceled_runs: int = Field(default=0, description="Runs that had not begun, and were canceled with this request.")

    @classmethod
    def of_disabled(cls, disabled: Disabled) -> Self:
        shown = cls.of(disabled.schedule)
        shown.canceled_runs = disabled.canceled
        return shown


class PreviewIn(_Body):
    """When something would run."""

    cron: _Cron = None
    interval: _Interval = None
    timezone: _Timezone = "UTC"
    after: Annotated[Instant | None, Field(description="From this time on; now by default.", examples=[None])] = None
    count: Annotated[int, Field(ge=1, le=MOST_TIMES)] = 5

    def rhythm(self) -> Rhythm:
        return Rhythm(self.cron, self.interval, self.timezone)


class TimesOut(BaseModel):
    """Due times, in order."""

    times: list[datetime] = Field(examples=[[_AT]])


class ScheduleStatisticsOut(BaseModel):
    """How a schedule has done. The counts are those of its runs that are over; a run that succeeds at its second
    attempt is one success, and two attempts."""

    schedule_id: str = Field(examples=[SCHEDULE_ID])
    total_executions: int
    succeeded_executions: int
    failed_executions: int
    consecutive_failures: int
    total_attempts: int
    skipped_runs: int
    success_rate: float | None = Field(description="Of those that are over; null before the first.")
    last_executed_at: datetime | None
    last_failure_error: str | None
    pending: int = Field(description="Runs that wait now.")
    running: int = Field(description="Runs that run now.")
    average_ms: float | None = Field(description="How long the last ones took.")
    p95_ms: float | None
    longest_ms: int | None

    @classmethod
    def of(cls, found: Statistics) -> Self:
        schedule, figures = found.schedule, found.figures
        total = schedule.total_executions
        return cls(
            schedule_id=schedule.uid,
            total_executions=total,
            succeeded_executions=schedule.success_executions,
            failed_executions=schedule.failure_executions,
            consecutive_failures=schedule.consecutive_failures,
            total_attempts=schedule.total_attempts,
            skipped_runs=schedule.skipped_runs,
            success_rate=schedule.success_executions / total if total else None,
            last_executed_at=schedule.last_executed_at,
            last_failure_error=schedule.last_failure_error,
            pending=figures.pending,
            running=figures.running,
            average_ms=figures.average_ms,
            p95_ms=figures.p95_ms,
            longest_ms=figures.longest_ms,
        )


class ExecutionItemOut(BaseModel):
    """A run, without its result and its stack. Each attempt is one."""

    id: str = Field(examples=[EXECUTION_ID])
    schedule_id: str = Field(examples=[SCHEDULE_ID])
    schedule_name: str = Field(examples=["Nightly report"])
    type: str = Field(examples=["report.build"])
    status: AsShown[ExecutionState]
    trigger_type: Trigger
    trigger_by: str | None = Field(description="Who ran it by hand.")
    scheduled_at: datetime = Field(description="When it was due.", examples=[_AT])
    started_at: datetime | None
    deadline_at: datetime | None = Field(description="When it is asked to stop; later after an extension.")
    finished_at: datetime | None
    duration_ms: int
    progress: int = Field(description="0 to 100.")
    retry_count: int = Field(description="Which attempt it is: 0 for the first.")
    run_by: str | None = Field(description="The worker.")
    task_id: str | None = Field(description="The task that runs it; null while it waits for other runs to end.")
    error_message: str | None
    created_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, execution: Execution) -> Self:
        renamed = {
            "id": execution.execution_uid,
            "schedule_id": execution.task_uid,
            "status": execution.state,
            "schedule_name": execution.task_name,
            "type": execution.task_type,
        }
        return cls.model_validate(
            {name: renamed[name] if name in renamed else getattr(execution, name) for name in cls.model_fields}
        )


class ExecutionOut(ExecutionItemOut):
    """A run."""

    result: str | None = Field(description="JSON; longer than 64 KB it is cut, and says so at its end.")
    error_stack: str | None = Field(description="Where it failed; of a long one the top of the stack.")


class RunWhyOut(BaseModel):
    """Why a run is not running. The first reason is the one to look at first."""

    execution_id: str = Field(examples=[EXECUTION_ID])
    status: AsShown[ExecutionState]
    reasons: list[ReasonOut]

    @classmethod
    def of(cls, explained: RunExplanation) -> Self:
        reasons = [ReasonOut(code=each.code, text=each.text, facts=each.facts) for each in explained.reasons]
        return cls(execution_id=explained.execution.execution_uid, status=explained.execution.state, reasons=reasons)
