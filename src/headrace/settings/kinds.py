"""Types of setting values, and groups of settings.

A group is one module of this package, for one package of the product. Its fields are settings by their own names
(``HEADRACE_`` and the name in capitals), independent of the group's name.
"""

import re
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

PREFIX = "HEADRACE_"
FOREVER = "forever"
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")


def duration(value: object) -> object:
    """Read ``500ms``, ``30s``, ``15m``, ``24h``, ``7d``, plain seconds, or ISO 8601."""
    if not isinstance(value, str) or value.startswith("P"):
        return value
    if match := _DURATION.fullmatch(value.strip()):
        try:
            return timedelta(seconds=float(match[1]) * UNITS[match[2] or "s"])
        except OverflowError:
            raise ValueError("this is longer than any duration can be") from None
    raise ValueError("write a duration like 500ms, 30s, 15m, 24h or 7d")


def comma_separated(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def keep(value: object) -> object:
    return None if value == FOREVER else duration(value)


def _networks(value: object) -> object:
    parts = comma_separated(value)
    return [ip_network(part) if isinstance(part, str) else part for part in parts] if isinstance(parts, list) else parts


Duration = Annotated[timedelta, BeforeValidator(duration), Field(gt=timedelta(0))]
# PostgreSQL stores timeouts in milliseconds of 32 bits: almost 25 days.
ServerTimeout = Annotated[Duration, Field(le=timedelta(days=24))]
Keep = Annotated[Annotated[timedelta, Field(gt=timedelta(0))] | None, BeforeValidator(keep)]
Words = Annotated[tuple[str, ...], BeforeValidator(comma_separated)]
ArchivedRows = Annotated[
    tuple[Literal["task_executions", "outbox_events", "task_locks"], ...], BeforeValidator(comma_separated)
]
Networks = Annotated[tuple[IPv4Network | IPv6Network, ...], BeforeValidator(_networks)]
# Zero is allowed.
OptionalDuration = Annotated[timedelta, BeforeValidator(duration), Field(ge=timedelta(0), le=timedelta(days=365))]
Port = Annotated[int, Field(ge=1, le=65535)]


class Group(BaseModel):
    """Settings that belong together: a section of ``docs/reference/settings.md``.

    Rules between them are a ``model_validator`` of the group, with a unique name.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_default=True,
        hide_input_in_errors=True,
        defer_build=True,  # a group is never used alone; building its validators would slow every command
    )
    title: ClassVar[str]


def setting(description: str, default: Any = ..., **limits: Any) -> Any:
    return Field(default, description=description, **limits)
