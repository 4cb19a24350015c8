"""Tasks: what runs. Other packages import only what is named here.

Names are looked up when they are first used: the child process of a handler needs the registry and not the web
framework, and every import is a part of the time until it starts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.tasks.catalog import Catalog, KnownType, RegistryCatalog, StoredCatalog, declare_types
    from headrace.tasks.context import BlockingTaskContext, Step, TaskContext
    from headrace.tasks.errors import (
        Fatal,
        LeaseLost,
        PayloadInvalid,
        PayloadTooLarge,
        Snooze,
        TaskCanceled,
        TaskChanged,
        TaskNotFound,
        TaskNotOver,
        TaskOver,
        TaskSpecInvalid,
        UnknownTaskType,
    )
    from headrace.tasks.events import OutboxFollower
    from headrace.tasks.followers import Follower, Followers
    from headrace.tasks.live import Watch, WatchConfig, open_watch
    from headrace.tasks.model import Change, ErrorCode, Task, TaskId, TaskSpec, TaskStatus, Transition
    from headrace.tasks.queues import (
        Queue,
        limit_queue,
        list_queues,
        list_types,
        list_workers,
        pause_queue,
        resume_queue,
    )
    from headrace.tasks.registry import Backoff, ProcessLimits, Registry, TaskType
    from headrace.tasks.service import (
        Tasks,
        cancel_task,
        delete_task,
        get_task,
        list_logs,
        list_steps,
        list_tasks,
        retry_task,
        submit_task,
        submit_tasks,
    )
    from headrace.tasks.store.tasks import Filter
    from headrace.tasks.submit import SubmitConfig, Submitter
    from headrace.tasks.why import Explanation, Reason, explain
    from headrace.tasks.worker.config import WorkerConfig
    from headrace.tasks.worker.loop import Worker

__all__ = [
    "Backoff",
    "BlockingTaskContext",
    "Catalog",
    "Change",
    "ErrorCode",
    "Explanation",
    "Fatal",
    "Filter",
    "Follower",
    "Followers",
    "KnownType",
    "LeaseLost",
    "OutboxFollower",
    "PayloadInvalid",
    "PayloadTooLarge",
    "ProcessLimits",
    "Queue",
    "Reason",
    "Registry",
    "RegistryCatalog",
    "Snooze",
    "Step",
    "StoredCatalog",
    "SubmitConfig",
    "Submitter",
    "Task",
    "TaskCanceled",
    "TaskChanged",
    "TaskContext",
    "TaskId",
    "TaskNotFound",
    "TaskNotOver",
    "TaskOver",
    "TaskSpec",
    "TaskSpecInvalid",
    "TaskStatus",
    "TaskType",
    "Tasks",
    "Transition",
    "UnknownTaskType",
    "Watch",
    "WatchConfig",
    "Worker",
    "WorkerConfig",
    "cancel_task",
    "declare_types",
    "delete_task",
    "explain",
    "get_task",
    "limit_queue",
    "list_logs",
    "list_queues",
    "list_steps",
    "list_tasks",
    "list_types",
    "list_workers",
    "open_watch",
    "pause_queue",
    "resume_queue",
    "retry_task",
    "submit_task",
    "submit_tasks",
]

# The light ones first: a search ends at the first that has the name.
_HOMES = (
    "model errors registry context followers worker.config catalog submit events worker.loop live service "
    "queues why store.tasks"
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES.split():
            module = import_module(f"{__name__}.{home}")
            if hasattr(module, name):
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
