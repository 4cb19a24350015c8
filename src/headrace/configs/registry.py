"""Which keys there are, and what their values look like: a value that nobody could read is refused when it is set.

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
    """One setting: its type, what holds where nothing is set, and whether clients are shown it (``public``).

    Values are seen by administrators and kept in the audit trail: secrets belong into settings, not here.
    """

    name: str
    type: Any  # a pydantic model, or whatever else a TypeAdapter takes
    default: T
    description: str
    public: bool = False
    _adapter: TypeAdapter[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_adapter", TypeAdapter(self.type))

    def check(self, value: object) -> Any:
        """The value as it is stored, as JSON; ``InvalidConfigValue`` names the field that is wrong, never what it
        holds."""
        try:
            return self._adapter.dump_python(self._adapter.validate_python(value), mode="json")
        except ValidationError as exc:
            wrong = [
                {"field": ".".join(["value", *map(str, error["loc"])]), "message": error["msg"]}
                for error in exc.errors(include_input=False, include_url=False)
            ]
            said = "; ".join(f"{each['field']}: {each['message']}" for each in wrong[:5])
            raise InvalidConfigValue(f"{self.name} cannot have this value. {said}.", errors=wrong[:20]) from None

    def read(self, stored: object) -> T:
        """The stored value as its type. One that an older release wrote and that no longer fits is as good as none."""
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
    """The keys of one installation; the wiring makes it once from those that each package brings."""

    def __init__(self, keys: Iterable[ConfigKey[Any]]) -> None:
        self._keys: dict[str, ConfigKey[Any]] = {}
        for key in keys:
            if key.name in self._keys:
                raise ValueError(f"two config keys are called {key.name}")
            self._keys[key.name] = key

    def __iter__(self) -> Iterator[ConfigKey[Any]]:
        return iter(sorted(self._keys.values(), key=lambda key: key.name))

    def get(self, name: str) -> ConfigKey[Any]:
        if (key := self._keys.get(name)) is None:
            close = difflib.get_close_matches(name, self._keys, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(self._keys))}."
            raise UnknownConfigKey(f"There is no such config key: {hint}")
        return key
