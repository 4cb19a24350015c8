"""Request and response bodies of notifications."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from headrace.notifications.model import Language, Notification, NotificationType

_AT = "2026-06-01T12:00:00Z"


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NotificationOut(BaseModel):
    """A notification."""

    id: int = Field(examples=[17])
    type: NotificationType
    title: str = Field(examples=["Your image is ready"])
    body: str
    payload: dict[str, Any] | None = Field(
        description="The subject's ids: `task_id`, `subscription_id`, …; of a batch `batch_id`, and how many of "
        "its `total` files have `succeeded`, wait for an answer (`needs_input`) or have `failed`."
    )
    event_id: str | None = Field(description="The event that caused it; of a batch, the batch and when it ended.")
    is_read: bool
    read_at: datetime | None
    created_at: datetime = Field(examples=[_AT])

    @classmethod
    def of(cls, notification: Notification) -> Self:
        return cls(**{name: getattr(notification, name) for name in cls.model_fields})


class UnreadOut(BaseModel):
    unread: int = Field(description="The number; 1000 means 1000 or more.")


class ReadAllIn(_Body):
    up_to: Annotated[
        int | None, Field(ge=0, le=2**63 - 1, description="The newest id that was shown; later ones stay unread.")
    ] = None


class MarkedOut(BaseModel):
    marked: int = Field(description="The number of notifications that were unread.")


class LanguageBody(_Body):
    language: Language
