"""What operators see at a glance."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headrace.admin.doctor import Finding
from headrace.tasks.queues import Queue


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting as people may see it: a secret's value is dots."""

    name: str
    group: str
    value: str | None
    chosen: bool
    secret: bool
    description: str


@dataclass(frozen=True, slots=True)
class WorkerCounts:
    """Numbers of workers. ``silent`` ones have sent no heartbeat for longer than their lease."""

    alive: int
    silent: int
    stopping: int
    slots: int
    running: int


@dataclass(frozen=True, slots=True)
class Overview:
    """Queues, workers and findings at one moment. The findings may be some seconds older."""

    now: datetime
    queues: Sequence[Queue]
    workers: WorkerCounts
    findings: Sequence[Finding]
    findings_at: datetime
