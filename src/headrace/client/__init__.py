"""The HTTP client.

>>> async with Client("https://headrace.example", api_key="…") as client:
...     task = await client.submit("report.build", {"pages": 3})
...     done = await client.wait(task.id, on_progress=lambda task: print(task.progress))
...     nightly = await client.schedules.create(NewSchedule("Nightly", "report.build", {"pages": 3}, cron="0 2 * * *"))

``SyncClient`` has the same verbs without ``await``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.client.names import *  # noqa: F403 - __all__ is there


def __getattr__(name: str) -> Any:
    """Import names lazily: a command that sends one request needs only the connection, a third of the import time."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(name)
    return getattr(import_module("headrace.client.names"), name)
