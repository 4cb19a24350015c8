"""Notifications, their types, and the languages that they are written in."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Self

from headrace.configs.registry import ConfigKey

CONSUMER = "notifications"
Language = Literal["en", "zh"]

# Of everybody by a GLOBAL value, of one user by their own: configs know both, and what holds.
LANGUAGE: ConfigKey[Language] = ConfigKey(
    "language", Language, "en", "The language in which people are told things: en or zh.", public=True
)


class NotificationType(StrEnum):
    TASK_SUCCEEDED = "TASK_SUCCEEDED"
    TASK_FAILED = "TASK_FAILED"
    SUBSCRIPTION_ACTIVATED = "SUBSCRIPTION_ACTIVATED"
    SUBSCRIPTION_EXPIRING = "SUBSCRIPTION_EXPIRING"
    ACCOUNT_DELETE_COMPLETED = "ACCOUNT_DELETE_COMPLETED"  # written with the end of the account itself


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
    """What an event means to a user, before it is put into words."""

    user_id: str
    type: NotificationType
    event_id: str
    payload: Mapping[str, Any]

    @property
    def is_of_task(self) -> bool:
        return "task_id" in self.payload

    def called(self, title: str | None) -> Self:
        """The same with the title of what it is about, where it has one."""
        return replace(self, payload={**self.payload, "title": title}) if title else self
