"""Libraries that only some processes need, loaded when they are first used: the extras of the package."""

import importlib
import importlib.util
from typing import Any

from headrace.errors import Unavailable


class ExtraMissing(Unavailable):
    """This needs libraries that are not installed."""

    code = "extra_missing"


def load(name: str, *, extra: str) -> Any:
    """The module, or an error that says how to get it. Untyped: not all of them have types."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        raise _missing(name, extra) from exc


def require(*names: str, extra: str) -> None:
    """Raise unless all of them could be loaded: for who starts a process that will."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise _missing(name, extra)


def _missing(name: str, extra: str) -> ExtraMissing:
    return ExtraMissing(
        f"This needs {name.partition('.')[0]}, which is not installed: `pip install 'headrace[{extra}]'`, or "
        f"`scripts/setup {extra}` in a clone."
    )
