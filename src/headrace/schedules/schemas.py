"""Request and response bodies of schedules and runs."""

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
MAX_TIMES = 100

_Cron = Annotated[
    Annotated[Text, Field(min_length=1, max_length=255)] | None,
    Field(
        description="A cron expression: five fields, with names of days and months, or a nickname such as `@daily`; "
        "in the wall clock time of `timezone`.",
        examples=["0 2 * * *"],
    ),
]
_Interval = Annotated[
    int | None, Field(ge=1, le=rules.MAX_INTERVAL_SECONDS, description="Or an interval in seconds.", examples=[None])
]
_RunAt = Annotated[
    Instant | None, Field(description="Or a single run at this time; for an interval, the first run.", examples=[None])
]
_Timezone = Annotated[Text, Field(min_length=1, max_length=64, examples=["Asia/Shanghai"])]
_Name = Annotated[Line, Field(min_length=1, max_length=255, pattern=r"\S", examples=["Nightly report"])]
_Description = Annotated[Annotated[Text, Field(max_length=10_000)] | None, Field(examples=[None])]
_Policy = Annotated[
    MisfirePolicy,
    Field(
        description="The treatment of due times that were missed because no scheduler ran: the `latest` runs, `all` up "
        "to a limit, or `none`. The others count in `skipped_runs`."
    ),
]
_Duration = Annotated[
    int,
    Field(
        ge=1, le=rules.MAX_RUN_SECONDS, description="The maximum duration of a run before it receives a stop request."
    ),
]
_Grace = Annotated[
    int,
    Field(
        ge=0,
        lt=rules.MAX_RUN_SECONDS,
        description="Seconds from the stop request until it is killed; less than the duration.",
    ),
]
_Extension = Annotated[
    int, Field(ge=0, le=rules.MAX_RUN_SECONDS, description="The maximum extension in seconds that a run may request.")
]
_Retries = Annotated[int, Field(ge=0, le=rules.MAX_RETRIES, description="The number of retries of a failed run.")]
_Concurrent = Annotated[
    int,
    Field(ge=1, le=1_000_000, description="Concurrent runs over all machines. `overlap_policy` decides about more."),
]
_Overlap = Annotated[
    OverlapPolicy,
    Field(
        description="The treatment of a due time while `max_concurrent` runs are under way: `queue_all` lets it wait "
        "as `PENDING`, `queue_one` does so unless another run waits, `skip` skips it, `cancel_running` stops the "
        "oldest run and replaces it. Skipped times count in `skipped_runs`."
    ),
]
_Waiting = Annotated[
    Annotated[int, Field(ge=1, le=rules.MAX_WAITING)] | None,
    Field(
        description="With `queue_all`: the maximum of waiting runs. Further due times are skipped. Null: no limit.",
        examples=[None],
    ),
]
_Priority = Annotated[int, Field(ge=-1_000_000, le=1_000_000, description="Higher starts first.")]
_Labels = Annotated[Labels, Field(description="Only a worker with all these labels runs it.")]
_Data = Annotated[
    Any,
    Field(description="The payload for the handler: JSON of at most 10 KB that is valid for the type.", examples=[{}]),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ScheduleIn(_Body):
    """A new schedule. Set `cron`, `interval`, or, for a single run, `run_at`."""

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
    """Changes; omitted fields stay unchanged. Setting `cron`, `interval` or `run_at` replaces the others."""

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
        values = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: value for name, value in values.items() if value is not None or name in _MAY_BE_NULL}


class ScheduleItemOut(BaseModel):
    """A schedule and its counts, as in lists."""

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
    total_executions: int = Field(description="Ended runs: a due time counts once, regardless of its attempts.")
    succeeded_executions: int = Field(description="Runs whose last attempt succeeded.")
    failed_executions: int = Field(description="Runs whose last attempt ended as `FAILED` or `TIMED_OUT`.")
    consecutive_failures: int = Field(description="Failed runs since the last success.")
    total_attempts: int = Field(description="Ended attempts, each counted.")
    skipped_runs: int = Field(
        description="Due times that did not run: missed and not caught up, or skipped by `overlap_policy`."
    )
    last_executed_at: datetime | None
    last_failure_error: str | None
    created_at: datetime = Field(examples=[_AT])
    updated_at: datetime = Field(examples=[_AT])
    version: int = Field(description="The `ETag`: send it as `If-Match` to change only this version.")

    @classmethod
    def of(cls, schedule: Schedule) -> Self:
        # One name over the whole API; the table keeps the specification's name.
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
    """A schedule and its counts."""

    warnings: list[ReasonOut] = Field(
        default=[],
        description="Why its runs would wait: no live worker takes them; or that it was due in the past. Empty while "
        "it is disabled.",
    )

    @classmethod
    def warned(cls, schedule: Schedule, warnings: Sequence[Reason]) -> Self:
        shown = cls.of(schedule)
        shown.warnings = [ReasonOut(code=each.code, text=each.text, facts=each.facts) for each in warnings]
        return shown


class DisabledOut(ScheduleOut):
    """A disabled schedule."""

    canceled_runs: int = Field(default=0, description="Waiting runs that this request canceled.")

    @classmethod
    def of_disabled(cls, disabled: Disabled) -> Self:
        shown = cls.of(disabled.schedule)
        shown.canceled_runs = disabled.canceled
        return shown


class PreviewIn(_Body):
    """A timing to preview."""

    cron: _Cron = None
    interval: _Interval = None
    timezone: _Timezone = "UTC"
    after: Annotated[
        Instant | None, Field(description="The start of the preview; now by default.", examples=[None])
    ] = None
    count: Annotated[int, Field(ge=1, le=MAX_TIMES)] = 5

    def rhythm(self) -> Rhythm:
        return Rhythm(self.cron, self.interval, self.timezone)


class TimesOut(BaseModel):
    """Due times, in order."""

    times: list[datetime] = Field(examples=[[_AT]])


class ScheduleStatisticsOut(BaseModel):
    """Statistics of a schedule. Counts are those of ended runs; a run that succeeds at its second attempt is one
    success and two attempts."""

    schedule_id: str = Field(examples=[SCHEDULE_ID])
    total_executions: int
    succeeded_executions: int
    failed_executions: int
    consecutive_failures: int
    total_attempts: int
    skipped_runs: int
    success_rate: float | None = Field(description="Of ended runs; null before the first.")
    last_executed_at: datetime | None
    last_failure_error: str | None
    pending: int = Field(description="Waiting runs.")
    running: int = Field(description="Running runs.")
    average_ms: float | None = Field(description="The average duration of the last runs.")
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
    """A run without its result and stack. Each attempt is a run of its own."""

    id: str = Field(examples=[EXECUTION_ID])
    schedule_id: str = Field(examples=[SCHEDULE_ID])
    schedule_name: str = Field(examples=["Nightly report"])
    type: str = Field(examples=["report.build"])
    status: AsShown[ExecutionState]
    trigger_type: Trigger
    trigger_by: str | None = Field(description="The user who ran it by hand.")
    scheduled_at: datetime = Field(description="When it was due.", examples=[_AT])
    started_at: datetime | None
    deadline_at: datetime | None = Field(description="When it receives a stop request; later after an extension.")
    finished_at: datetime | None
    duration_ms: int
    progress: int = Field(description="0 to 100.")
    retry_count: int = Field(description="The number of the retry: 0 for the first attempt.")
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

    result: str | None = Field(description="JSON, truncated at 64 KB with a mark at the end.")
    error_stack: str | None = Field(description="The stack trace, truncated to the innermost frames.")


class RunWhyOut(BaseModel):
    """Why a run is not running, the most important reason first."""

    execution_id: str = Field(examples=[EXECUTION_ID])
    status: AsShown[ExecutionState]
    reasons: list[ReasonOut]

    @classmethod
    def of(cls, explained: RunExplanation) -> Self:
        reasons = [ReasonOut(code=each.code, text=each.text, facts=each.facts) for each in explained.reasons]
        return cls(execution_id=explained.execution.execution_uid, status=explained.execution.state, reasons=reasons)
