"""Tasks, queues, workers and types as the API shows them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from headrace.edge.text import Text
from headrace.edge.vocabulary import AsShown
from headrace.tasks.limit_keys import LONGEST_KEY
from headrace.tasks.model import LABEL, LONGEST_TIMEOUT, Outcome, StepStatus, Task, TaskSpec, TaskStatus
from headrace.tasks.queues import Queue
from headrace.tasks.store.queues import QueueRules
from headrace.tasks.store.tasks import LogLine, StepLine
from headrace.tasks.store.workers import Held, SeenType, SeenWorker
from headrace.tasks.why import Code, Explanation

TASK_ID = "tsk_01h455vb4pex5vsknk084sn02q"
_USER_ID = "u_01h455vb4pex5vsknk084sn02q"
_WORKER_ID = "wrk_01h455vb4pex5vsknk084sn02q"
_AT = "2026-03-01T08:00:00Z"
_YEAR_S = int(LONGEST_TIMEOUT.total_seconds())
MOST_IN_A_BATCH = 1000
_LONGEST_KEY = LONGEST_KEY - len(f"{_USER_ID}/")


def _in_utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("this is before the first or after the last year that can be stored") from None


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]
_LABEL = StringConstraints(min_length=1, max_length=63, pattern=f"^{LABEL}$")
Labels = Annotated[
    dict[Annotated[str, _LABEL], Annotated[str, _LABEL]], Field(max_length=8, examples=[{"gpu": "a100"}])
]
QueueName = Annotated[Text, Field(min_length=1, max_length=64, examples=["default"])]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TaskIn(_Body):
    """A task to submit. What is left out is as the type says."""

    type: Annotated[Text, Field(min_length=1, max_length=255, examples=["report.build"])]
    payload: Annotated[
        Any, Field(description="What the handler is given: any JSON that fits the type.", examples=[{"pages": 3}])
    ] = None
    title: Annotated[Text, Field(min_length=1, max_length=255, examples=["Report for March"])] | None = None
    queue: QueueName | None = None
    priority: Annotated[
        int | None, Field(ge=-1_000_000, le=1_000_000, description="Higher is taken first.", examples=[0])
    ] = None
    run_at: Annotated[Instant | None, Field(description="Not before this time.", examples=[_AT])] = None
    max_attempts: Annotated[int | None, Field(ge=1, le=1000)] = None
    timeout_seconds: Annotated[int | None, Field(ge=1, le=_YEAR_S, description="How long one attempt may take.")] = None
    limit_key: Annotated[
        Annotated[Text, Field(min_length=1, max_length=_LONGEST_KEY)] | None,
        Field(
            description="Tasks of the type with the same key share its limit per key. It counts among your own tasks,"
            " and is stored as `{user id}/{key}`; an administrator's is stored as it is, and counts among everybody's."
            " Refused for a type that has a `limit_key` of its own."
        ),
    ] = None
    labels: Annotated[Labels, Field(description="Only a worker that has all of these takes it.")] = {}

    def spec(self, *, idempotency_key: str | None = None) -> TaskSpec:
        seconds = self.timeout_seconds
        return TaskSpec(
            type=self.type,
            payload=self.payload,
            title=self.title,
            queue=self.queue,
            priority=self.priority,
            run_at=self.run_at,
            max_attempts=self.max_attempts,
            timeout=None if seconds is None else timedelta(seconds=seconds),
            limit_key=self.limit_key,
            labels=self.labels,
            idempotency_key=idempotency_key,
        )


class SubmitIn(TaskIn):
    """A task to submit. What is left out is as the type says."""

    user_id: Annotated[
        Annotated[Text, Field(max_length=64)] | None,
        Field(description="Whose it is, and whose quota pays for it, for administrators; your own by default."),
    ] = None


class BatchIn(_Body):
    tasks: Annotated[list[TaskIn], Field(min_length=1, max_length=MOST_IN_A_BATCH)]


class TaskItemOut(BaseModel):
    """A task, without its payload and its result."""

    id: str = Field(examples=[TASK_ID])
    user_id: str = Field(examples=[_USER_ID])
    type: str = Field(examples=["report.build"])
    title: str = Field(examples=["Report for March"])
    status: TaskStatus
    queue: str = Field(examples=["default"])
    priority: int
    labels: dict[str, Any]
    limit_key: str | None
    current_step: str | None = Field(description="The step that runs, or ran last.")
    progress: int = Field(description="0 to 100.", examples=[40])
    eta_seconds: int | None = Field(description="How long the handler thinks it will still take.")
    attempt: int = Field(description="The attempt that runs or ran last; 0 before the first.")
    retries: int = Field(description="Failed attempts that were followed by another.")
    max_attempts: int
    timeout_seconds: int | None
    error_code: str | None = Field(description="Of the last attempt that failed.")
    error_message: str | None
    worker_id: str | None = Field(description="Who runs it, or ran it last.", examples=[_WORKER_ID])
    schedule_id: str | None = Field(description="The schedule that fired it.")
    trace_id: str | None
    run_at: datetime = Field(description="Not before this time.", examples=[_AT])
    cancel_requested_at: datetime | None = Field(description="When somebody wanted it to stop.")
    queued_at: datetime | None
    started_at: datetime | None = Field(description="When the attempt started.")
    finished_at: datetime | None
    created_at: datetime = Field(examples=[_AT])
    updated_at: datetime = Field(examples=[_AT])
    version: int = Field(description="The `ETag`: send it as `If-Match` to change only what you have seen.")

    @classmethod
    def of(cls, task: Task) -> Self:
        return cls.model_validate(_shown(task))


class TaskOut(TaskItemOut):
    """A task."""

    payload: Any = Field(examples=[{"pages": 3}])
    result: Any = Field(description="What the handler gave back; null until it has succeeded.", examples=[None])

    @classmethod
    def of(cls, task: Task) -> Self:
        return cls.model_validate({**_shown(task), "payload": task.payload, "result": task.result})


def _shown(task: Task) -> dict[str, Any]:
    # One name for a thing over the whole API; the table keeps the documents' names.
    renamed = {
        "type": task.task_type,
        "eta_seconds": task.eta_sec,
        "labels": task.labels or {},
        "schedule_id": task.schedule_uid,
    }
    return {name: renamed.get(name, getattr(task, name, None)) for name in TaskItemOut.model_fields}


class BatchOut(BaseModel):
    """The ids of the tasks, in the order in which they were sent."""

    ids: list[str] = Field(examples=[[TASK_ID]])


class LogOut(BaseModel):
    """How an attempt ended, or a line that a handler wrote."""

    id: int
    attempt: int = Field(description="0 for what happened outside any attempt.")
    status: Outcome = Field(
        description="`LOG` for a handler's line, otherwise how the attempt ended.", examples=["LOG"]
    )
    message: str | None
    created_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, line: LogLine) -> Self:
        return cls.model_validate(line, from_attributes=True)


class StepOut(BaseModel):
    """One step of one attempt."""

    name: str = Field(examples=["render"])
    status: AsShown[StepStatus] = Field(description="`SKIPPED`: done before.", examples=["SUCCEEDED"])
    attempt: int
    started_at: datetime | None = Field(examples=[_AT])
    ended_at: datetime | None = Field(examples=[_AT])
    duration_ms: int | None
    detail: Any = Field(description="What the step noted.")

    @classmethod
    def of(cls, step: StepLine) -> Self:
        return cls(
            name=step.step_name,
            status=StepStatus(step.status),
            attempt=step.attempt,
            started_at=step.started_at,
            ended_at=step.ended_at,
            duration_ms=step.duration_ms,
            detail=step.detail,
        )


class ReasonOut(BaseModel):
    code: Code
    text: str = Field(description="For people.", examples=["No worker is alive."])
    facts: dict[str, Any] = Field(description="For programs, by `code`.")


class WhyOut(BaseModel):
    """Why a task is not running. The first reason is the one to look at first."""

    task_id: str = Field(examples=[TASK_ID])
    status: TaskStatus
    reasons: list[ReasonOut]

    @classmethod
    def of(cls, explained: Explanation) -> Self:
        reasons = [ReasonOut(code=each.code, text=each.text, facts=each.facts) for each in explained.reasons]
        return cls(task_id=explained.task.id, status=explained.task.status, reasons=reasons)


class QueueRulesOut(BaseModel):
    """What was said about a queue."""

    name: str = Field(examples=["default"])
    paused_at: datetime | None = Field(description="Since when nothing is started from it; null when it runs.")
    max_running: int | None = Field(description="How many of its tasks may run at once; null for any number.")
    version: int = Field(description="The `ETag`; 0 for a queue about which nothing was said yet.")

    @classmethod
    def of(cls, rules: QueueRules) -> Self:
        return cls.model_validate(rules, from_attributes=True)


class QueueOut(QueueRulesOut):
    """A queue and what is in it."""

    waiting: int = Field(description="Tasks that could start now.")
    delayed: int = Field(description="Tasks whose time has not come.")
    running: int = Field(description="Tasks in the hands of workers.")
    exact: bool = Field(description="False when counting stopped at a bound: there are at least as many.")
    oldest_waiting_seconds: float | None = Field(description="How long the first of those waiting could have started.")

    @classmethod
    def counted(cls, queue: Queue) -> Self:
        contents = queue.contents
        return cls(
            **QueueRulesOut.of(queue.rules).model_dump(),
            waiting=contents.waiting,
            delayed=contents.delayed,
            running=contents.running,
            exact=contents.exact,
            oldest_waiting_seconds=contents.oldest_waiting_seconds,
        )


class LimitIn(_Body):
    max_running: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="How many may run at once; null for any number.")
    ]


class HeldOut(BaseModel):
    task_id: str = Field(examples=[TASK_ID])
    type: str = Field(examples=["report.build"])
    queue: str
    attempt: int
    since: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, held: Held) -> Self:
        return cls(task_id=held.task_id, type=held.task_type, queue=held.queue, attempt=held.attempt, since=held.since)


class WorkerOut(BaseModel):
    """A worker process that has not ended."""

    id: str = Field(examples=[_WORKER_ID])
    host: str
    pid: int
    alive: bool = Field(description="False when it has been silent for longer than its lease: it is being given up.")
    queues: list[str] | None = Field(description="Null for all queues.")
    types: list[str]
    labels: dict[str, str]
    concurrency: int
    running: int = Field(description="As it said with its last heartbeat.")
    finished: int
    started_at: datetime = Field(examples=[_AT])
    heartbeat_at: datetime = Field(examples=[_AT])
    silent_seconds: float
    lease_seconds: float
    stopping_at: datetime | None = Field(description="When it was told to stop: it takes nothing more.")
    holds: list[HeldOut] = Field(description="What it has in hand, the oldest first; some of it if there is much.")

    @classmethod
    def of(cls, worker: SeenWorker) -> Self:
        derived: Mapping[str, Any] = {
            "silent_seconds": worker.silent_for.total_seconds(),
            "lease_seconds": worker.lease.total_seconds(),
            "holds": [HeldOut.of(held) for held in worker.holds],
        }
        return cls.model_validate(
            {name: derived[name] if name in derived else getattr(worker, name) for name in cls.model_fields}
        )


class TaskTypeOut(BaseModel):
    """A kind of task that a worker has registered at some time."""

    name: str = Field(examples=["report.build"])
    description: str
    queue: str
    priority: int
    max_attempts: int
    timeout_seconds: int | None
    emits_events: bool
    max_running: int | None
    max_running_per_key: int | None = Field(description="How many tasks with the same limit key may run at once.")
    limit_key: str | None = Field(
        description="What the limit key of a task is: `user`, or a field of the payload; null: what is given with it.",
        examples=["payload.customer.id"],
    )
    limited_by_plan: bool = Field(
        description="Whether the plan of a task's user says how many run at once, of all such types together."
    )
    units: str | None = Field(
        description="What a task costs: a whole number, or a field of the payload; null: nothing.",
        examples=["payload.pages"],
    )
    submit: str = Field(
        description="Who may submit it: `admins`, `users`, or a scope; people may, and API keys that were given it.",
        examples=["users"],
    )
    retention: dict[str, float | None] | None = Field(
        description="How many seconds a task is kept after it has ended so, null for ever; what is not named is as the"
        " settings say.",
        examples=[{"SUCCEEDED": 86400.0}],
    )
    payload_schema: Any = Field(description="JSON Schema of the payload; null takes anything.")
    workers: int = Field(description="How many workers that are alive have it.")
    updated_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, task_type: SeenType) -> Self:
        return cls.model_validate(task_type, from_attributes=True)
