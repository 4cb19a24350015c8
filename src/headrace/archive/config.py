"""Settings of retention and the archive."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal


@dataclass(frozen=True, slots=True)
class RetentionConfig:
    """How long rows stay, by table. None keeps them for ever."""

    audit_events: timedelta | None = timedelta(days=180)
    webhook_deliveries: timedelta | None = timedelta(days=180)
    usage_ledger: timedelta | None = timedelta(days=5 * 365)
    task_executions: timedelta | None = timedelta(days=90)
    task_locks: timedelta | None = timedelta(days=7)
    outbox_events: timedelta | None = timedelta(days=7)
    notifications: timedelta | None = timedelta(days=180)
    assets: timedelta | None = timedelta(days=90)
    tasks: timedelta | None = timedelta(days=90)
    tasks_failed: timedelta | Literal["as tasks"] | None = "as tasks"
    tasks_canceled: timedelta | Literal["as tasks"] | None = "as tasks"
    workers: timedelta | None = timedelta(days=7)
    archived_rows: tuple[str, ...] = ()  # tables whose rows are written to the archive before they are deleted

    def keep(self, table: str) -> timedelta | None:
        kept: timedelta | None = getattr(self, table)
        return kept

    @property
    def tasks_by_status(self) -> Mapping[str, timedelta | None]:
        """How long tasks are kept whose type does not say, by how they ended."""
        others = {"FAILED": self.tasks_failed, "CANCELED": self.tasks_canceled}
        return {"SUCCEEDED": self.tasks} | {
            status: self.tasks if kept == "as tasks" else kept for status, kept in others.items()
        }


@dataclass(frozen=True, slots=True)
class LockConfig:
    """How to ask for a busy table: ``wait`` once, ``pause`` (more or less) before the next try, ``patience`` in all."""

    wait: timedelta = timedelta(milliseconds=50)
    pause: timedelta = timedelta(milliseconds=500)
    patience: timedelta = timedelta(seconds=60)
