"""The words people meet: one for a thing over API, command line and client, whatever the documents' columns hold.

A status is in capitals, an error's code in lower case. The database keeps the documents' exact values (``success`` of a
run, ``SUCCESS`` of a step or a delivery, ``cancelled``); here, and only here, they become the words that are shown, and
the words that a filter is given become values again.
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
    """A stored status as people see it.

    >>> shown("success"), shown("SUCCESS"), shown("cancelled"), shown("pending")
    ('SUCCEEDED', 'SUCCEEDED', 'CANCELED', 'PENDING')
    """
    word = stored.upper()
    return _SHOWN.get(word, word)


def words_of(kind: type[StrEnum]) -> list[str]:
    """The words for all values of a status, in their order."""
    return [shown(value) for value in kind]


def stored(kind: type[W], word: str) -> W:
    """The value that a word stands for; raises ValueError for any other, also for a value that is not shown."""
    for value in kind:
        if shown(value) == word:
            return value
    raise ValueError(f"{word!r} is none of {', '.join(words_of(kind))}")


class Shown:
    """Of a field or a parameter whose values are stored with other words than people see."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        def read(given: object) -> Any:
            return given if isinstance(given, source) else stored(source, str(given))

        words = WithJsonSchema({"type": "string", "enum": words_of(source)})
        return handler.generate_schema(Annotated[source, PlainValidator(read), PlainSerializer(shown), words])


AsShown = Annotated[W, Shown()]


@dataclass(frozen=True, slots=True)
class Offered:
    """Of a filter that takes more words than this product has uses for: descriptions name only those that it has."""

    words: tuple[str, ...]

    def __get_pydantic_json_schema__(self, _: Any, __: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}
