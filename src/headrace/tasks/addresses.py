"""The address of a handler, ``package.module:qualname``: how a fresh process finds it."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


class NotImportable(ValueError):
    """A fresh process could not import this handler; the message says why, as the end of a sentence."""


def address_of(handler: Callable[..., Any]) -> str:
    """Where the handler stands in its module; ``NotImportable`` for what stands nowhere."""
    module, name = getattr(handler, "__module__", None), getattr(handler, "__qualname__", None)
    if not module or not name:
        raise NotImportable(f"it is a {type(handler).__name__} and not a function")
    if "<lambda>" in name:
        raise NotImportable("it is a lambda")
    if "<locals>" in name:
        raise NotImportable("it stands inside a function, or a decorator without functools.wraps hides it")
    owner = getattr(handler, "__self__", None)
    if owner is not None and not isinstance(owner, type):
        raise NotImportable(f"it is a method of one {type(owner).__name__}")
    return f"{_importable(module)}:{name}"


def check_address(handler: Callable[..., Any]) -> None:
    """Raise ``NotImportable`` unless the handler's address leads to this handler, once its module is loaded."""
    address = address_of(handler)
    target: Any = sys.modules.get(handler.__module__)
    for name in handler.__qualname__.split("."):
        target = getattr(target, name, None)
    if target != handler:
        raise NotImportable(
            f"{address} is something else: let @registry.task be the uppermost decorator, and the name be used once"
        )


def load_handler(address: str) -> Callable[..., Any]:
    """Import a handler. What the import raises comes through as it is; ``LookupError`` if it is not there."""
    module_name, _, qualname = address.partition(":")
    target: Any = importlib.import_module(module_name)
    for name in qualname.split("."):
        if not hasattr(target, name):
            raise LookupError(f"{module_name} has no {qualname}.")
        target = getattr(target, name)
    if not callable(target):
        raise LookupError(f"{address} is no function but a {type(target).__name__}.")
    handler: Callable[..., Any] = target
    return handler


def _importable(module_name: str) -> str:
    if module_name != "__main__":
        return module_name
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m package.module
        return str(spec.name)
    file = getattr(main, "__file__", None)
    if file is None or not Path(file).is_file():
        raise NotImportable("it was typed in and stands in no file")
    # python program.py: its folder is on the path, so that its bare name can be imported.
    return Path(file).stem
