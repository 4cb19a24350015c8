"""What operators are told of."""

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
    """What is to be read again, and the tasks and runs that are told as they are now."""

    kinds: frozenset[Kind] = frozenset()
    tasks: Sequence[Task] = ()
    runs: Sequence[Execution] = ()

    def __bool__(self) -> bool:
        return bool(self.kinds or self.tasks or self.runs)
