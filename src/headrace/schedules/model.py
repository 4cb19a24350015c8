"""Types of schedules and runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NewType

from headrace import ids

ScheduleUid = NewType("ScheduleUid", str)
ExecutionUid = NewType("ExecutionUid", str)


class MisfirePolicy(StrEnum):
    """The treatment of due times that were missed because no scheduler ran."""

    LATEST = "latest"  # the last one runs, the others count as skipped
    ALL = "all"  # all run, up to a cap
    NONE = "none"  # none runs


class OverlapPolicy(StrEnum):
    """The treatment of a due time while ``max_concurrent`` runs are under way."""

    QUEUE_ALL = "queue_all"  # it waits, up to max_waiting runs
    QUEUE_ONE = "queue_one"  # it waits, unless another run waits
    SKIP = "skip"  # it is skipped
    CANCEL_RUNNING = "cancel_running"  # the oldest run is stopped, and the new one replaces it


class ExecutionState(StrEnum):
    """pending → running → an end state. The database refuses every other move."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def is_over(self) -> bool:
        return self not in (ExecutionState.PENDING, ExecutionState.RUNNING)


class Trigger(StrEnum):
    SCHEDULED = "scheduled"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """The properties of a schedule: either ``cron`` or ``interval``, or neither for a single run at ``run_at``."""

    name: str
    type: str
    cron: str | None = None
    interval: int | None = None  # seconds
    run_at: datetime | None = None  # the single run, or the first of an interval
    timezone: str = "UTC"
    description: str | None = None
    misfire_policy: MisfirePolicy = MisfirePolicy.LATEST
    enabled: bool = True
    max_duration_seconds: int = 3600
    timeout_grace_period: int = 30
    max_extension_seconds: int = 0
    max_retries: int = 3
    max_concurrent: int = 1
    overlap_policy: OverlapPolicy = OverlapPolicy.QUEUE_ALL
    max_waiting: int | None = None
    priority: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    data: Any = None

    @property
    def is_recurring(self) -> bool:
        return self.cron is not None or self.interval is not None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A row of ``scheduled_tasks``."""

    uid: ScheduleUid
    user_id: str
    name: str
    type: str
    description: str | None
    is_recurring: bool
    cron_expr: str | None
    interval: int | None
    timezone: str
    next_run: datetime | None
    misfire_policy: MisfirePolicy
    enabled: bool
    max_duration_seconds: int
    max_retries: int
    timeout_grace_period: int
    max_extension_seconds: int
    max_concurrent: int
    overlap_policy: OverlapPolicy
    max_waiting: int | None
    priority: int
    labels: Mapping[str, str]
    data: Any
    total_executions: int
    success_executions: int
    failure_executions: int
    consecutive_failures: int
    retried_attempts: int
    skipped_runs: int
    last_executed_at: datetime | None
    last_failure_error: str | None
    version: int
    created_at: datetime
    updated_at: datetime

    @property
    def total_attempts(self) -> int:
        """Ended attempts: rows of ``task_executions``."""
        return self.total_executions + self.retried_attempts


@dataclass(frozen=True, slots=True)
class Execution:
    """A row of ``task_executions``: one attempt of one run."""

    id: int
    execution_uid: ExecutionUid
    task_uid: ScheduleUid
    task_name: str
    task_type: str
    task_id: str | None
    run_by: str | None
    scheduled_at: datetime
    started_at: datetime | None
    deadline_at: datetime | None
    finished_at: datetime | None
    state: ExecutionState
    result: str | None
    error_message: str | None
    error_stack: str | None
    duration_ms: int
    progress: int
    retry_count: int
    trigger_type: Trigger
    trigger_by: str | None
    created_at: datetime
    updated_at: datetime


def new_schedule_uid() -> ScheduleUid:
    return ScheduleUid(ids.new("sch"))


def new_execution_uid() -> ExecutionUid:
    return ExecutionUid(ids.new("exe"))
