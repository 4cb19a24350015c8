"""Tasks and workers as they must be: what each thing that is done to them changes, without a database."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from headrace.tasks.model import Claimed, Outcome

KEY_LIMIT = 2
OVER = {"SUCCEEDED", "FAILED", "CANCELED"}
BACK = {Outcome.RETRIED, Outcome.SNOOZED, Outcome.INTERRUPTED}
EVENT = {
    Outcome.SUCCEEDED: "succeeded",
    Outcome.FAILED: "failed",
    Outcome.CANCELED: "canceled",
    Outcome.RETRIED: "retried",
    Outcome.SNOOZED: "retried",
    Outcome.INTERRUPTED: "retried",
}


@dataclass
class Task:
    """A task as it must be."""

    type: str
    priority: int
    max_attempts: int
    key: str
    due: bool
    seq: int | None  # of its row in the queue, while it has one
    status: str = "QUEUED"
    attempt: int = 0  # of the queue's row
    shown_attempt: int = 0  # of its own row
    retries: int = 0
    version: int = 0
    holder: int | None = None
    shown_worker: int | None = None
    cancel_requested: bool = False
    was_delayed: bool = False  # its run_at lies before that of tasks submitted earlier
    logs: list[tuple[int, str]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    @property
    def queue(self) -> str:
        return "side" if self.type == "quiet" else "default"

    def tell(self, event: str) -> None:
        if self.type != "quiet":
            self.events.append(event)


class Mismatch(AssertionError):
    """The database did what the model does not allow."""


@dataclass
class Model:
    tasks: dict[str, Task] = field(default_factory=dict)
    workers: dict[int, str] = field(default_factory=dict)  # number → alive, lapsed, DEAD, STOPPED
    paused: set[str] = field(default_factory=set)

    def holds(self, worker: int, claim: Claimed) -> bool:
        task = self.tasks[claim.task_id]
        return (task.seq, task.holder, task.attempt) == (claim.seq, worker, claim.attempt)

    def held_by(self, worker: int) -> list[str]:
        return [task_id for task_id, task in self.tasks.items() if task.holder == worker]

    def running(self, key: str) -> int:
        return sum(
            task.holder is not None for task in self.tasks.values() if task.type == "limited" and task.key == key
        )

    def takeable(self, task: Task) -> bool:
        waits = task.seq is not None and task.holder is None and task.due and task.queue not in self.paused
        return waits and (task.type != "limited" or self.running(task.key) < KEY_LIMIT)

    def take(self, worker: int, claims: Sequence[Claimed]) -> None:
        for claim in claims:
            task = self.tasks[claim.task_id]
            if not self.takeable(task):
                raise Mismatch(f"{claim.task_id} was taken, but it is {task}")
            task.holder, task.attempt = worker, task.attempt + 1
            if (task.seq, task.attempt, task.retries) != (claim.seq, claim.attempt, claim.retries):
                raise Mismatch(f"{claim} was taken, but the task is {task}")

    def show(self, worker: int, claim: Claimed) -> None:
        task = self.tasks[claim.task_id]
        if self.holds(worker, claim) and task.status == "QUEUED":
            task.status, task.shown_attempt, task.shown_worker = "RUNNING", task.attempt, worker
            task.version += 1
            task.tell("started")

    def end(self, worker: int, claim: Claimed, outcome: Outcome, *, spends: bool, far: bool) -> bool:
        """An attempt ends; gives whether it was this worker's to end."""
        if not self.holds(worker, claim):
            return False
        task = self.tasks[claim.task_id]
        if outcome in BACK and task.cancel_requested:
            outcome = Outcome.CANCELED
        if task.status != "RUNNING":
            task.tell("started")
        task.tell(EVENT[outcome])
        task.logs.append((task.attempt, outcome))
        task.shown_attempt = task.attempt
        task.version += 1
        task.holder = None
        if outcome in BACK:
            task.status, task.shown_worker, task.due = "QUEUED", None, not far
            task.retries += spends
        else:
            task.status, task.shown_worker, task.seq = outcome, worker, None
        return True

    def unclaim(self, worker: int, claim: Claimed) -> bool:
        task = self.tasks[claim.task_id]
        if not self.holds(worker, claim) or task.cancel_requested:
            return False
        task.holder, task.attempt = None, task.attempt - 1
        return True

    def cancel(self, task_id: str) -> str:
        task = self.tasks[task_id]
        if task.status == "CANCELED":
            return "CANCELED"
        if task.status in OVER:
            return "TaskOver"
        if task.holder is not None:
            if not task.cancel_requested:
                task.cancel_requested = True
                task.version += 1
            return "RUNNING"
        task.status, task.seq = "CANCELED", None
        task.version += 1
        task.logs.append((0, "CANCELED"))
        task.tell("canceled")
        return "CANCELED"

    def retry(self, task_id: str, seq: int | None) -> str:
        task = self.tasks[task_id]
        if task.status not in OVER:
            return "TaskNotOver"
        if task.status == "SUCCEEDED":
            return "TaskOver"
        task.status, task.seq, task.attempt = "QUEUED", seq, task.shown_attempt
        task.retries, task.due, task.shown_worker, task.cancel_requested = 0, True, None, False
        task.version += 1
        task.logs.append((0, "RETRIED"))
        task.tell("revived")
        return "QUEUED"

    def reap(self, *, but_task: str | None = None, but_worker: int | None = None) -> tuple[int, int]:
        """Lapsed workers are given up, except what is locked; gives how many, and how many tasks they held."""
        settled = dead = 0
        for number in [number for number, state in self.workers.items() if state == "lapsed" and number != but_worker]:
            for task_id in self.held_by(number):
                if task_id != but_task:
                    self._lose(task_id, number)
                    settled += 1
            if not self.held_by(number):
                self.workers[number] = "DEAD"
                dead += 1
        return dead, settled

    def _lose(self, task_id: str, worker: int) -> None:
        task = self.tasks[task_id]
        assert task.seq is not None
        claim = _stub(task.seq, task_id, task.attempt)
        outcome = Outcome.INTERRUPTED if task.retries + 1 < task.max_attempts else Outcome.FAILED
        outcome = Outcome.CANCELED if task.cancel_requested else outcome
        self.end(worker, claim, outcome, spends=True, far=False)

    def stop(self, worker: int) -> bool:
        if self.workers[worker] in ("alive", "lapsed") and not self.held_by(worker):
            self.workers[worker] = "STOPPED"
            return True
        return False


def _stub(seq: int, task_id: str, attempt: int) -> Claimed:
    return Claimed(seq, task_id, attempt, "", "", None, 0, 1, None, None, datetime.now(UTC))
