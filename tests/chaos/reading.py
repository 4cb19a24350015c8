"""What is read from the tables when all is quiet: the invariants of every attack, and what this run was promised."""

import re
from collections import Counter
from pathlib import Path

from headrace.database import Database
from headrace.errors import Unavailable
from tests.attack import invariants
from tests.attack.model import Broken
from tests.attack.task_invariants import DELETED
from tests.chaos.judging import judge
from tests.chaos.load import Promises
from tests.chaos.world import World

# In the order in which everybody locks schedules. Ours stop first: those of the product see to orders and refunds that
# nobody told of.
_DISABLE = """
UPDATE headrace.scheduled_tasks SET enabled = false
WHERE uid = ANY (ARRAY(SELECT uid FROM headrace.scheduled_tasks WHERE {which} ORDER BY uid FOR NO KEY UPDATE))
"""
STOP_OURS = _DISABLE.format(which="name NOT LIKE 'headrace: %'")
STOP_ALL = _DISABLE.format(which="true")
# What comes to an end by itself: events that nobody was told of, deliveries to the healthy endpoint, refunds, and
# orders that were paid though nobody told of it and another one closed them: those are asked about at their end.
UNTOLD = """
SELECT 'event' AS kind, event_id AS id, event_type AS type, status FROM headrace.outbox_events
WHERE status IN ('PENDING', 'FAILED')
UNION ALL
SELECT 'delivery', queue.delivery_id, endpoint.name, 'attempt ' || queue.attempt
FROM headrace.webhook_queue AS queue JOIN headrace.webhook_endpoints AS endpoint ON endpoint.id = queue.endpoint_id
WHERE endpoint.name = 'healthy'
UNION ALL SELECT 'order', id, kind, status FROM headrace.payment_orders
WHERE status = 'REFUNDING' OR status IN ('PENDING', 'CLOSED') AND id = ANY ($1)
LIMIT 20
"""
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


async def own_broken(db: Database) -> list[Broken]:
    """Which of ``OWN`` do not hold. One that cannot be read in time is reported, and the others are read."""
    found = []
    for holds, sql in OWN.items():
        try:
            rows = await db.fetch_alone(f"SELECT * FROM ({sql}) AS offending LIMIT 5")
        except Unavailable as exc:
            found.append(Broken(holds, [{"not read": str(exc)}]))
            continue
        if rows:
            found.append(Broken(holds, [dict(row) for row in rows]))
    return found


async def broken(db: Database, promises: Promises, journal: Path, world: World, storage: Path) -> list[Broken]:
    found = await invariants.broken(db, at_rest=True) + await own_broken(db)
    found += [each async for each in judge(db, promises, world, storage)]
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
       (SELECT count(*) FROM books.orders) AS rows_with_a_task,
       (SELECT count(*) FROM headrace.task_locks) AS locks
"""


async def figures(db: Database) -> dict[str, object]:
    return dict((await db.fetch_alone(FIGURES))[0])


JUDGED = """
SELECT (SELECT count(*) FROM headrace.tasks WHERE finished_at IS NOT NULL) AS tasks,
       (SELECT coalesce(sum(consume_unit), 0) FROM headrace.usage_ledger
        WHERE status = 'COMMITTED' AND hold_id IS NOT NULL) AS units,
       (SELECT count(*) FROM headrace.webhook_deliveries WHERE status <> 'PENDING') AS deliveries,
       (SELECT count(*) FROM headrace.assets) AS files,
       (SELECT count(*) FROM headrace.task_results) AS removals,
       (SELECT count(*) FROM headrace.payment_orders WHERE status IN ('PAID', 'REFUNDED')) AS orders
"""
DETAILS = """
SELECT 'removals' AS what, task_type AS kind, status, count(*) AS number FROM headrace.tasks
WHERE task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT') GROUP BY 1, 2, 3
UNION ALL SELECT 'metered tasks', '', status, count(*) FROM headrace.tasks WHERE task_type = 'metered' GROUP BY 1, 2, 3
UNION ALL SELECT 'orders', '', status, count(*) FROM headrace.payment_orders GROUP BY 1, 2, 3
UNION ALL SELECT 'uploads', '', status, count(*) FROM headrace.uploads GROUP BY 1, 2, 3
UNION ALL
SELECT 'deliveries', endpoint.name, sent.status, count(*)
FROM headrace.webhook_deliveries AS sent JOIN headrace.webhook_endpoints AS endpoint ON endpoint.id = sent.endpoint_id
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3
"""


async def judged(db: Database) -> dict[str, int]:
    """How much there was to judge: a run that found nothing wrong with nothing has not shown anything."""
    return {name: int(number) for name, number in dict((await db.fetch_alone(JUDGED))[0]).items()}


WHY_FAILED = """
SELECT task_type, error_code, attempt, left(error_message, 200) AS error, count(*) AS number FROM headrace.tasks
WHERE task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT') AND status = 'FAILED' GROUP BY 1, 2, 3, 4
"""


async def details(db: Database) -> list[str]:
    """How everything ended, by kind; and why removals failed: three lost attempts are no fault of the product."""
    rows = await db.fetch_alone(DETAILS)
    ends = [f"{row['what']} {row['kind']} {row['status']}: {row['number']}".replace("  ", " ") for row in rows]
    failed = [
        f"{row['number']} × {row['task_type']} failed in attempt {row['attempt']}: {row['error_code']} {row['error']}"
        for row in await db.fetch_alone(WHY_FAILED)
    ]
    return [*ends, *failed]


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
