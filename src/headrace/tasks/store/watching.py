"""SQL for following tasks while they run."""

from collections.abc import Sequence
from typing import NamedTuple

from headrace.database import Database
from headrace.tasks.model import Task
from headrace.tasks.store.tasks import LEASE, SHOWN, task_of


class Position(NamedTuple):
    """How far one has seen a task. Two that are the same show the same task and the same lines.

    The version tells every write of the task's row; the attempt tells that a worker has taken it, which the row says
    only a moment later.
    """

    version: int
    attempt: int
    log_id: int


FIND_POSITIONS = """
SELECT task.id, task.version, CASE WHEN place.worker IS NULL THEN task.attempt ELSE place.attempt END,
       coalesce((SELECT max(line.id) FROM headrace.task_logs AS line WHERE line.task_id = task.id), 0)
FROM unnest($1::varchar[]) AS watched (id)
CROSS JOIN LATERAL (
  SELECT * FROM headrace.tasks WHERE tasks.id = watched.id AND tasks.deleted_at IS NULL LIMIT 1
) AS task
LEFT JOIN LATERAL (
  SELECT q.worker, q.attempt FROM headrace.task_queue AS q WHERE q.seq = task.queue_seq LIMIT 1
) AS place ON true
"""


async def find_positions(db: Database, task_ids: Sequence[str]) -> dict[str, Position]:
    """Where these stand now, in one statement; those that are gone are left out."""
    return {row[0]: Position(*tuple(row)[1:]) for row in await db.fetch_alone(FIND_POSITIONS, list(task_ids))}


# All of what has changed, with its end's result, and nothing of the rest. A watched version of null waits for the end
# alone. JSON and not arrays: of those the driver reads the catalog, on each new connection, and for longer than a look.
FIND_CHANGED = f"""
SELECT watched.number, {SHOWN}, task.payload, task.result
FROM jsonb_to_recordset($1) AS watched (number integer, id varchar, seen bigint)
LEFT JOIN LATERAL (
  SELECT * FROM headrace.tasks WHERE tasks.id = watched.id AND tasks.deleted_at IS NULL LIMIT 1
) AS task ON true {LEASE}
WHERE task.id IS NULL OR task.finished_at IS NOT NULL OR task.version <> watched.seen
"""


class Gone:
    """Stands for a task that is not there any more."""


async def find_changed(db: Database, watched: Sequence[tuple[str, int | None]]) -> list[Task | type[Gone] | None]:
    """For each task and the version that was seen of it: the task if it has changed, None if it has not. For the
    version None only its end is a change."""
    found: list[Task | type[Gone] | None] = [None] * len(watched)
    asked = [{"number": number, "id": task_id, "seen": seen} for number, (task_id, seen) in enumerate(watched)]
    for row in await db.fetch_alone(FIND_CHANGED, asked):
        found[row["number"]] = Gone if row["id"] is None else task_of(row)
    return found
