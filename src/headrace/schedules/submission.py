"""Submits tasks for runs: one statement for many, and a refused run does not affect the others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.audit import Who
from headrace.database import Row, Tx
from headrace.errors import HeadraceError, Invalid, QuotaExhausted
from headrace.tasks.errors import TypeDenied
from headrace.tasks.model import TaskSpec
from headrace.tasks.submit import Submitter


@dataclass(slots=True)
class Run:
    """A run to start: its schedule, and after the submission its task or the refusal."""

    schedule: "Plan"
    execution_uid: str
    task_id: str | None = None
    refused: HeadraceError | None = None
    blocked: bool = False  # another transaction locks the units of its owner: it is retried later
    who: Who | None = None  # who runs it by hand: events carry their request id

    def spec(self) -> TaskSpec:
        spec = self.schedule.spec()
        if self.who is not None:
            spec.trace_id, spec.request_id = self.who.trace_id, self.who.request_id
        return spec


@dataclass(frozen=True, slots=True)
class Plan:
    """The properties of a schedule that its runs need."""

    uid: str
    user_id: str
    name: str
    type: str
    max_duration_seconds: int
    timeout_grace_period: int
    max_extension_seconds: int
    max_retries: int
    max_concurrent: int
    overlap_policy: str
    max_waiting: int | None
    priority: int
    labels: Mapping[str, str]
    data: Any

    @classmethod
    def of(cls, row: Row) -> "Plan":
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})

    def spec(self) -> TaskSpec:
        return TaskSpec(
            type=self.type,
            payload=self.data,
            title=self.name,
            priority=self.priority,
            max_attempts=self.max_retries + 1,
            timeout=timedelta(seconds=self.max_duration_seconds),
            grace=timedelta(seconds=self.timeout_grace_period),
            extension=timedelta(seconds=self.max_extension_seconds) if self.max_extension_seconds else None,
            labels=self.labels,
            schedule_uid=self.uid,
        )


PLAN_COLUMNS = ", ".join(f"schedule.{name}" for name in Plan.__dataclass_fields__)


LOCK_UNITS_OF = "SELECT headrace.lock_units_of($1) AS user_id"


async def submit_runs(tx: Tx, submitter: Submitter, runs: Iterable[Run], *, patient: bool) -> None:
    """Submit a task for each run, with the rights of the schedule's owner. A refused run (type gone or no longer
    permitted, data no longer valid) records the reason.

    A metered run is ``blocked`` while another transaction locks the units of its owner, and the others do not wait for
    it; if ``patient`` it waits a while, and then raises ``RowsLocked``.
    """
    by_user: dict[str, list[Run]] = {}
    for run in runs:
        by_user.setdefault(run.schedule.user_id, []).append(run)
    types = {run.schedule.type for theirs in by_user.values() for run in theirs}
    metered = {name for name in types if await _is_metered(tx, submitter, name)}
    locked: set[str] = set()
    if metered and not patient:
        payers = [user_id for user_id, theirs in by_user.items() if any(run.schedule.type in metered for run in theirs)]
        locked = {row["user_id"] for row in await tx.fetch(LOCK_UNITS_OF, payers)}
    for user_id, theirs in sorted(by_user.items()):  # in a fixed order: concurrent firings must not deadlock on lanes
        await _submit(tx, submitter, [run for run in theirs if run.schedule.type not in metered], user_id)
        costly = [run for run in theirs if run.schedule.type in metered]
        if user_id in locked:
            for run in costly:
                run.blocked = True
        else:
            await _submit_metered(tx, submitter, costly, user_id)


async def _is_metered(tx: Tx, submitter: Submitter, type_name: str) -> bool:
    try:
        return await submitter.is_metered(tx, type_name)
    except Invalid:
        return False  # the submission refuses an unknown type


async def _submit_metered(tx: Tx, submitter: Submitter, runs: Sequence[Run], user_id: str) -> None:
    """Submit metered runs: the database refuses them for lack of units, which rolls back their writes."""
    if not runs:
        return
    try:
        async with tx.savepoint():
            await _submit(tx, submitter, runs, user_id)
            return
    except QuotaExhausted as exhausted:
        for run in runs:
            run.task_id = run.refused = None
        if len(runs) == 1 or exhausted.details.get("left") == 0:
            for run in runs:
                run.refused = exhausted
            return
    # As many as the units allow, in order. Once none are left the others are not tried.
    for number, run in enumerate(runs):
        await _submit_metered(tx, submitter, [run], user_id)
        if isinstance(run.refused, QuotaExhausted) and run.refused.details.get("left") == 0:
            for other in runs[number + 1 :]:
                other.refused = run.refused
            return


async def _submit(tx: Tx, submitter: Submitter, runs: Sequence[Run], user_id: str) -> None:
    if not runs:
        return
    try:
        # Refusals come before any write: the transaction continues.
        task_ids = await submitter.submit_many(tx, [run.spec() for run in runs], user_id=user_id, rights=None)
    except (Invalid, TypeDenied) as refused:
        if len(runs) == 1:
            runs[0].refused = refused
            return
        for run in runs:
            await _submit(tx, submitter, [run], user_id)
        return
    for run, task_id in zip(runs, task_ids, strict=True):
        run.task_id = task_id
