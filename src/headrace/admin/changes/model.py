"""What the stream reports to operators."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from headrace.schedules.model import Execution
from headrace.tasks.model import Task


class Kind(StrEnum):
    """What a page of the console shows."""

    TASKS = "tasks"
    RUNS = "runs"
    SCHEDULES = "schedules"
    QUEUES = "queues"
    WORKERS = "workers"
    LOCKS = "locks"
    AUDIT = "audit"
    USERS = "users"
    PLANS = "plans"
    LEDGER = "ledger"
    OUTBOX = "outbox"
    CONFIGS = "configs"
    RISKS = "risks"
    ARCHIVES = "archives"
    BULK = "bulk"


@dataclass(frozen=True, slots=True)
class News:
    """The lists that are to be read again, and tasks and runs in their current state."""

    kinds: frozenset[Kind] = frozenset()
    tasks: Sequence[Task] = ()
    runs: Sequence[Execution] = ()

    def __bool__(self) -> bool:
        return bool(self.kinds or self.tasks or self.runs)
