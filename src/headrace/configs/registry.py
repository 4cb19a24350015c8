"""The registry of config keys and their types: invalid values are refused when they are set.

>>> REMOVAL = ConfigKey("removal.limits", RemovalLimits, RemovalLimits(), "Largest files.", public=True)
>>> Registry([*GENERAL, REMOVAL])
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from headrace.configs.errors import InvalidConfigValue, UnknownConfigKey

T = TypeVar("T")


@dataclass(frozen=True)
class ConfigKey(Generic[T]):
    """One config: its type, default, and whether clients may read it (``public``).

    Administrators and the audit trail see the values: secrets belong into settings, not here.
    """

    name: str
    type: Any  # a pydantic model, or any other type for a TypeAdapter
    default: T
    description: str
    public: bool = False
    _adapter: TypeAdapter[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_adapter", TypeAdapter(self.type))

    def check(self, value: object) -> Any:
        """The value as stored JSON; ``InvalidConfigValue`` names the invalid field, never its value."""
        try:
            return self._adapter.dump_python(self._adapter.validate_python(value), mode="json")
        except ValidationError as exc:
            wrong = [
                {"field": ".".join(["value", *map(str, error["loc"])]), "message": error["msg"]}
                for error in exc.errors(include_input=False, include_url=False)
            ]
            faults = "; ".join(f"{each['field']}: {each['message']}" for each in wrong[:5])
            raise InvalidConfigValue(f"{self.name} cannot have this value. {faults}.", errors=wrong[:20]) from None

    def read(self, stored: object) -> T:
        """The stored value as its type; the default if it is invalid, as one of an older release may be."""
        try:
            read: T = self._adapter.validate_python(stored)
        except ValidationError:
            return self.default
        return read

    def as_json(self, value: T) -> Any:
        return self._adapter.dump_python(value, mode="json")

    def schema(self) -> Mapping[str, Any]:
        return self._adapter.json_schema()


class Registry:
    """The keys of one installation; the wiring collects those of all packages."""

    def __init__(self, keys: Iterable[ConfigKey[Any]]) -> None:
        self._keys: dict[str, ConfigKey[Any]] = {}
        for key in keys:
            if key.name in self._keys:
                raise ValueError(f"two config keys have the name {key.name}")
            self._keys[key.name] = key

    def __iter__(self) -> Iterator[ConfigKey[Any]]:
        return iter(sorted(self._keys.values(), key=lambda key: key.name))

    def get(self, name: str) -> ConfigKey[Any]:
        if (key := self._keys.get(name)) is None:
            close = difflib.get_close_matches(name, self._keys, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(self._keys))}."
            raise UnknownConfigKey(f"There is no such config key: {hint}")
        return key
