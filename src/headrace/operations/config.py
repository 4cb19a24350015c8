"""What retention and the archive are told about where they stand."""

from dataclasses import dataclass
from datetime import timedelta


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
    workers: timedelta | None = timedelta(days=7)
    archived_rows: tuple[str, ...] = ()  # tables whose rows are written to the archive before they are deleted

    def keep(self, table: str) -> timedelta | None:
        kept: timedelta | None = getattr(self, table)
        return kept


@dataclass(frozen=True, slots=True)
class LockConfig:
    """How to ask for a busy table: ``wait`` once, ``pause`` (more or less) before the next try, ``patience`` in all."""

    wait: timedelta = timedelta(milliseconds=50)
    pause: timedelta = timedelta(milliseconds=500)
    patience: timedelta = timedelta(seconds=60)
