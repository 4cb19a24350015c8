"""Tasks: what runs. Other packages import only what is named here.

Names are looked up when they are first used: the child process of a handler needs the registry and not the web
framework, and every import is a part of the time until it starts.
"""

from typing import TYPE_CHECKING

from headrace import lazily

if TYPE_CHECKING:
    from headrace.tasks.catalog import Catalog, KnownType, RegistryCatalog, StoredCatalog, declare_types
    from headrace.tasks.context import BlockingTaskContext, Step, TaskContext
    from headrace.tasks.errors import (
        ExtensionRefused,
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
    from headrace.tasks.submit import SubmitConfig, Submitter, check_is_open
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
    "ExtensionRefused",
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
    "check_is_open",
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

__getattr__ = lazily.names_of(
    __name__,
    {
        "catalog": "Catalog KnownType RegistryCatalog StoredCatalog declare_types",
        "context": "BlockingTaskContext Step TaskContext",
        "errors": "ExtensionRefused Fatal LeaseLost PayloadInvalid PayloadTooLarge Snooze TaskCanceled "
        "TaskChanged TaskNotFound TaskNotOver TaskOver TaskSpecInvalid UnknownTaskType",
        "events": "OutboxFollower",
        "followers": "Follower Followers",
        "live": "Watch WatchConfig open_watch",
        "model": "Change ErrorCode Task TaskId TaskSpec TaskStatus Transition",
        "queues": "Queue limit_queue list_queues list_types list_workers pause_queue resume_queue",
        "registry": "Backoff ProcessLimits Registry TaskType",
        "service": "Tasks cancel_task delete_task get_task list_logs "
        "list_steps list_tasks retry_task submit_task submit_tasks",
        "store.tasks": "Filter",
        "submit": "SubmitConfig Submitter check_is_open",
        "why": "Explanation Reason explain",
        "worker.config": "WorkerConfig",
        "worker.loop": "Worker",
    },
)
