"""Running one claimed task: calling its handler where it belongs, and telling how it ended."""

import asyncio
import time
import traceback
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol

from headrace.tasks.context import Facts, Reporter, TaskContext
from headrace.tasks.errors import BadResult, Fatal, LeaseLost, PayloadInvalid, Snooze, TaskCanceled
from headrace.tasks.isolation.errors import Crashed, HandlerFailed, ProgramBroken
from headrace.tasks.model import Claimed, Ending, ErrorCode, Outcome
from headrace.tasks.registry import TaskType
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.endings import failed, succeeded


class StopReason(StrEnum):
    CANCELED = "canceled"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"


@dataclass(slots=True)
class Run:
    """An attempt under way."""

    claimed: Claimed
    task_type: TaskType
    facts: Facts
    stop: asyncio.Event
    started: float
    task: "asyncio.Task[Any] | None" = None  # to be canceled, while the handler is on the loop
    reason: StopReason | None = None
    asked_at: float = 0.0
    abandoned: bool = False
    start_refused: bool = False  # by a follower
    waiting: bool = False  # for a process of its own: its time has not begun
    longest_grace: timedelta | None = None  # the rest of a lost lease

    def begin(self) -> None:
        """Its handler starts now: from here on its time counts, the worker's and the database's."""
        self.started, self.waiting = time.monotonic(), False
        if self.claimed.schedule_uid is not None:
            claimed = self.claimed
            claimed.begun_at = claimed.claimed_at + timedelta(seconds=self.started - claimed.received)

    def ask_to_stop(self, reason: StopReason) -> None:
        """Ask once; the first reason stays."""
        if self.reason is not None:
            return
        self.reason, self.asked_at = reason, time.monotonic()
        self.stop.set()
        if self.task is not None:
            self.task.cancel()

    def lose_lease(self, margin: timedelta) -> None:
        """Ask to stop before the lease ends, whatever the grace would be: another worker runs it from then on."""
        self.longest_grace = margin
        if self.reason is None or self.reason is StopReason.LEASE_LOST:
            self.ask_to_stop(StopReason.LEASE_LOST)
        else:  # it was asked before, for another reason, and its end is not ours to write either
            self.reason, self.asked_at = StopReason.LEASE_LOST, time.monotonic()

    @property
    def out_of_time(self) -> bool:
        seconds = self.claimed.timeout_seconds  # it grows when the handler asks for more
        return seconds is not None and not self.waiting and time.monotonic() >= self.started + seconds

    @property
    def grace(self) -> timedelta:
        """From asking it to stop until it is killed or given up."""
        seconds = self.claimed.grace_seconds
        grace = self.task_type.grace if seconds is None else timedelta(seconds=seconds)
        return grace if self.longest_grace is None else min(grace, self.longest_grace)

    @property
    def overdue(self) -> bool:
        """Asked to stop, and the grace is over."""
        return self.reason is not None and time.monotonic() > self.asked_at + self.grace.total_seconds()


class Elsewhere(Protocol):
    """Where handlers run that are not async."""

    async def run(self, run: Run, reporter: Reporter) -> Any: ...


async def execute(run: Run, reporter: Reporter, isolated: Elsewhere, config: WorkerConfig) -> Ending | None:
    """Run the handler and give its ending; None when the task is no longer ours to end."""
    claimed, task_type = run.claimed, run.task_type
    try:
        if task_type.isolation == "async":
            payload = claimed.payload if task_type.payload is None else task_type.check_payload(claimed.payload)
            result = await task_type.handler(TaskContext(run.facts, reporter), payload)
        else:
            result = await isolated.run(run, reporter)
        if task_type.result is not None or type(result) not in _PLAIN:
            result = task_type.plain_result(result)
        return succeeded(claimed, result, limit=config.result_limit)
    except (TaskCanceled, asyncio.CancelledError):
        if run.reason is None:
            raise  # the worker itself is being torn down
        return ending_when_stopped(run)
    except Exception as exc:  # noqa: BLE001 - a handler may raise anything; it is recorded
        return _ending_by(run, exc)


_PLAIN = {type(None), bool, int, float, str, dict, list}


def _ending_by(run: Run, exc: Exception) -> Ending | None:
    # A handler that was asked to stop may fail in any way it likes; why it was asked is what counts.
    if run.reason is not None:
        return ending_when_stopped(run)
    claimed, task_type = run.claimed, run.task_type
    match exc:
        case Snooze():
            return Ending(claimed, Outcome.SNOOZED, delay=exc.delay, spends_attempt=False)
        case Fatal():
            return failed(claimed, exc.error_code, exc.message, retry=None)
        case LeaseLost():
            return None
        case PayloadInvalid():
            return failed(claimed, ErrorCode.BAD_PAYLOAD, exc.message, retry=None)
        case BadResult():
            return failed(claimed, ErrorCode.BAD_RESULT, exc.message, retry=None)
        case Crashed():
            return failed(claimed, ErrorCode.CRASHED, exc.message, retry=task_type)
        case ProgramBroken():
            # A broken deployment is not the task's fault: it waits, and spends nothing.
            delay = exc.retry_after or timedelta(seconds=5)
            return Ending(claimed, Outcome.SNOOZED, delay=delay, spends_attempt=False, error_message=exc.message)
        case HandlerFailed():
            return failed(claimed, ErrorCode.ERROR, exc.traceback, retry=task_type)
        case _:
            return failed(claimed, ErrorCode.ERROR, describe(exc), retry=task_type)


def ending_when_stopped(run: Run) -> Ending | None:
    """How a run ends that was asked to."""
    match run.reason:
        case StopReason.CANCELED:
            return Ending(run.claimed, Outcome.CANCELED)
        case StopReason.TIMEOUT:
            limit = run.claimed.timeout_seconds
            return failed(run.claimed, ErrorCode.TIMEOUT, f"It ran longer than {limit} s.", retry=run.task_type)
        case StopReason.SHUTDOWN:
            message = "The worker was stopped while it ran this task."
            return Ending(
                run.claimed,
                Outcome.INTERRUPTED,
                error_code=ErrorCode.INTERRUPTED,
                error_message=message,
                spends_attempt=False,
            )
        case _:
            return None


def describe(exc: BaseException) -> str:
    """The message and the stack, for people who look into a failure."""
    return "".join(traceback.format_exception(exc)).rstrip()
