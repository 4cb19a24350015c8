"""The keys that belong to no package in particular: what clients are told."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, HttpUrl

from headrace.configs.registry import ConfigKey
from headrace.edge.text import Text


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Announcement(_Value):
    """A line that clients show to people."""

    text: Annotated[Text, Field(min_length=1, max_length=500)]
    level: Literal["info", "warning", "critical"] = "info"
    until: Annotated[AwareDatetime | None, Field(description="Not to be shown from then on.")] = None


class Contact(_Value):
    """Where people turn for help."""

    email: Annotated[Text, Field(max_length=255, pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    url: HttpUrl | None = None


FeatureName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]

ANNOUNCEMENT: ConfigKey[Announcement | None] = ConfigKey(
    "announcement", Announcement | None, None, "A line that clients show to people.", public=True
)
CONTACT: ConfigKey[Contact] = ConfigKey("contact", Contact, Contact(), "Where people turn for help.", public=True)
FEATURES: ConfigKey[dict[str, bool]] = ConfigKey(
    "features",
    Annotated[dict[FeatureName, bool], Field(max_length=200)],
    {},
    "Which optional parts clients offer: {name: true or false}.",
    public=True,
)

GENERAL: tuple[ConfigKey[Any], ...] = (ANNOUNCEMENT, CONTACT, FEATURES)
