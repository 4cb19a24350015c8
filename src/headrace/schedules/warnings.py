"""What is allowed, and yet worth saying about a schedule."""

from collections.abc import Sequence

from headrace.database import Tx
from headrace.schedules.model import Schedule
from headrace.tasks import why
from headrace.tasks.errors import UnknownTaskType
from headrace.tasks.model import DEFAULT_QUEUE
from headrace.tasks.service import Tasks
from headrace.tasks.why import Reason


async def warnings_of(tx: Tx, tasks: Tasks, schedule: Schedule) -> Sequence[Reason]:
    """Why its runs would wait: no worker that is alive takes them. One that is disabled has none."""
    if not schedule.enabled:
        return []
    try:
        queue = (await tasks.catalog.get(tx, schedule.type)).queue
    except UnknownTaskType:  # its runs will fail, and say so
        queue = DEFAULT_QUEUE
    nobody = await why.nobody_takes(tx, schedule.type, queue, schedule.labels)
    return [] if nobody is None else [nobody]
