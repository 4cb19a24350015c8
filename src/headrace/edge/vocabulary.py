"""Public names of states: the same in API, command line and client, independent of the values in columns.

A status is in capitals, an error's code in lower case. The database keeps the specification's values (``success`` of a
run, ``SUCCESS`` of a step or a delivery, ``cancelled``); only this module maps them to public names and back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, PlainSerializer, PlainValidator, WithJsonSchema

W = TypeVar("W", bound=StrEnum)

_SHOWN: Mapping[str, str] = {
    "SUCCESS": "SUCCEEDED",
    "FAILURE": "FAILED",
    "TIMEOUT": "TIMED_OUT",
    "CANCELLED": "CANCELED",
}


def shown(stored: str) -> str:
    """The public name of a stored status.

    >>> shown("success"), shown("SUCCESS"), shown("cancelled"), shown("pending")
    ('SUCCEEDED', 'SUCCEEDED', 'CANCELED', 'PENDING')
    """
    word = stored.upper()
    return _SHOWN.get(word, word)


def words_of(kind: type[StrEnum]) -> list[str]:
    """The public names of all values of a status, in their order."""
    return [shown(value) for value in kind]


def stored(kind: type[W], word: str) -> W:
    """The stored value of a public name; raises ValueError otherwise, also for a stored value."""
    for value in kind:
        if shown(value) == word:
            return value
    raise ValueError(f"{word!r} is none of {', '.join(words_of(kind))}")


class Shown:
    """Annotates a field or parameter whose stored values differ from their public names."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        def read(given: object) -> Any:
            return given if isinstance(given, source) else stored(source, str(given))

        words = WithJsonSchema({"type": "string", "enum": words_of(source)})
        return handler.generate_schema(Annotated[source, PlainValidator(read), PlainSerializer(shown), words])


AsShown = Annotated[W, Shown()]


@dataclass(frozen=True, slots=True)
class Offered:
    """Annotates a filter that accepts more values than this product uses: descriptions list only the used ones."""

    words: tuple[str, ...]

    def __get_pydantic_json_schema__(self, _: Any, __: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}
