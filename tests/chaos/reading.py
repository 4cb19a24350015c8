"""What is read from the tables when all is quiet: the invariants of every attack, and what this run was promised."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from headrace.database import Database
from tests.attack import invariants
from tests.attack.model import Broken
from tests.attack.task_invariants import DELETED
from tests.chaos.load import Promises
from tests.e2e.program import Program, log_in
from tests.races.engine_stand import ROOT

# In the order in which everybody locks schedules.
CALM = [
    """
    UPDATE headrace.scheduled_tasks SET enabled = false
    WHERE uid = ANY (ARRAY(SELECT uid FROM headrace.scheduled_tasks ORDER BY uid FOR NO KEY UPDATE))
    """,
]
RESTLESS = """
SELECT 'task' AS kind, id, task_type AS type, status FROM headrace.tasks WHERE finished_at IS NULL
UNION ALL SELECT 'run', execution_uid, task_type, state FROM headrace.task_executions WHERE finished_at IS NULL
UNION ALL
SELECT 'worker', id, '', 'silent' FROM headrace.workers WHERE ended_at IS NULL AND heartbeat_at + lease < now()
LIMIT 20
"""

WITHOUT_TASK = """
SELECT id, task_id FROM books.orders WHERE task_id NOT IN (SELECT id FROM headrace.tasks WHERE task_type = 'ordered')
"""
WITHOUT_ORDER = """
SELECT id FROM headrace.tasks WHERE task_type = 'ordered' AND id NOT IN (SELECT task_id FROM books.orders)
"""
MISCOUNTED = """
SELECT counter.*, task.status FROM books.counters AS counter JOIN headrace.tasks AS task ON task.id = counter.task_id
WHERE finishing <> (task.status = 'SUCCEEDED')::integer OR apart < finishing
"""
STARTED_TWICE = "SELECT task_id, attempt FROM books.attempts GROUP BY 1, 2 HAVING count(*) > 1"
OWN = {
    "an order has its task: they were one commit": WITHOUT_TASK,
    "a task that was ordered has its order: they were one commit": WITHOUT_ORDER,
    "what a handler writes in its finishing transaction happens exactly once": MISCOUNTED,
    "an attempt begins once": STARTED_TWICE,
}


async def broken(db: Database, promises: Promises, journal: Path) -> list[Broken]:
    found = await invariants.broken(db, at_rest=True)
    for holds, sql in OWN.items():
        if rows := await db.fetch_alone(f"SELECT * FROM ({sql}) AS offending LIMIT 5"):
            found.append(Broken(holds, [dict(row) for row in rows]))
    there = {row["id"] for row in await db.fetch_alone(f"SELECT id FROM headrace.tasks UNION ALL {DELETED}")}
    if lost := [task for task in promises.tasks.values() if task not in there]:
        found.append(
            Broken("a task that somebody was promised is there, or was deleted", [{"id": task} for task in lost[:5]])
        )
    counters = (await db.fetch_alone("SELECT count(*) AS number FROM books.counters"))[0]["number"]
    if counters < promises.counted:
        found.append(Broken("nothing counted was lost", [{"promised": promises.counted, "there": counters}]))
    runs = Counter(line.split()[1] for line in journal.read_text().splitlines() if line.startswith("once "))
    if twice := [task for task, number in runs.items() if number > 1]:
        found.append(Broken("a task with a single attempt runs at most once", [{"id": task} for task in twice[:5]]))
    return found


FIGURES = """
SELECT (SELECT count(*) FROM headrace.tasks) AS tasks,
       (SELECT json_object_agg(status, number)::text
        FROM (SELECT status, count(*) AS number FROM headrace.task_logs GROUP BY status) AS counted) AS outcomes,
       (SELECT count(*) FROM headrace.task_executions) AS runs,
       (SELECT count(*) FROM headrace.task_executions WHERE state = 'interrupted') AS interrupted_runs,
       (SELECT count(*) FROM headrace.outbox_events) AS events,
       (SELECT count(*) FROM headrace.audit_events) AS audit_events,
       (SELECT count(*) FROM headrace.audit_seals) AS seals,
       (SELECT count(*) FROM headrace.workers) AS workers,
       (SELECT count(*) FROM headrace.workers WHERE ending = 'DEAD') AS workers_given_up,
       (SELECT count(*) FROM books.orders) AS orders,
       (SELECT count(*) FROM headrace.task_locks) AS locks
"""


async def figures(db: Database) -> dict[str, object]:
    return dict((await db.fetch_alone(FIGURES))[0])


HISTORY = """
SELECT at, line FROM (
  SELECT created_at AS at, 'log ' || attempt || ' ' || status || ' ' || coalesce(left(message, 60), '') AS line
  FROM headrace.task_logs WHERE task_id = $1
  UNION ALL
  SELECT created_at, 'event ' || event_type || ' ' || (payload_json ->> 'attempt')
  FROM headrace.outbox_events WHERE aggregate_id = $1
  UNION ALL
  SELECT updated_at,
         'row ' || task_type || ' ' || status || ' attempt ' || attempt || ' by ' || coalesce(worker_id, 'nobody')
  FROM headrace.tasks WHERE id = $1
) AS history ORDER BY at, line
"""


async def histories(db: Database, offences: list[str], most: int = 4) -> list[str]:
    """What became of the first tasks that an offence names, line by line."""
    lines: list[str] = []
    for offence in offences[:most]:
        if named := re.search(r"tsk_[0-9a-z]{26}", offence):
            rows = await db.fetch_alone(HISTORY, named[0])
            lines += [f"{named[0]} {row['at']:%H:%M:%S.%f} {row['line']}" for row in rows]
    return lines


def session_of(url: str, settings: Mapping[str, str], made: str) -> str:
    """Log the new user in, with an API for this moment."""
    api = Program("api", folder=ROOT, settings={**settings, "HEADRACE_DATABASE_URL": url})
    try:
        api.until_ready()
        answer = log_in(api.url(), "chaos", json.loads(made)["password"])
        assert answer.status_code == 200, answer.text
        return str(answer.json()["token"])
    finally:
        api.stop()
        api.close()
