"""Queues, workers and types as the API shows them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field

from headrace.tasks.queues import Queue
from headrace.tasks.schemas import AT, TASK_ID, WORKER_ID, Answer, Body
from headrace.tasks.store.queues import QueueRules
from headrace.tasks.store.workers import Held, SeenType, SeenWorker


class QueueRulesOut(Answer):
    """The settings of a queue."""

    name: str = Field(examples=["default"])
    paused_at: datetime | None = Field(description="Since when nothing is started from it; null when it runs.")
    max_running: int | None = Field(description="How many of its tasks may run at once; null for any number.")
    version: int = Field(description="The `ETag`; 0 for a queue without settings.")

    @classmethod
    def of(cls, rules: QueueRules) -> Self:
        return cls.model_validate(rules, from_attributes=True)


class QueueOut(QueueRulesOut):
    """A queue and its contents."""

    waiting: int = Field(description="Tasks that could start now.")
    delayed: int = Field(description="Tasks whose time has not come.")
    running: int = Field(description="Tasks that workers run.")
    exact: bool = Field(description="False when counting stopped at a bound: the counts are lower bounds.")
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


class LimitIn(Body):
    max_running: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="How many may run at once; null for any number.")
    ]


class HeldOut(Answer):
    task_id: str = Field(examples=[TASK_ID])
    type: str = Field(examples=["report.build"])
    queue: str
    attempt: int
    since: datetime = Field(examples=[AT])

    @classmethod
    def of(cls, held: Held) -> Self:
        return cls(task_id=held.task_id, type=held.task_type, queue=held.queue, attempt=held.attempt, since=held.since)


class SlotsOut(Answer):
    """Slots of a worker for one kind of isolation."""

    model_config = ConfigDict(extra="ignore")  # their types are the worker's

    slots: int
    running: int = Field(description="As of its last heartbeat.")


class WorkerOut(Answer):
    """A worker process that has not ended."""

    id: str = Field(examples=[WORKER_ID])
    host: str
    pid: int
    alive: bool = Field(description="False when it has been silent for longer than its lease: it is being given up.")
    queues: list[str] | None = Field(description="Null for all queues.")
    types: list[str]
    labels: dict[str, str]
    concurrency: int = Field(description="Tasks that it can run at once, in all its slots.")
    running: int = Field(description="As of its last heartbeat.")
    slots: dict[str, SlotsOut] = Field(
        description="Its slots by pool: `async` on the event loop, `thread`, `process`, `removal` for watermarks. A "
        "task is taken only when a slot of its pool is free."
    )
    finished: int
    started_at: datetime = Field(examples=[AT])
    heartbeat_at: datetime = Field(examples=[AT])
    silent_seconds: float
    lease_seconds: float
    stopping_at: datetime | None = Field(description="When it was asked to stop: it claims nothing more.")
    holds: list[HeldOut] = Field(description="The tasks it holds, the oldest first; not all of them if they are many.")

    @classmethod
    def of(cls, worker: SeenWorker) -> Self:
        derived: Mapping[str, Any] = {
            "silent_seconds": worker.silent_for.total_seconds(),
            "lease_seconds": worker.lease.total_seconds(),
            "slots": {kind: SlotsOut.model_validate(each) for kind, each in worker.slots.items()},
            "holds": [HeldOut.of(held) for held in worker.holds],
        }
        return cls.model_validate(
            {name: derived[name] if name in derived else getattr(worker, name) for name in cls.model_fields}
        )


class TaskTypeOut(Answer):
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
        description="The limit key of a task: `user`, or a field of the payload; null: the key submitted with it.",
        examples=["payload.customer.id"],
    )
    limited_by_plan: bool = Field(
        description="Whether the plan of a task's user limits how many run at once, of all such types together."
    )
    units: str | None = Field(
        description="What a task costs: a whole number, or a field of the payload; null: nothing.",
        examples=["payload.pages"],
    )
    submit: str = Field(
        description="Who may submit it: `admins`, `users`, or a scope; users may, and API keys with it.",
        examples=["users"],
    )
    retention: dict[str, float | None] | None = Field(
        description="How many seconds a task is kept after such an end, null for ever; for other ends the settings"
        " apply.",
        examples=[{"SUCCEEDED": 86400.0}],
    )
    payload_schema: Any = Field(description="JSON Schema of the payload; null takes anything.")
    workers: int = Field(description="How many workers that are alive have it.")
    updated_at: datetime = Field(examples=[AT])

    @classmethod
    def of(cls, task_type: SeenType) -> Self:
        return cls.model_validate(task_type, from_attributes=True)
