"""Types of configs."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from headrace import ids
from headrace.configs.errors import InvalidConfigScope


class ConfigScope(StrEnum):
    """From wide to narrow; the narrower overrides."""

    GLOBAL = "GLOBAL"
    TENANT = "TENANT"
    USER = "USER"


_MAX_ID_LENGTH = 64


@dataclass(frozen=True, slots=True)
class ConfigTarget:
    """The scope and id that a value applies to."""

    scope: ConfigScope = ConfigScope.GLOBAL
    id: str = ""

    def __post_init__(self) -> None:
        if (self.scope is ConfigScope.GLOBAL) != (self.id == "") or len(self.id) > _MAX_ID_LENGTH:
            raise InvalidConfigScope(field="scope_id")
        if self.scope is ConfigScope.USER:
            ids.check(self.id, "u")

    def __str__(self) -> str:
        return f"{self.scope}:{self.id}" if self.id else self.scope.value


@dataclass(frozen=True, slots=True)
class Config:
    """A row of system_configs."""

    id: int
    config_key: str
    config_scope: ConfigScope
    scope_id: str
    config_value: Any
    version: int
    is_active: bool
    created_at: datetime
    updated_at: datetime

    @property
    def target(self) -> ConfigTarget:
        return ConfigTarget(self.config_scope, self.scope_id)
