"""A bulk action: the request and its progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from headrace.sql import Mark
from headrace.tasks.model import ENDS, TaskStatus

TYPE = "headrace.bulk"
MOST_COUNTED = 25_000  # counting ends here: the exact number of millions helps no decision
MAX_NAMED = 1000


class BulkResource(StrEnum):
    TASKS = "tasks"
    SCHEDULES = "schedules"


class TaskAction(StrEnum):
    CANCEL = "cancel"
    RETRY = "retry"
    DELETE = "delete"

    @property
    def applies_to(self) -> frozenset[TaskStatus]:
        """Tasks of other states are left alone, and not counted."""
        match self:
            case TaskAction.CANCEL:
                return frozenset(TaskStatus) - ENDS
            case TaskAction.RETRY:
                return frozenset({TaskStatus.FAILED, TaskStatus.CANCELED})
            case TaskAction.DELETE:
                return ENDS


class ScheduleAction(StrEnum):
    ENABLE = "enable"
    DISABLE = "disable"


@dataclass(frozen=True, slots=True)
class Bulk:
    """An action on many rows: a row of bulk_actions."""

    task_id: str
    user_id: str
    as_admin: bool
    scopes: Sequence[str] | None
    resource: BulkResource
    action: str
    filter: Mapping[str, Any]
    expected: int
    matched: int
    done: int
    skipped: int
    refused: int
    refusals: Sequence[Mapping[str, str]]
    position_at: datetime | None
    position_id: str | None
    request_id: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None

    @property
    def position(self) -> Mark | None:
        """Up to where it has come; the rows behind it are older."""
        return None if self.position_at is None or self.position_id is None else (self.position_at, self.position_id)

    @property
    def looked_at(self) -> int:
        return self.done + self.skipped + self.refused


@dataclass(slots=True)
class Outcome:
    """What became of some rows."""

    done: int = 0
    skipped: int = 0
    refused: int = 0
    refusals: list[dict[str, str]] | None = None

    def refuse(self, row_id: str, code: str, message: str) -> None:
        self.refused += 1
        self.refusals = [*(self.refusals or ()), {"id": row_id, "code": code, "message": message}]
