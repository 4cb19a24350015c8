"""Headrace from another program, over HTTP.

>>> async with Client("https://headrace.example", api_key="…") as client:
...     task = await client.submit("report.build", {"pages": 3})
...     done = await client.wait(task.id, on_progress=lambda task: print(task.progress))
...     nightly = await client.schedules.create(NewSchedule("Nightly", "report.build", {"pages": 3}, cron="0 2 * * *"))

``SyncClient`` has the same verbs without ``await``.
"""

from headrace.client.asynchronous import Client
from headrace.client.errors import ApiError, Unreachable
from headrace.client.model import (
    Execution,
    File,
    Held,
    Link,
    Lock,
    LogLine,
    NewSchedule,
    NewTask,
    Queue,
    QueueRules,
    Reason,
    ResultFile,
    RunWhy,
    Schedule,
    Statistics,
    Step,
    StorageUse,
    Task,
    Upload,
    Why,
    Worker,
)
from headrace.client.retrying import RetryPolicy
from headrace.client.synchronous import SyncClient

__all__ = [
    "ApiError",
    "Client",
    "Execution",
    "File",
    "Held",
    "Link",
    "Lock",
    "LogLine",
    "NewSchedule",
    "NewTask",
    "Queue",
    "QueueRules",
    "Reason",
    "ResultFile",
    "RetryPolicy",
    "RunWhy",
    "Schedule",
    "Statistics",
    "Step",
    "StorageUse",
    "SyncClient",
    "Task",
    "Unreachable",
    "Upload",
    "Why",
    "Worker",
]
