"""The server's answers as frozen dataclasses. Unknown fields of newer servers are ignored."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Self

from headrace.client.verbs import given

_OVER = frozenset({"SUCCEEDED", "FAILED", "CANCELED"})


@dataclass(frozen=True, slots=True)
class Answer:
    """Base class of answers."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{each.name: _value(each.name, data[each.name]) for each in fields(cls) if each.name in data})


def _value(name: str, raw: Any) -> Any:
    if isinstance(raw, str) and (name.endswith("_at") or name in ("since", "next_run", "period_start", "period_end")):
        return datetime.fromisoformat(raw)
    return raw


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to submit. Omitted options are those of the type."""

    type: str
    payload: Any = None
    title: str | None = None
    queue: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    limit_key: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The request body, with only the given fields."""
        if self.run_at is not None and self.run_at.tzinfo is None:
            raise ValueError("run_at needs a time zone")
        given = {
            **{each.name: getattr(self, each.name) for each in fields(self) if each.name != "timeout"},
            "labels": dict(self.labels) or None,
            "run_at": self.run_at and self.run_at.isoformat(),
            "timeout_seconds": None if self.timeout is None else max(1, round(self.timeout.total_seconds())),
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Task(Answer):
    """A task at the time of the answer. Lists omit payload and result."""

    id: str
    type: str
    status: str
    user_id: str
    title: str
    queue: str
    priority: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    limit_key: str | None = None
    current_step: str | None = None
    progress: int = 0
    eta_seconds: int | None = None
    attempt: int = 0
    retries: int = 0
    max_attempts: int = 1
    timeout_seconds: int | None = None
    error_code: str | None = None
    error_message: str | None = None
    worker_id: str | None = None
    schedule_id: str | None = None
    trace_id: str | None = None
    run_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    version: int = 0
    payload: Any = None
    result: Any = None

    @property
    def is_over(self) -> bool:
        """Whether it succeeded, failed or was canceled."""
        return self.status in _OVER

    @property
    def succeeded(self) -> bool:
        """Whether it succeeded."""
        return self.status == "SUCCEEDED"


@dataclass(frozen=True, slots=True)
class LogLine(Answer):
    """The end of an attempt, or a log line of a handler (``status`` LOG)."""

    id: int
    attempt: int
    status: str
    created_at: datetime
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Step(Answer):
    """One step of one attempt."""

    name: str
    status: str
    attempt: int
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_ms: int | None = None
    detail: Any = None


@dataclass(frozen=True, slots=True)
class Reason(Answer):
    """One reason that prevents a run: a sentence for people, a code and facts for programs."""

    code: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Why:
    """Why a task is not running, the most important reason first."""

    task_id: str
    status: str
    reasons: tuple[Reason, ...]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        return cls(data["task_id"], data["status"], tuple(map(Reason.of, data["reasons"])))


@dataclass(frozen=True, slots=True)
class QueueRules(Answer):
    """The settings of a queue."""

    name: str
    paused_at: datetime | None = None
    max_running: int | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class Queue(QueueRules):
    """A queue and its counts; unless ``exact``, they are lower bounds."""

    waiting: int = 0
    delayed: int = 0
    running: int = 0
    exact: bool = True
    oldest_waiting_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Held(Answer):
    """A task that a worker runs."""

    task_id: str
    type: str
    queue: str
    attempt: int
    since: datetime


@dataclass(frozen=True, slots=True)
class EventType(Answer):
    """A type of event in one version; ``data_schema`` is the JSON Schema of its data."""

    name: str
    version: int
    aggregate: str
    description: str = ""
    data_schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskType(Answer):
    """A registered task type. ``payload_schema`` is a JSON Schema; None accepts any payload."""

    name: str
    description: str
    queue: str
    priority: int
    max_attempts: int
    emits_events: bool
    submit: str
    workers: int
    updated_at: datetime
    timeout_seconds: int | None = None
    max_running: int | None = None
    max_running_per_key: int | None = None
    limit_key: str | None = None
    limited_by_plan: bool = False
    units: str | None = None
    retention: Mapping[str, float | None] | None = None
    payload_schema: Any = None


@dataclass(frozen=True, slots=True)
class Worker(Answer):
    """A worker process that has not ended."""

    id: str
    host: str
    pid: int
    alive: bool
    types: tuple[str, ...] = ()
    queues: tuple[str, ...] | None = None  # None: all of them
    labels: Mapping[str, str] = field(default_factory=dict)
    concurrency: int = 0
    slots: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    running: int = 0
    finished: int = 0
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    stopping_at: datetime | None = None
    silent_seconds: float = 0.0
    lease_seconds: float = 0.0
    holds: tuple[Held, ...] = ()

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        several: dict[str, Any] = {
            "types": tuple(data.get("types", ())),
            "queues": None if data.get("queues") is None else tuple(data["queues"]),
            "holds": tuple(map(Held.of, data.get("holds", ()))),
        }
        return super(Worker, cls).of({**data, **several})


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """A schedule to create: either ``cron`` or ``interval`` (seconds), or neither for a single run at ``run_at``.
    Omitted fields have the server's defaults."""

    name: str
    type: str
    data: Any = None
    cron: str | None = None
    interval: int | None = None
    run_at: datetime | None = None
    timezone: str | None = None
    description: str | None = None
    misfire_policy: str | None = None
    enabled: bool | None = None
    max_duration_seconds: int | None = None
    timeout_grace_period: int | None = None
    max_extension_seconds: int | None = None
    max_retries: int | None = None
    max_concurrent: int | None = None
    overlap_policy: str | None = None
    max_waiting: int | None = None
    priority: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The request body, with only the given fields."""
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        return given(named | {"labels": dict(self.labels) or None})


@dataclass(frozen=True, slots=True)
class Schedule(Answer):
    """A schedule and its counts at the time of the answer."""

    id: str
    user_id: str
    name: str
    type: str
    enabled: bool
    timezone: str
    cron: str | None = None
    interval: int | None = None
    is_recurring: bool = True
    next_run: datetime | None = None
    description: str | None = None
    misfire_policy: str = "latest"
    max_duration_seconds: int = 0
    timeout_grace_period: int = 0
    max_extension_seconds: int = 0
    max_retries: int = 0
    max_concurrent: int = 1
    overlap_policy: str = "queue_all"
    max_waiting: int | None = None
    priority: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    data: Any = None
    total_executions: int = 0
    succeeded_executions: int = 0
    failed_executions: int = 0
    consecutive_failures: int = 0
    total_attempts: int = 0
    skipped_runs: int = 0
    last_executed_at: datetime | None = None
    last_failure_error: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    version: int = 0
    warnings: tuple[Reason, ...] = ()  # why its runs would wait; omitted in lists
    canceled_runs: int = 0  # canceled by disabling it with cancel_pending

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        return super(Schedule, cls).of({**data, "warnings": tuple(map(Reason.of, data.get("warnings", ())))})


@dataclass(frozen=True, slots=True)
class Statistics(Answer):
    """Statistics of a schedule and durations of its last runs."""

    schedule_id: str
    total_executions: int
    succeeded_executions: int
    failed_executions: int
    consecutive_failures: int
    skipped_runs: int
    total_attempts: int = 0
    success_rate: float | None = None
    last_executed_at: datetime | None = None
    last_failure_error: str | None = None
    pending: int = 0
    running: int = 0
    average_ms: float | None = None
    p95_ms: float | None = None
    longest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Execution(Answer):
    """A run of a schedule; each attempt is a run. Lists omit result and stack."""

    id: str
    schedule_id: str
    schedule_name: str
    type: str
    status: str
    trigger_type: str
    scheduled_at: datetime
    trigger_by: str | None = None
    started_at: datetime | None = None
    deadline_at: datetime | None = None
    finished_at: datetime | None = None
    duration_ms: int = 0
    progress: int = 0
    retry_count: int = 0
    run_by: str | None = None
    task_id: str | None = None
    result: str | None = None
    error_message: str | None = None
    error_stack: str | None = None
    created_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status not in ("PENDING", "RUNNING")


@dataclass(frozen=True, slots=True)
class RunWhy:
    """Why a run is not running, the most important reason first."""

    execution_id: str
    status: str
    reasons: tuple[Reason, ...]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        return cls(data["execution_id"], data["status"], tuple(map(Reason.of, data["reasons"])))


@dataclass(frozen=True, slots=True)
class Lock(Answer):
    """One holding of a lock. Only its holder has the ``token``."""

    key: str
    user_id: str
    fence: int
    holder: str
    status: str
    acquired_at: datetime
    expires_at: datetime
    purpose: str | None = None
    released_at: datetime | None = None
    remaining_seconds: float = 0.0
    ttl_seconds: float = 30.0  # the last TTL requested by this client
    token: str | None = field(default=None, repr=False)
