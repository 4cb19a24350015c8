"""Headrace from another program, over HTTP.

>>> async with Client("https://headrace.example", api_key="…") as client:
...     task = await client.submit("report.build", {"pages": 3})
...     done = await client.wait(task.id, on_progress=lambda task: print(task.progress))

``SyncClient`` has the same verbs without ``await``.
"""

from headrace.client.asynchronous import Client
from headrace.client.errors import ApiError, Unreachable
from headrace.client.model import Held, LogLine, NewTask, Queue, QueueRules, Reason, Step, Task, Why, Worker
from headrace.client.retrying import RetryPolicy
from headrace.client.synchronous import SyncClient

__all__ = [
    "ApiError",
    "Client",
    "Held",
    "LogLine",
    "NewTask",
    "Queue",
    "QueueRules",
    "Reason",
    "RetryPolicy",
    "Step",
    "SyncClient",
    "Task",
    "Unreachable",
    "Why",
    "Worker",
]
