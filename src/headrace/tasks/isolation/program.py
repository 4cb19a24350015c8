"""The user's program: where its registry lies, ``package.module:attribute``, and where modules are looked for."""

import importlib
import sys
from difflib import get_close_matches
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
    target: object = importlib.import_module(module_name)
    for name in attribute.split("."):
        if not hasattr(target, name):
            close = get_close_matches(name, [each for each in dir(target) if not each.startswith("_")], n=1)
            hint = f": did you mean {close[0]}?" if close else "."
            raise ProgramBroken(f"{module_name} has no {attribute}{hint}")
        target = getattr(target, name)
    if callable(target) and not isinstance(target, Registry):
        target = target()
    if not isinstance(target, Registry):
        raise ProgramBroken(f"{address} is no registry of task types but a {type(target).__name__}.")
    return target


def search_path() -> list[str]:
    """The module search path of a child: that of this process, and the current directory."""
    path = [str(entry) for entry in sys.path if entry]
    here = str(Path.cwd())
    return path if here in path else [here, *path]
