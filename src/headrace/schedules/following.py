"""Moves runs with their tasks, in the same transaction: start, end, next attempt, and the schedule's counts.

A run that ends frees its slot: the same transaction starts a run that waits for one of ``max_concurrent``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from headrace.database import Tx
from headrace.schedules.errors import RunOfSchedule
from headrace.schedules.firing import release_held
from headrace.schedules.model import ExecutionState, new_execution_uid
from headrace.schedules.truncation import error_texts, result_text
from headrace.tasks.model import Change, ErrorCode, Transition
from headrace.tasks.submit import Submitter

FOLLOW = "SELECT headrace.follow_executions($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS uid"
PROGRESS = """
UPDATE headrace.task_executions AS run SET progress = given.progress, updated_at = now()
FROM unnest($1::varchar[], $2::integer[]) AS given (task_id, progress)
WHERE run.task_id = given.task_id AND run.state = 'running'
"""
EXTEND = """
UPDATE headrace.task_executions AS run
SET deadline_at = run.deadline_at + make_interval(secs => given.seconds), updated_at = now()
FROM unnest($1::varchar[], $2::integer[]) AS given (task_id, seconds)
WHERE run.task_id = given.task_id AND run.state = 'running'
"""
HAS_RUNS = "SELECT EXISTS (SELECT FROM headrace.task_executions WHERE task_id = $1)"

_ENDS: Mapping[Change, ExecutionState] = {
    Change.SUCCEEDED: ExecutionState.SUCCESS,
    Change.FAILED: ExecutionState.FAILURE,
    Change.CANCELED: ExecutionState.CANCELLED,
    Change.RETRIED: ExecutionState.FAILURE,
}
_BY_CODE: Mapping[str | None, ExecutionState] = {
    ErrorCode.TIMEOUT: ExecutionState.TIMEOUT,
    ErrorCode.INTERRUPTED: ExecutionState.INTERRUPTED,
    None: ExecutionState.INTERRUPTED,  # snoozed by its handler: neither a success nor a failure
}


@dataclass(slots=True)
class _Moved:
    """The changes of one task in one batch."""

    schedule_uid: str
    worker: str | None = None
    started_at: datetime | None = None
    timeout: int | None = None
    state: ExecutionState | None = None
    again: bool = False
    result: str | None = None
    message: str | None = None
    stack: str | None = None


class ExecutionFollower:
    """The follower of tasks that schedules submitted."""

    def __init__(self) -> None:
        self._submitter: Submitter

    def submits_with(self, submitter: Submitter) -> None:
        self._submitter = submitter

    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:
        moves: dict[str, _Moved] = {}
        progress: dict[str, int] = {}
        extended: dict[str, int] = {}
        for each in transitions:
            match each:
                case Transition(change=Change.CREATED | Change.STEP_CHANGED) | Transition(schedule_uid=None):
                    continue
                case Transition(change=Change.PROGRESSED, progress=int(percent)):
                    progress[each.task_id] = percent
                case Transition(change=Change.EXTENDED, extended_seconds=int(seconds)):
                    extended[each.task_id] = extended.get(each.task_id, 0) + seconds
                case Transition(change=Change.REVIVED):
                    await _refuse_by_hand(tx, each.task_id)
                case _:
                    assert each.schedule_uid is not None
                    _apply(moves.setdefault(each.task_id, _Moved(each.schedule_uid)), each)
        if progress:
            await tx.execute(PROGRESS, list(progress), list(progress.values()))
        if extended:
            await tx.execute(EXTEND, list(extended), list(extended.values()))
        if moves:
            await self._move(tx, moves)

    async def _move(self, tx: Tx, moves: Mapping[str, _Moved]) -> None:
        moved = list(moves.values())
        rows = await tx.fetch(
            FOLLOW,
            list(moves),
            [each.schedule_uid for each in moved],
            [each.worker for each in moved],
            [each.started_at for each in moved],
            [each.timeout for each in moved],
            [each.state for each in moved],
            [each.again for each in moved],
            [new_execution_uid() if each.again else None for each in moved],
            [each.result for each in moved],
            [each.message for each in moved],
            [each.stack for each in moved],
        )
        waiting = sorted(row["uid"] for row in rows if row["uid"] is not None)
        if waiting:
            await release_held(tx, self._submitter, waiting, patient=False)


def _apply(moved: _Moved, each: Transition) -> None:
    moved.worker = each.worker_id or moved.worker
    moved.started_at = each.started_at or moved.started_at
    moved.timeout = each.timeout_seconds or moved.timeout
    state = _ENDS.get(each.change)
    if state is None:
        return
    if state is ExecutionState.FAILURE:
        state = _BY_CODE.get(each.error_code, state)
    moved.state, moved.again = state, each.change is Change.RETRIED
    moved.result = result_text(each.result) if state is ExecutionState.SUCCESS else None
    moved.message, moved.stack = error_texts(each.error_message)


async def _refuse_by_hand(tx: Tx, task_id: str) -> None:
    # An ended run stays ended, and another may have its slot: only the schedule can start one more.
    if await tx.fetchval(HAS_RUNS, task_id):
        raise RunOfSchedule
