"""Types of notifications, and their languages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Self

from headrace.configs.registry import ConfigKey

CONSUMER = "notifications"
Language = Literal["en", "zh"]

# Configs resolve it: a user's own value overrides the GLOBAL one.
LANGUAGE: ConfigKey[Language] = ConfigKey(
    "language", Language, "en", "The language of notifications: en or zh.", public=True
)


class NotificationType(StrEnum):
    TASK_SUCCEEDED = "TASK_SUCCEEDED"
    TASK_FAILED = "TASK_FAILED"
    SUBSCRIPTION_ACTIVATED = "SUBSCRIPTION_ACTIVATED"
    SUBSCRIPTION_EXPIRING = "SUBSCRIPTION_EXPIRING"
    QUOTA_REACHED = "QUOTA_REACHED"
    ACCOUNT_DELETE_COMPLETED = "ACCOUNT_DELETE_COMPLETED"  # written by the account's deletion itself


@dataclass(frozen=True, slots=True)
class Notification:
    id: int
    user_id: str
    type: NotificationType
    title: str
    body: str
    payload: Mapping[str, Any] | None
    event_id: str | None
    is_read: bool
    read_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewNotification:
    """The content of a notification, before its text is written."""

    user_id: str
    type: NotificationType
    event_id: str
    payload: Mapping[str, Any]

    @property
    def task_id(self) -> str:
        """Empty if it is about no task."""
        return str(self.payload.get("task_id", ""))

    def with_title(self, title: str | None) -> Self:
        """A copy with the task's title, if it has one."""
        return replace(self, payload={**self.payload, "title": title}) if title else self
