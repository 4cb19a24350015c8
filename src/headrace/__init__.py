"""Headrace: tasks, schedules, audit, metering and webhooks on one PostgreSQL.

>>> import headrace
>>> registry = headrace.Registry()
>>> client = headrace.Client("https://headrace.example", api_key="…")

Names are looked up when they are first used: ``import headrace`` itself loads nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.client import Client, SyncClient
    from headrace.library.program import Headrace
    from headrace.tasks.context import TaskContext
    from headrace.tasks.errors import Fatal, Snooze
    from headrace.tasks.registry import Registry

__version__ = "0.1.0"
__all__ = ["Client", "Fatal", "Headrace", "Registry", "Snooze", "SyncClient", "TaskContext", "__version__"]

_HOMES = {
    "Client": "headrace.client",
    "SyncClient": "headrace.client",
    "Headrace": "headrace.library.program",
    "Registry": "headrace.tasks.registry",
    "TaskContext": "headrace.tasks.context",
    "Fatal": "headrace.tasks.errors",
    "Snooze": "headrace.tasks.errors",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
