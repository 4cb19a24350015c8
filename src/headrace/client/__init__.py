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
    Balance,
    Entitlement,
    EventType,
    Execution,
    File,
    Held,
    LedgerEntry,
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
    UsedDay,
    Why,
    Worker,
)
from headrace.client.removals import Candidate, NewRemoval, Quote, Removal
from headrace.client.retrying import RetryPolicy
from headrace.client.subscriptions import Order, Ordered, Plan, Subscription
from headrace.client.synchronous import SyncClient
from headrace.client.webhooks import Delivery, Endpoint, EndpointStatistics, NewEndpoint

__all__ = [
    "ApiError",
    "Balance",
    "Candidate",
    "Client",
    "Delivery",
    "Endpoint",
    "EndpointStatistics",
    "Entitlement",
    "EventType",
    "Execution",
    "File",
    "Held",
    "LedgerEntry",
    "Link",
    "Lock",
    "LogLine",
    "NewEndpoint",
    "NewRemoval",
    "NewSchedule",
    "NewTask",
    "Notification",
    "Order",
    "Ordered",
    "Plan",
    "Queue",
    "QueueRules",
    "Quote",
    "Reason",
    "Removal",
    "ResultFile",
    "RetryPolicy",
    "RunWhy",
    "Schedule",
    "Statistics",
    "Step",
    "StorageUse",
    "Subscription",
    "SyncClient",
    "Task",
    "Unreachable",
    "Upload",
    "UsedDay",
    "Why",
    "Worker",
]
