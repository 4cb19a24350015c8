"""Types that everybody may submit, and users without caps: for the many tests that are not about who may what."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace.tasks.caps import Caps
from headrace.tasks.registry import HandlerT, Registry

UNCAPPED = Caps(
    priority=1_000_000,
    attempts=1000,
    timeout=timedelta(days=366),
    delay=timedelta(days=2_000_000),
    payload_bytes=10**9,
    open_tasks=10**6,
    lanes=10**6,
    schedules=10**6,
    schedule_interval=timedelta(seconds=1),
)


class OpenRegistry(Registry):
    """Whose types are for users, unless one says otherwise."""

    def task(self, name: str, **options: Any) -> Callable[[HandlerT], HandlerT]:
        return super().task(name, **{"submit": "users", **options})
