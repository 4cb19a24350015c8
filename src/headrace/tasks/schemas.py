"""Tasks as the API shows them."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from headrace.edge.instants import Instant
from headrace.edge.text import Line, Text
from headrace.edge.vocabulary import AsShown
from headrace.tasks.limit_keys import LONGEST_KEY
from headrace.tasks.model import LABEL, MAX_TIMEOUT, Outcome, StepStatus, Task, TaskSpec, TaskStatus
from headrace.tasks.store.tasks import LogLine, StepLine

TASK_ID = "tsk_01h455vb4pex5vsknk084sn02q"
_USER_ID = "u_01h455vb4pex5vsknk084sn02q"
WORKER_ID = "wrk_01h455vb4pex5vsknk084sn02q"
AT = "2026-03-01T08:00:00Z"
_YEAR_S = int(MAX_TIMEOUT.total_seconds())
MAX_BATCH_SIZE = 1000
_MAX_KEY = LONGEST_KEY - len(f"{_USER_ID}/")


_LABEL = StringConstraints(min_length=1, max_length=63, pattern=f"^{LABEL}$")
Labels = Annotated[
    dict[Annotated[str, _LABEL], Annotated[str, _LABEL]], Field(max_length=8, examples=[{"gpu": "a100"}])
]
QueueName = Annotated[Line, Field(min_length=1, max_length=64, examples=["default"])]


class Answer(BaseModel):
    """Base of answers. Built at first use: a command that reads one kind need not build all of them."""

    model_config = ConfigDict(defer_build=True)


class Body(BaseModel):
    """Base of request bodies."""

    model_config = ConfigDict(extra="forbid")


class TaskIn(Body):
    """A task to submit. The type's defaults apply to omitted fields."""

    type: Annotated[Line, Field(min_length=1, max_length=255, examples=["report.build"])]
    payload: Annotated[
        Any, Field(description="What the handler is given: any JSON that fits the type.", examples=[{"pages": 3}])
    ] = None
    title: Annotated[Line, Field(min_length=1, max_length=255, examples=["Report for March"])] | None = None
    queue: QueueName | None = None
    priority: Annotated[
        int | None, Field(ge=-1_000_000, le=1_000_000, description="Higher is taken first.", examples=[0])
    ] = None
    run_at: Annotated[Instant | None, Field(description="Not before this time.", examples=[AT])] = None
    max_attempts: Annotated[int | None, Field(ge=1, le=1000)] = None
    timeout_seconds: Annotated[int | None, Field(ge=1, le=_YEAR_S, description="How long one attempt may take.")] = None
    limit_key: Annotated[
        Annotated[Line, Field(min_length=1, max_length=_MAX_KEY)] | None,
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
    """A task to submit. The type's defaults apply to omitted fields."""

    user_id: Annotated[
        Annotated[Text, Field(max_length=64)] | None,
        Field(description="Whose it is, and whose quota pays for it, for administrators; your own by default."),
    ] = None


class BatchIn(Body):
    tasks: Annotated[list[TaskIn], Field(min_length=1, max_length=MAX_BATCH_SIZE)]


class TaskItemOut(Answer):
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
    worker_id: str | None = Field(description="Who runs it, or ran it last.", examples=[WORKER_ID])
    schedule_id: str | None = Field(description="The schedule that fired it.")
    trace_id: str | None
    run_at: datetime = Field(description="Not before this time.", examples=[AT])
    cancel_requested_at: datetime | None = Field(description="When its cancellation was requested.")
    queued_at: datetime | None
    started_at: datetime | None = Field(description="When the attempt started.")
    finished_at: datetime | None
    created_at: datetime = Field(examples=[AT])
    updated_at: datetime = Field(examples=[AT])
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
        return cls.model_validate(cls.fields_of(task))

    @classmethod
    def fields_of(cls, task: Task) -> dict[str, Any]:
        """What ``of`` shows, for an encoder of JSON: what comes from the database need not be validated again."""
        return {**_shown(task), "payload": task.payload, "result": task.result}


def _shown(task: Task) -> dict[str, Any]:
    # One name for a thing over the whole API; the table keeps the documents' names.
    renamed = {
        "type": task.task_type,
        "eta_seconds": task.eta_sec,
        "labels": task.labels or {},
        "schedule_id": task.schedule_uid,
    }
    return {name: renamed.get(name, getattr(task, name, None)) for name in TaskItemOut.model_fields}


class BatchOut(Answer):
    """The ids of the tasks, in the order in which they were sent."""

    ids: list[str] = Field(examples=[[TASK_ID]])


class LogOut(Answer):
    """How an attempt ended, or a line that a handler wrote."""

    id: int
    attempt: int = Field(description="0 for what happened outside any attempt.")
    status: Outcome = Field(
        description="`LOG` for a handler's line, otherwise how the attempt ended.", examples=["LOG"]
    )
    message: str | None
    created_at: datetime = Field(examples=[AT])

    @classmethod
    def of(cls, line: LogLine) -> Self:
        return cls.model_validate(line, from_attributes=True)


class StepOut(Answer):
    """One step of one attempt."""

    name: str = Field(examples=["render"])
    status: AsShown[StepStatus] = Field(description="`SKIPPED`: done before.", examples=["SUCCEEDED"])
    attempt: int
    started_at: datetime | None = Field(examples=[AT])
    ended_at: datetime | None = Field(examples=[AT])
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
