"""Names of a package that are looked up when they are first used.

A package's ``__init__`` names everything that others may use. Loading all of it for one name would make a worker load
the web framework, and every import is a part of the time until a process starts.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_of(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for a package: ``homes`` says which of its modules has which names.

    A name must not be a module's, too: once that is loaded the import system answers with it.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def look_up(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        setattr(import_module(package), name, value)  # the next one finds it without asking
        return value

    return look_up
