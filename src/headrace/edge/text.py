"""Text that PostgreSQL can keep: valid Unicode without U+0000, which neither ``text`` nor ``jsonb`` can hold."""

from typing import Annotated

from pydantic import AfterValidator


def _storable(value: str) -> str:
    if "\0" in value:
        raise ValueError("text cannot hold the character U+0000")
    return value


Text = Annotated[str, AfterValidator(_storable)]
"""A string in a schema. Unlike plain ``str`` it says which field holds the character that cannot be stored."""
