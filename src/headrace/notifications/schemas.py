"""Notifications as they are shown."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from headrace.notifications.model import Language, Notification, NotificationType

_AT = "2026-06-01T12:00:00Z"


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NotificationOut(BaseModel):
    """Something that a user is told."""

    id: int = Field(examples=[17])
    type: NotificationType
    title: str = Field(examples=["Your image is ready"])
    body: str
    payload: dict[str, Any] | None = Field(description="What it is about: `task_id`, `subscription_id` …")
    event_id: str | None = Field(description="The event that it tells of.")
    is_read: bool
    read_at: datetime | None
    created_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, notification: Notification) -> Self:
        return cls(**{name: getattr(notification, name) for name in cls.model_fields})


class UnreadOut(BaseModel):
    unread: int = Field(description="1000 stands for that many or more.")


class ReadAllIn(_Body):
    up_to: Annotated[
        int | None, Field(ge=0, le=2**63 - 1, description="The newest that was seen; later ones stay unread.")
    ] = None


class MarkedOut(BaseModel):
    marked: int = Field(description="How many were unread until now.")


class LanguageBody(_Body):
    language: Language
