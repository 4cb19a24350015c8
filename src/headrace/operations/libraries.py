"""The heavy libraries of the extra ``archive``, loaded when they are first needed."""

import importlib
from typing import Any

from headrace.operations.errors import ArchiveLibrariesMissing


def load(name: str) -> Any:
    """The module, or an error that says how to get it. Untyped: pyarrow has no types."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        raise ArchiveLibrariesMissing(
            f"Archives need {name.partition('.')[0]}, which is not installed: `pip install 'headrace[archive]'`, or "
            "`scripts/setup archive` in a clone."
        ) from exc
