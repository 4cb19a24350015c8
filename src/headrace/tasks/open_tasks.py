"""The cap on a user's waiting and running tasks, checked without a count at every submission."""

import time
from collections.abc import Callable, Collection
from datetime import timedelta

from headrace.access import Caller
from headrace.database import Tx
from headrace.tasks.errors import TooManyLanes, TooManyOpenTasks
from headrace.tasks.model import TaskStatus

_OPEN = [status.value for status in TaskStatus if not status.is_over]
_COUNT_AGAIN_AFTER = timedelta(seconds=5)
_PART = 10
_MAX_USERS = 10_000

# Reads the index of user and status, at most up to the cap. Concurrent submissions do not see each other: together they
# may exceed the cap by a few tasks.
COUNT_OPEN = """
SELECT count(*) FROM (
  SELECT FROM headrace.tasks WHERE user_id = $1 AND status = ANY ($2) LIMIT $3
) AS waiting
"""


LaneKey = tuple[str, str, str, tuple[tuple[str, str], ...], int]
"""Type, queue, limit key, labels and priority of a task: tasks that are alike in these are claimed together."""

LIST_LANES = """
SELECT DISTINCT task_type, queue, coalesce(limit_key, ''), coalesce(labels, '{}'), priority
FROM headrace.tasks
WHERE user_id = $1 AND status = ANY ($2)
LIMIT $3
"""


class OpenTasks:
    """The counts that one process remembers.

    A count reads an index entry for each task, up to the cap: at 9,000 it took longer than the submission. After a
    count a user may therefore submit a tenth of the rest of the cap before the next count, for a few seconds: up to
    ten processes that do so at once cannot exceed the cap. Close to the cap every submission counts.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[int, float]] = {}  # by user: how many more without a count, and until when
        self._lanes: dict[str, tuple[set[LaneKey], float]] = {}  # by user: those that were seen, and until when

    async def check(self, tx: Tx, caller: Caller, cap: int, more: int) -> None:
        """Raise ``TooManyOpenTasks`` if the user's waiting and running tasks would exceed ``cap``."""
        if caller.is_admin:
            return
        left, until = self._left.get(caller.user_id, (0, 0.0))
        if more <= left and self._clock() < until:
            self._left[caller.user_id] = (left - more, until)
            return
        waiting: int = await tx.fetchval(COUNT_OPEN, caller.user_id, _OPEN, cap)
        if waiting + more > cap:
            raise TooManyOpenTasks(
                f"A user may have {cap:,} tasks that wait or run: wait until some are over, or cancel some "
                "(HEADRACE_USER_OPEN_TASKS).",
                cap="open_tasks",
                most=cap,
            )
        if len(self._left) >= _MAX_USERS:
            self._left.clear()
        until = self._clock() + _COUNT_AGAIN_AFTER.total_seconds()
        self._left[caller.user_id] = ((cap - waiting - more) // _PART, until)

    async def check_lanes(self, tx: Tx, caller: Caller, cap: int, wanted: Collection[LaneKey]) -> None:
        """Raise ``TooManyLanes`` if the user's tasks would wait in more than ``cap`` lanes: every worker that can
        claim from a lane reads it. The user's lanes are remembered for a few seconds."""
        if caller.is_admin or not wanted:
            return
        seen, until = self._lanes.get(caller.user_id, (set(), 0.0))
        if self._clock() >= until:
            rows = await tx.fetch(LIST_LANES, caller.user_id, _OPEN, cap)
            seen = {(kind, queue, key, tuple(sorted(labels.items())), rank) for kind, queue, key, labels, rank in rows}
            until = self._clock() + _COUNT_AGAIN_AFTER.total_seconds()
        lanes = seen.union(wanted)
        if len(lanes) > max(cap, len(seen)):
            raise TooManyLanes(
                f"A user's tasks may wait under {cap:,} different limit keys, labels and priorities: wait until some "
                "are over, or use fewer (HEADRACE_USER_LANES).",
                cap="lanes",
                most=cap,
            )
        if len(self._lanes) >= _MAX_USERS:
            self._lanes.clear()
        self._lanes[caller.user_id] = lanes, until
