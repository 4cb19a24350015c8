"""Text that PostgreSQL can store: valid Unicode without U+0000, which neither ``text`` nor ``jsonb`` allows."""

import unicodedata
from typing import Annotated

from pydantic import AfterValidator

# Bidirectional marks reorder the text around them: a name could look like another one.
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _storable(value: str) -> str:
    if "\0" in value:
        raise ValueError("text cannot hold the character U+0000")
    return value


def _one_line(value: str) -> str:
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") or char in _DIRECTION for char in value):
        raise ValueError("a name is one line, without control characters and marks of direction")
    return value


STORABLE = AfterValidator(_storable)
"""For a string with a pattern: ``Annotated[str, Field(pattern=…), STORABLE]``. After ``Text`` the pattern would be
missing from the schema of requests, and the schema of answers would become another one."""

Text = Annotated[str, STORABLE]
"""A string in a schema. Unlike plain ``str`` its error names the field with the unstorable character."""

Line = Annotated[str, AfterValidator(_one_line)]
"""A name or a title: shown in lists, terminals and mails, where control characters would act or mislead."""
