"""The user's program: where its registry lies, ``package.module:attribute``, so that a fresh process finds it too."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from headrace.tasks.isolation.errors import ProgramBroken
from headrace.tasks.registry import Registry


def load_registry(address: str) -> Registry:
    """Import the program and give its registry.

    The attribute is a ``Registry``, or a function without parameters that gives one; it may lie deeper
    (``module:app.registry``). What the import raises comes through as it is.
    """
    module_name, _, attribute = address.partition(":")
    if not module_name or not attribute:
        raise ProgramBroken(f"{address!r} is no address of a registry: it looks like package.module:attribute.")
    found: object = importlib.import_module(module_name)
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ProgramBroken(f"{module_name} has no {attribute}.")
        found = getattr(found, name)
    if callable(found) and not isinstance(found, Registry):
        found = found()
    if not isinstance(found, Registry):
        raise ProgramBroken(f"{address} is no registry of task types but a {type(found).__name__}.")
    return found


def address_of(registry: Registry) -> str:
    """The address of a registry that stands in a module, for programs that start a worker themselves."""
    # The script last: importing it once more in a child is worth avoiding.
    for name, module in sorted(sys.modules.items(), key=lambda item: item[0] == "__main__"):
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if value is registry:
                return f"{_importable(name)}:{attribute}"
    raise ProgramBroken(
        "Handlers with isolation='process' need a registry that a fresh process can import: put it into a module, "
        "outside of any function."
    )


def search_path() -> list[str]:
    """Where a child shall look for modules: where this process does, and the current directory."""
    return with_current_directory([str(entry) for entry in sys.path if entry])


def with_current_directory(path: Sequence[str]) -> list[str]:
    here = str(Path.cwd())
    return list(path) if here in path else [here, *path]


def _importable(module_name: str) -> str:
    if module_name != "__main__":
        return module_name
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m package.module
        return str(spec.name)
    # python program.py: its folder is on the path, so that its bare name can be imported.
    return Path(getattr(main, "__file__", None) or "__main__").stem
