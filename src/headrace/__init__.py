"""Headrace: tasks, schedules, audit, metering and webhooks on one PostgreSQL.

>>> import headrace
>>> registry = headrace.Registry()
>>> client = headrace.Client("https://headrace.example", api_key="…")

Names are imported on first use: ``import headrace`` itself imports nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.client import Client, SyncClient
    from headrace.errors import HeadraceError
    from headrace.library.program import Headrace
    from headrace.tasks.context import BlockingTaskContext, Step, TaskContext
    from headrace.tasks.errors import Fatal, LeaseLost, Snooze, TaskCanceled
    from headrace.tasks.execution import Backoff, ProcessLimits
    from headrace.tasks.model import Task, TaskSpec, TaskStatus
    from headrace.tasks.options import TaskOptions
    from headrace.tasks.registry import Registry
    from headrace.tasks.worker.config import WorkerConfig

__version__ = "0.1.0"
__all__ = [
    "Backoff",
    "BlockingTaskContext",
    "Client",
    "Fatal",
    "Headrace",
    "HeadraceError",
    "LeaseLost",
    "ProcessLimits",
    "Registry",
    "Snooze",
    "Step",
    "SyncClient",
    "Task",
    "TaskCanceled",
    "TaskContext",
    "TaskOptions",
    "TaskSpec",
    "TaskStatus",
    "WorkerConfig",
    "__version__",
]

_HOMES = {
    "Backoff": "headrace.tasks.execution",
    "BlockingTaskContext": "headrace.tasks.context",
    "Client": "headrace.client",
    "Fatal": "headrace.tasks.errors",
    "Headrace": "headrace.library.program",
    "HeadraceError": "headrace.errors",
    "LeaseLost": "headrace.tasks.errors",
    "ProcessLimits": "headrace.tasks.execution",
    "Registry": "headrace.tasks.registry",
    "Snooze": "headrace.tasks.errors",
    "Step": "headrace.tasks.context",
    "SyncClient": "headrace.client",
    "Task": "headrace.tasks.model",
    "TaskCanceled": "headrace.tasks.errors",
    "TaskContext": "headrace.tasks.context",
    "TaskOptions": "headrace.tasks.options",
    "TaskSpec": "headrace.tasks.model",
    "TaskStatus": "headrace.tasks.model",
    "WorkerConfig": "headrace.tasks.worker.config",
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
