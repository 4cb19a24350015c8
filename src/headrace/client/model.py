"""What the server answers with, as frozen values. Fields that a newer server adds are passed over."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Self

_OVER = frozenset({"SUCCEEDED", "FAILED", "CANCELED"})


@dataclass(frozen=True, slots=True)
class _Answer:
    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{each.name: _value(each.name, data[each.name]) for each in fields(cls) if each.name in data})


def _value(name: str, raw: Any) -> Any:
    if isinstance(raw, str) and (name.endswith("_at") or name == "since"):
        return datetime.fromisoformat(raw)
    return raw


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to submit. What is left out is as the type says."""

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
        """As the API takes it: only what was given."""
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
class Task(_Answer):
    """A task as it was when the server answered. Lists leave payload and result out."""

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
    schedule_uid: str | None = None
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
        return self.status in _OVER

    @property
    def succeeded(self) -> bool:
        return self.status == "SUCCEEDED"


@dataclass(frozen=True, slots=True)
class LogLine(_Answer):
    """How an attempt ended, or a line that a handler wrote (``status`` LOG)."""

    id: int
    attempt: int
    status: str
    created_at: datetime
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Step(_Answer):
    """One step of one attempt."""

    name: str
    status: str
    attempt: int
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_ms: int | None = None
    detail: Any = None


@dataclass(frozen=True, slots=True)
class Reason(_Answer):
    code: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Why:
    """Why a task is not running; the first reason is the one to look at first."""

    task_id: str
    status: str
    reasons: tuple[Reason, ...]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        return cls(data["task_id"], data["status"], tuple(map(Reason.of, data["reasons"])))


@dataclass(frozen=True, slots=True)
class QueueRules(_Answer):
    """What was said about a queue."""

    name: str
    paused_at: datetime | None = None
    max_running: int | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class Queue(QueueRules):
    """A queue and what is in it; unless ``exact``, at least so many."""

    waiting: int = 0
    delayed: int = 0
    running: int = 0
    exact: bool = True
    oldest_waiting_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Held(_Answer):
    """A task in a worker's hands."""

    task_id: str
    task_type: str
    queue: str
    attempt: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Worker(_Answer):
    """A worker process that has not ended."""

    id: str
    host: str
    pid: int
    alive: bool
    types: tuple[str, ...] = ()
    queues: tuple[str, ...] | None = None  # None: all of them
    labels: Mapping[str, str] = field(default_factory=dict)
    concurrency: int = 0
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
