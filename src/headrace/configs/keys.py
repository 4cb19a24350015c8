"""Config keys of no particular package, for clients."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, HttpUrl

from headrace.configs.registry import ConfigKey
from headrace.edge.instants import Instant
from headrace.edge.text import STORABLE, Line, Text


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Announcement(_Value):
    """A line that clients show to people."""

    text: Annotated[Text, Field(min_length=1, max_length=500)]
    level: Literal["info", "warning", "critical"] = "info"
    until: Annotated[Instant | None, Field(description="The end of its display.")] = None


class Contact(_Value):
    """Contact for help."""

    email: Annotated[Text, Field(max_length=255, pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    url: HttpUrl | None = None


class Legal(_Value):
    """Pages that everybody can read before registration."""

    terms: Annotated[HttpUrl | None, Field(description="The terms of use.")] = None
    privacy: Annotated[HttpUrl | None, Field(description="The privacy notice.")] = None


FeatureName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]

ANNOUNCEMENT: ConfigKey[Announcement | None] = ConfigKey(
    "announcement", Announcement | None, None, "A line that clients show to people.", public=True
)
CONTACT: ConfigKey[Contact] = ConfigKey("contact", Contact, Contact(), "Contact for help.", public=True)
LEGAL: ConfigKey[Legal] = ConfigKey("legal", Legal, Legal(), "Links to the terms and the privacy notice.", public=True)
FEATURES: ConfigKey[dict[str, bool]] = ConfigKey(
    "features",
    Annotated[dict[FeatureName, bool], Field(max_length=200)],
    {},
    "Optional features of clients: {name: true or false}.",
    public=True,
)


class SavedView(_Value):
    """A page of the console with its filters, under a user's own name."""

    name: Annotated[Line, Field(min_length=1, max_length=80)]
    # Only of this origin: a view set by another user must not redirect elsewhere.
    path: Annotated[
        str, Field(max_length=2000, pattern=r"^/([^/\\\s][^\\\s]*)?$", examples=["/tasks?status=FAILED"]), STORABLE
    ]


MAX_VIEWS = 50
VIEWS: ConfigKey[list[SavedView]] = ConfigKey(
    "console.views",
    Annotated[list[SavedView], Field(max_length=MAX_VIEWS)],
    [],
    "A user's saved pages of the console, with their filters.",
)

GENERAL: tuple[ConfigKey[Any], ...] = (ANNOUNCEMENT, CONTACT, FEATURES, LEGAL, VIEWS)
