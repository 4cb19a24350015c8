"""Runs one attempt of a task without worker and database, by the same rules."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from headrace import ids
from headrace.tasks.context import BlockingTaskContext, Facts, Reporter
from headrace.tasks.errors import LeaseLost
from headrace.tasks.model import Claimed, Ending, Outcome
from headrace.tasks.registry import Registry, TaskType
from headrace.tasks.units import units
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.runs import Run, StopReason, execute
from headrace.testing.recording import RanStep, Recorder, SavedFile, as_stored


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of one attempt, and the handler's reports."""

    outcome: Outcome
    """``SUCCEEDED``, ``FAILED`` (for good), ``RETRIED`` (failed, and would be tried again), ``SNOOZED`` or
    ``CANCELED``."""
    attempt: int
    """The number of the attempt, from 1."""
    error: BaseException | None = None
    """The exception of the handler."""
    error_code: str | None = None
    """The error code, as in ``tasks.error_code``: ``error``, ``fatal``, ``bad_result``."""
    error_message: str | None = None
    """The message, with the stack if there is one."""
    delay: timedelta = timedelta(0)
    """The pause before the next attempt."""
    progress: list[int] = field(default_factory=list)
    """Every ``context.progress``, in percent."""
    logs: list[str] = field(default_factory=list)
    """Every ``context.log``."""
    steps: list[RanStep] = field(default_factory=list)
    """Every ``context.step``."""
    used: int | None = None
    """The last ``context.used``."""
    saved: SavedFile | None = None
    """The last ``context.save_result``; None if the attempt did not succeed."""
    finished_in: Any = None
    """The connection passed to ``context.finish_in``; it was not used."""
    _result: Any = field(default=None, repr=False)
    _done: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def result(self) -> Any:
        """The handler's return value after a JSON round trip. Raises the handler's exception if it did not succeed."""
        if self.outcome is Outcome.SUCCEEDED:
            return self._result
        if self.error is not None:
            raise self.error
        raise AssertionError(f"The task did not succeed: {self.outcome}. {self.error_message or ''}".rstrip())


def run(
    registry: Registry,
    type: str,  # noqa: A002 - the API's word
    payload: Any = None,
    *,
    after: Ran | None = None,
    canceled: bool = False,
    user_id: str = ids.SYSTEM_USER,
    task_id: str | None = None,
    trace_id: str | None = None,
    max_attempts: int | None = None,
    extension: timedelta = timedelta(0),
    scratch: Path | None = None,
) -> Ran:
    """Run a task's handler once in this process and return the outcome. Needs no database.

    An invalid payload is refused as at submit (``PayloadInvalid``), and return values and exceptions are handled as by
    a worker. ``after`` is the previous attempt, whose finished steps are skipped. ``canceled`` simulates a stop
    request. ``extension`` is the time that the handler may request. ``scratch`` is the parent of its scratch folder; by
    default a temporary one. Handlers with ``isolation="process"`` run in this process, without their limits.
    """
    return asyncio.run(
        run_async(
            registry,
            type,
            payload,
            after=after,
            canceled=canceled,
            user_id=user_id,
            task_id=task_id,
            trace_id=trace_id,
            max_attempts=max_attempts,
            extension=extension,
            scratch=scratch,
        )
    )


async def run_async(
    registry: Registry,
    type: str,  # noqa: A002 - the API's word
    payload: Any = None,
    *,
    after: Ran | None = None,
    canceled: bool = False,
    user_id: str = ids.SYSTEM_USER,
    task_id: str | None = None,
    trace_id: str | None = None,
    max_attempts: int | None = None,
    extension: timedelta = timedelta(0),
    scratch: Path | None = None,
) -> Ran:
    """``run`` for tests that have an event loop."""
    declared = registry.get(type)
    stored = as_stored({} if payload is None else payload)
    declared.check_payload(stored)
    attempt = 1 if after is None else after.attempt + 1
    claimed = Claimed(
        seq=0,
        task_id=task_id or ids.new("tsk"),
        attempt=attempt,
        task_type=type,
        user_id=user_id,
        payload=stored,
        retries=attempt - 1,
        max_attempts=max_attempts or declared.max_attempts,
        timeout_seconds=None if declared.timeout is None else max(1, round(declared.timeout.total_seconds())),
        trace_id=trace_id,
        claimed_at=datetime.now(UTC),
        extension_seconds=round(extension.total_seconds()),
    )
    recorder = Recorder(held=units(type, declared.units_rule, stored), done={} if after is None else after._done)  # noqa: SLF001
    raised: list[BaseException] = []
    stop = asyncio.Event()
    with ExitStack() as stack:
        root = scratch or Path(stack.enter_context(TemporaryDirectory(prefix="headrace-test-")))
        facts = Facts(claimed, declared.steps, root, stop)
        attempted = Run(claimed, _noting(declared, raised), facts, stop, started=time.monotonic())
        if canceled:
            attempted.ask_to_stop(StopReason.CANCELED)
        ending = await execute(attempted, recorder, _ThreadRunner(), WorkerConfig(scratch=root))
    return _outcome_of(declared, ending, recorder, raised, attempt)


def _outcome_of(
    declared: TaskType, ending: Ending | None, recorder: Recorder, raised: list[BaseException], attempt: int
) -> Ran:
    error = raised[-1] if raised else None
    if ending is None:  # a worker would leave the task to the present lease holder
        raise error or LeaseLost()
    connection = None
    if recorder.ended_in is not None and ending.outcome is Outcome.SUCCEEDED:
        connection, finished = recorder.ended_in
        result = as_stored(declared.plain_result(finished))
    else:
        result = None if ending.result is None else orjson.loads(bytes(ending.result))
    return Ran(
        outcome=ending.outcome,
        attempt=attempt,
        error=None if ending.outcome is Outcome.SUCCEEDED else error,
        error_code=ending.error_code,
        error_message=ending.error_message,
        delay=ending.delay,
        progress=recorder.progressed,
        logs=recorder.lines,
        steps=recorder.steps,
        used=recorder.units,
        saved=recorder.saved if ending.outcome is Outcome.SUCCEEDED else None,
        finished_in=connection,
        _result=result,
        _done={step.name: step.detail for step in recorder.steps if step.succeeded},
    )


def _noting(declared: TaskType, raised: list[BaseException]) -> TaskType:
    """The type with a handler that records exceptions: a worker stores only their text."""

    async def on_the_loop(context: Any, payload: Any) -> Any:
        try:
            return await declared.handler(context, payload)
        except BaseException as exc:
            raised.append(exc)
            raise

    def elsewhere(context: Any, payload: Any) -> Any:
        try:
            return declared.handler(context, payload)
        except BaseException as exc:
            raised.append(exc)
            raise

    return replace(declared, handler=on_the_loop if declared.isolation == "async" else elsewhere)


class _ThreadRunner:
    """Runs ``def`` handlers in a thread, so that they may have their own event loop."""

    async def run(self, run: Run, reporter: Reporter) -> Any:
        payload = run.task_type.check_payload(run.claimed.payload)
        context = BlockingTaskContext(run.facts, _Reports(run.claimed, reporter))
        return await asyncio.to_thread(run.task_type.handler, context, payload)


class _Reports:
    """A ``BlockingReporter`` over a reporter whose verbs never suspend."""

    def __init__(self, claimed: Claimed, reporter: Reporter) -> None:
        self._claimed = claimed
        self._reporter = reporter

    def call(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        report = getattr(self._reporter, verb)(self._claimed, *args, **kwargs)
        try:
            report.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError(f"{verb} waits")
