"""Libraries that only some processes need, loaded when they are first used: the extras of the package."""

import importlib
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
        raise ExtraMissing(
            f"This needs {name.partition('.')[0]}, which is not installed: `pip install 'headrace[{extra}]'`, or "
            f"`scripts/setup {extra}` in a clone."
        ) from exc
