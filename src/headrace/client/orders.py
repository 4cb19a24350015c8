"""Tasks and schedules to create."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any

from headrace.client.verbs import given


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
