"""Headrace from another program, over HTTP.

>>> async with Client("https://headrace.example", api_key="…") as client:
...     task = await client.submit("report.build", {"pages": 3})
...     done = await client.wait(task.id, on_progress=lambda task: print(task.progress))
...     nightly = await client.schedules.create(NewSchedule("Nightly", "report.build", {"pages": 3}, cron="0 2 * * *"))

``SyncClient`` has the same verbs without ``await``.
"""

from headrace.client.asynchronous import Client
from headrace.client.errors import ApiError, Unreachable
from headrace.client.inbox import Notification
from headrace.client.model import (
    EventType,
    Execution,
    Held,
    Lock,
    LogLine,
    NewSchedule,
    NewTask,
    Queue,
    QueueRules,
    Reason,
    RunWhy,
    Schedule,
    Statistics,
    Step,
    Task,
    Why,
    Worker,
)
from headrace.client.retrying import RetryPolicy
from headrace.client.synchronous import SyncClient
from headrace.client.webhooks import Delivery, Endpoint, EndpointStatistics, NewEndpoint

__all__ = [
    "ApiError",
    "Client",
    "Delivery",
    "Endpoint",
    "EndpointStatistics",
    "EventType",
    "Execution",
    "Held",
    "Lock",
    "LogLine",
    "NewEndpoint",
    "NewSchedule",
    "NewTask",
    "Notification",
    "Queue",
    "QueueRules",
    "Reason",
    "RetryPolicy",
    "RunWhy",
    "Schedule",
    "Statistics",
    "Step",
    "SyncClient",
    "Task",
    "Unreachable",
    "Why",
    "Worker",
]
