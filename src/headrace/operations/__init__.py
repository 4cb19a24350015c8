"""What keeps a deployment healthy over the years. Other packages import only what is named here."""

from typing import TYPE_CHECKING

from headrace import lazily

if TYPE_CHECKING:
    from headrace.operations.ahead import Made, keep_ahead, make_months_ahead
    from headrace.operations.config import LockConfig, RetentionConfig, StorageConfig
    from headrace.operations.figures import HealthFigures
    from headrace.operations.heads import heads_in
    from headrace.operations.health import Health, look
    from headrace.operations.housekeeping import Swept, sweep
    from headrace.operations.model import MONTHLY, Archive, ArchiveState, MonthKept, Partition, Retention, Retired
    from headrace.operations.retention import THIN, due_months, retain, retire_expired, thin
    from headrace.operations.retiring import retire_month
    from headrace.operations.storage import Storage
    from headrace.operations.upkeep import Upkeep, ensure_schedules, with_upkeep

__all__ = [
    "MONTHLY",
    "THIN",
    "Archive",
    "ArchiveState",
    "Health",
    "HealthFigures",
    "LockConfig",
    "Made",
    "MonthKept",
    "Partition",
    "Retention",
    "RetentionConfig",
    "Retired",
    "Storage",
    "StorageConfig",
    "Swept",
    "Upkeep",
    "due_months",
    "ensure_schedules",
    "heads_in",
    "keep_ahead",
    "look",
    "make_months_ahead",
    "retain",
    "retire_expired",
    "retire_month",
    "sweep",
    "thin",
    "with_upkeep",
]

__getattr__ = lazily.names_of(
    __name__,
    {
        "ahead": "Made keep_ahead make_months_ahead",
        "config": "LockConfig RetentionConfig StorageConfig",
        "figures": "HealthFigures",
        "heads": "heads_in",
        "health": "Health look",
        "housekeeping": "Swept sweep",
        "model": "MONTHLY Archive ArchiveState MonthKept Partition Retention Retired",
        "retention": "THIN due_months retain retire_expired thin",
        "retiring": "retire_month",
        "storage": "Storage",
        "upkeep": "Upkeep ensure_schedules with_upkeep",
    },
)
