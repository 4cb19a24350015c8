"""The public names of ``headrace.client``."""

from headrace.client.accounts import ApiKey, Me, User
from headrace.client.asynchronous import Client
from headrace.client.bulk import BulkAction, StatisticsStep
from headrace.client.errors import ApiError, Unreachable
from headrace.client.files import File, Link, ResultFile, StorageUse, Upload
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
    TaskType,
    Why,
    Worker,
)
from headrace.client.removals import Candidate, NewRemoval, Quote, Removal
from headrace.client.retrying import RetryPolicy
from headrace.client.subscriptions import Order, Ordered, Plan, Subscription
from headrace.client.synchronous import SyncClient
from headrace.client.usage import Balance, Entitlement, LedgerEntry, UsedDay
from headrace.client.webhooks import Delivery, Endpoint, EndpointStatistics, NewEndpoint

__all__ = [
    "ApiError",
    "ApiKey",
    "Balance",
    "BulkAction",
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
    "Me",
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
    "StatisticsStep",
    "Step",
    "StorageUse",
    "Subscription",
    "SyncClient",
    "Task",
    "TaskType",
    "Unreachable",
    "Upload",
    "UsedDay",
    "User",
    "Why",
    "Worker",
]
