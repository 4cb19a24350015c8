"""The register of recipes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.web.world import World


@dataclass
class Sent:
    """A request that will succeed: the values of the path's names, the body, whose session."""

    path: dict[str, str] = field(default_factory=dict)
    body: Any = None
    token: str | None = None
    content: bytes | None = None  # a body that is signed as it is
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] | None = None  # of a route that only reads


Recipe = Callable[[World], Awaitable[Sent]]
RECIPES: dict[str, Recipe] = {}


def recipe(*operations: str) -> Callable[[Recipe], Recipe]:
    """How to call this operation so that it changes something."""

    def note(prepare: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(operations, prepare))
        return prepare

    return note
