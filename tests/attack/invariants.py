"""What must hold in the tables whatever was done to the system: read after attacks, storms and ordinary work alike.

Each invariant is a sentence and a query for the rows that break it. Some hold at every moment; the others once the
system is at rest: nothing waits or runs, and everybody has been told. A package adds its own to ``ALL``; every table is
read by an invariant, is ``UNWRITTEN`` so far, or stands in ``NOT_READ`` with the reason. test_invariants.py sees to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.audit import verify
from headrace.database import Database


@dataclass(frozen=True, slots=True)
class Invariant:
    """``sql`` gives the rows that break it; ``at_rest`` if it need not hold while tasks wait and run."""

    holds: str
    tables: tuple[str, ...]
    sql: str
    at_rest: bool = False


@dataclass(frozen=True, slots=True)
class Broken:
    holds: str
    rows: Sequence[dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.holds}: " + "; ".join(", ".join(f"{k}={v}" for k, v in row.items()) for row in self.rows)


# An outcome of an attempt, or of what happened outside any (attempt 0); a line of a handler is neither.
_OUTCOMES = "SELECT * FROM headrace.task_logs WHERE status <> 'LOG'"
# Owners whose account was erased: their tasks keep no logs, by intent.
_KEPT = """
SELECT task.* FROM headrace.tasks AS task JOIN headrace.users AS u ON u.id = task.user_id AND u.status <> 'DELETED'
"""
_OVER = "('SUCCEEDED', 'FAILED', 'CANCELED')"

TASKS = [
    Invariant(
        "a task has one place in the queue until it is over, and none afterwards",
        ("tasks", "task_queue"),
        f"""
        SELECT task.id, task.status, task.queue_seq, array_agg(q.seq) AS places
        FROM headrace.tasks AS task LEFT JOIN headrace.task_queue AS q ON q.task_id = task.id
        WHERE task.status <> 'UPLOADED'
        GROUP BY task.id
        HAVING CASE WHEN task.status IN {_OVER} THEN count(q.seq) > 0 OR task.queue_seq IS NOT NULL
                    ELSE count(q.seq) <> 1 OR min(q.seq) IS DISTINCT FROM task.queue_seq END
        """,
    ),
    Invariant(
        "a place in the queue belongs to a task, in the lane of that task",
        ("task_queue", "task_lanes", "tasks"),
        """
        SELECT q.seq, q.task_id, q.lane_id
        FROM headrace.task_queue AS q
        LEFT JOIN headrace.tasks AS task ON task.id = q.task_id
        LEFT JOIN headrace.task_lanes AS lane ON lane.id = q.lane_id
        WHERE (lane.queue, lane.task_type, lane.user_id) IS DISTINCT FROM (task.queue, task.task_type, task.user_id)
        """,
    ),
    Invariant(
        "nobody who has ended holds a task",
        ("workers", "task_queue"),
        """
        SELECT q.task_id, q.worker, w.ending
        FROM headrace.task_queue AS q LEFT JOIN headrace.workers AS w ON w.number = q.worker
        WHERE q.worker IS NOT NULL AND (w.number IS NULL OR w.ended_at IS NOT NULL)
        """,
    ),
    Invariant(
        "nothing that a worker did counts after it was given up",
        ("workers", "tasks"),
        """
        SELECT task.id, task.finished_at, w.ended_at
        FROM headrace.tasks AS task JOIN headrace.workers AS w ON w.id = task.worker_id
        WHERE w.ending = 'DEAD' AND task.finished_at > w.ended_at
        """,
    ),
    Invariant(
        "attempts are numbered from 1 without a gap, and each has one outcome",
        ("task_logs",),
        f"""
        SELECT task_id, array_agg(attempt || ' ' || status ORDER BY id) AS outcomes
        FROM ({_OUTCOMES}) AS outcome
        WHERE attempt > 0
        GROUP BY task_id
        HAVING (min(attempt), max(attempt), count(DISTINCT attempt)) <> (1, count(*), count(*))
            OR array_agg(attempt ORDER BY id) <> array_agg(attempt ORDER BY attempt)
        """,
    ),
    Invariant(
        "nothing follows a success",
        ("task_logs",),
        f"""
        SELECT done.task_id, done.attempt, later.attempt AS later, later.status
        FROM ({_OUTCOMES}) AS done JOIN ({_OUTCOMES}) AS later ON later.task_id = done.task_id AND later.id > done.id
        WHERE done.status = 'SUCCEEDED'
        """,
    ),
    Invariant(
        "a task that is over has an outcome for each attempt, and its status is the last one",
        ("tasks", "task_logs"),
        f"""
        SELECT task.id, task.status, task.attempt, outcome.ended, outcome.last
        FROM ({_KEPT}) AS task
        LEFT JOIN LATERAL (
          SELECT count(*) FILTER (WHERE attempt > 0) AS ended, (array_agg(status ORDER BY id DESC))[1] AS last
          FROM ({_OUTCOMES}) AS o WHERE o.task_id = task.id
        ) AS outcome ON true
        WHERE task.status IN {_OVER}
          AND (outcome.ended, outcome.last) IS DISTINCT FROM (task.attempt::bigint, task.status)
        """,
    ),
    Invariant(
        "no task failed more often than it may",
        ("tasks",),
        "SELECT id, retries, max_attempts FROM headrace.tasks WHERE retries >= max_attempts",
    ),
    Invariant(
        "what a handler logged and each step belongs to a task and to an attempt that was",
        ("task_logs", "task_steps", "tasks"),
        """
        SELECT line.task_id, line.attempt, task.attempt AS last
        FROM (
          SELECT task_id, attempt FROM headrace.task_logs UNION ALL SELECT task_id, attempt FROM headrace.task_steps
        ) AS line
        LEFT JOIN headrace.tasks AS task ON task.id = line.task_id
        LEFT JOIN headrace.task_queue AS q ON q.task_id = line.task_id
        WHERE task.id IS NULL OR line.attempt > greatest(task.attempt, q.attempt)
        """,
    ),
    Invariant(
        "no step is left running when its task is over",
        ("task_steps", "tasks"),
        f"""
        SELECT step.task_id, step.step_name, step.attempt
        FROM headrace.task_steps AS step JOIN headrace.tasks AS task ON task.id = step.task_id
        WHERE step.status = 'RUNNING' AND task.status IN {_OVER}
        """,
    ),
    Invariant(
        "everything that was submitted is over, and the queue is empty",
        ("tasks", "task_queue"),
        f"SELECT id, task_type, status, attempt FROM headrace.tasks WHERE status NOT IN {_OVER}",
        at_rest=True,
    ),
]

# A type that no worker has registered tells, too.
_TOLD = f"""
SELECT task.id, task.status, task.attempt
FROM ({_KEPT}) AS task LEFT JOIN headrace.task_types AS type ON type.name = task.task_type
WHERE coalesce(type.emits_events, true)
"""
_EVENTS = """
SELECT *, (payload_json ->> 'attempt')::integer AS attempt FROM headrace.outbox_events WHERE aggregate_type = 'task'
"""
EVENTS = [
    Invariant(
        "each attempt that ended was told of once as started",
        ("outbox_events", "task_logs"),
        f"""
        SELECT task.id, outcome.attempt, count(event.id) AS starts
        FROM ({_TOLD}) AS task
        JOIN ({_OUTCOMES}) AS outcome ON outcome.task_id = task.id AND outcome.attempt > 0
        LEFT JOIN ({_EVENTS}) AS event
          ON event.aggregate_id = task.id AND event.event_type = 'task.started' AND event.attempt = outcome.attempt
        GROUP BY task.id, outcome.attempt
        HAVING count(event.id) <> 1
        """,
    ),
    Invariant(
        "each outcome was told of once, and nothing was told that did not happen",
        ("outbox_events", "task_logs"),
        f"""
        SELECT coalesce(outcome.id, event.id) AS id, coalesce(outcome.kind, event.kind) AS kind,
               outcome.number AS happened, event.number AS told
        FROM (
          SELECT task.id, CASE o.status WHEN 'SUCCEEDED' THEN 'task.succeeded' WHEN 'FAILED' THEN 'task.failed'
                                        WHEN 'CANCELED' THEN 'task.canceled' ELSE 'task.retried' END AS kind,
                 count(*) AS number
          FROM ({_TOLD}) AS task JOIN ({_OUTCOMES}) AS o ON o.task_id = task.id
          GROUP BY 1, 2
        ) AS outcome
        FULL JOIN (
          SELECT task.id, e.event_type AS kind, count(*) AS number
          FROM ({_TOLD}) AS task JOIN ({_EVENTS}) AS e ON e.aggregate_id = task.id
          WHERE e.event_type IN ('task.succeeded', 'task.failed', 'task.canceled', 'task.retried')
          GROUP BY 1, 2
        ) AS event USING (id, kind)
        WHERE outcome.number IS DISTINCT FROM event.number
        """,
    ),
    Invariant(
        "a task's events begin with its creation, told once, and a start comes before its end",
        ("outbox_events", "tasks"),
        f"""
        SELECT task.id, array_agg(event.event_type || ' ' || event.attempt ORDER BY event.id) AS events
        FROM ({_TOLD}) AS task LEFT JOIN ({_EVENTS}) AS event ON event.aggregate_id = task.id
        GROUP BY task.id
        HAVING (array_agg(event.event_type ORDER BY event.id))[1] IS DISTINCT FROM 'task.created'
            OR count(*) FILTER (WHERE event.event_type = 'task.created') <> 1
            OR array_agg(event.attempt ORDER BY event.id) <> array_agg(event.attempt ORDER BY event.attempt, event.id)
        """,
    ),
    Invariant(
        "an event of a task is of a task that is there",
        ("outbox_events", "tasks"),
        f"""
        SELECT event.event_id, event.aggregate_id FROM ({_EVENTS}) AS event
        WHERE NOT EXISTS (SELECT FROM headrace.tasks WHERE id = event.aggregate_id)
        """,
    ),
]

SCHEDULES = [
    Invariant(
        "a due time has one chain of runs: attempts from 0 without a gap, one task, nothing behind its end",
        ("task_executions",),
        """
        SELECT task_uid, scheduled_at, array_agg(retry_count || ' ' || state ORDER BY retry_count) AS chain
        FROM headrace.task_executions
        WHERE trigger_type = 'scheduled'
        GROUP BY task_uid, scheduled_at
        HAVING min(retry_count) <> 0 OR max(retry_count) <> count(*) - 1 OR count(DISTINCT task_id) > 1
            OR count(*) FILTER (WHERE state IN ('success', 'cancelled')) > 1
            OR (count(*) FILTER (WHERE state IN ('success', 'cancelled')) = 1
                AND (array_agg(state ORDER BY retry_count DESC))[1] NOT IN ('success', 'cancelled'))
        """,
    ),
    Invariant(
        "a schedule's statistics are what its runs say",
        ("scheduled_tasks", "task_executions"),
        """
        SELECT schedule.uid, schedule.total_executions, counted.*
        FROM headrace.scheduled_tasks AS schedule
        CROSS JOIN LATERAL (
          SELECT count(*) FILTER (WHERE finished_at IS NOT NULL) AS total,
                 count(*) FILTER (WHERE state = 'success') AS successes,
                 count(*) FILTER (WHERE state IN ('failure', 'timeout')) AS failures
          FROM headrace.task_executions AS run WHERE run.task_uid = schedule.uid
        ) AS counted
        WHERE schedule.deleted_at IS NULL
          AND (total_executions, success_executions, failure_executions) IS DISTINCT FROM (total, successes, failures)
        """,
    ),
    Invariant(
        "never more runs at once than the schedule allows",
        ("scheduled_tasks", "task_executions"),
        """
        SELECT schedule.uid, schedule.max_concurrent, count(DISTINCT run.task_id) AS running
        FROM headrace.scheduled_tasks AS schedule JOIN headrace.task_executions AS run ON run.task_uid = schedule.uid
        WHERE run.state IN ('pending', 'running') AND run.task_id IS NOT NULL AND run.trigger_type = 'scheduled'
        GROUP BY schedule.uid
        HAVING count(DISTINCT run.task_id) > schedule.max_concurrent
        """,
    ),
    Invariant(
        "no run is left waiting or running, with its task over or without one",
        ("task_executions",),
        "SELECT task_uid, execution_uid, state, task_id FROM headrace.task_executions WHERE finished_at IS NULL",
        at_rest=True,
    ),
]

LOCKS = [
    Invariant(
        "a lock is taken only after the one before it has ended, and with a higher fence",
        ("task_locks",),
        """
        SELECT later.lock_key, earlier.fence, later.fence AS later_fence
        FROM headrace.task_locks AS later
        JOIN headrace.task_locks AS earlier
          ON earlier.user_id = later.user_id AND earlier.lock_key = later.lock_key AND earlier.fence < later.fence
        WHERE later.acquired_at < coalesce(earlier.released_at, earlier.expires_at)
        """,
    ),
    Invariant(
        "a key's fence is at least that of its last holder",
        ("lock_fences", "task_locks"),
        """
        SELECT held.lock_key, max(held.fence) AS held, known.fence AS known
        FROM headrace.task_locks AS held
        LEFT JOIN headrace.lock_fences AS known ON known.user_id = held.user_id AND known.lock_key = held.lock_key
        GROUP BY held.user_id, held.lock_key, known.fence
        HAVING coalesce(known.fence, 0) < max(held.fence)
        """,
    ),
]

ACCOUNTS = [
    Invariant(
        "who is not active has no session, and who is gone has neither sessions nor keys",
        ("users", "sessions", "api_keys"),
        """
        SELECT u.id, u.status, way.kind
        FROM headrace.users AS u
        JOIN (
          SELECT user_id, 'session' AS kind FROM headrace.sessions WHERE revoked_at IS NULL AND expires_at > now()
          UNION ALL SELECT user_id, 'api key' FROM headrace.api_keys WHERE revoked_at IS NULL
        ) AS way ON way.user_id = u.id
        WHERE u.status = 'DELETED' OR (u.status = 'SUSPENDED' AND way.kind = 'session')
        """,
    ),
    Invariant(
        "the deletion of an account and the account tell the same",
        ("account_deletions", "users", "outbox_events"),
        """
        SELECT going.id, going.status, u.status AS account
        FROM headrace.account_deletions AS going JOIN headrace.users AS u ON u.id = going.user_id
        WHERE (going.status IN ('WAITING', 'RUNNING') AND u.status <> 'SUSPENDED')
           OR (going.status = 'COMPLETED' AND (u.status <> 'DELETED' OR 1 <> (
                SELECT count(*) FROM headrace.outbox_events
                WHERE event_type = 'account.deleted' AND aggregate_id = u.id)))
        """,
    ),
    Invariant(
        "a kept answer that made a task names one that is there",
        ("idempotency_keys", "tasks"),
        """
        SELECT kept.scope, kept.idempotency_key, kept.result_task_id
        FROM headrace.idempotency_keys AS kept
        WHERE kept.result_task_id LIKE 'tsk\\_%'
          AND NOT EXISTS (SELECT FROM headrace.tasks WHERE id = kept.result_task_id)
        """,
    ),
]

AUDIT = [
    Invariant(
        "every event of the trail has a number of its own, from 1 on",
        ("audit_events",),
        "SELECT seq, count(*) FROM headrace.audit_events GROUP BY seq HAVING count(*) > 1 OR seq < 1",
    ),
    Invariant(
        "a task that somebody deleted, and one that somebody submitted over REST, is in the trail",
        ("audit_events", "tasks", "idempotency_keys"),
        f"""
        SELECT task.id, wanted.action
        FROM ({_KEPT}) AS task
        JOIN LATERAL (
          SELECT 'deleted' AS action WHERE task.deleted_at IS NOT NULL
          UNION ALL
          SELECT 'created' FROM headrace.idempotency_keys
          WHERE result_task_id = task.id AND scope = 'tasks.create' AND http_status = 201
        ) AS wanted ON true
        WHERE NOT EXISTS (
          SELECT FROM headrace.audit_events AS event
          WHERE event.resource_type = 'task' AND event.action = wanted.action
            AND event.resource ->> 'identifier' = task.id)
        """,
    ),
]

ALL = [*TASKS, *EVENTS, *SCHEDULES, *LOCKS, *ACCOUNTS, *AUDIT]
SEALS = "the sealed trail is what it was"
SEALED_TABLES = ("audit_events", "audit_seals", "audit_leaves")

# Nothing writes these yet. Whoever begins to will find this broken, and adds to ALL what then must hold.
UNWRITTEN = (
    "assets", "entitlements", "notifications", "plans", "subscriptions", "task_results", "usage_ledger",
    "webhook_deliveries", "webhook_endpoints",
)  # fmt: skip
ALL += [
    Invariant(
        f"{table} is not written yet: say in tests/attack/invariants.py what must hold",
        (table,),
        f"SELECT * FROM headrace.{table}",
    )
    for table in UNWRITTEN
]

NOT_READ = {
    "archives": "its moves are guarded by a trigger, its files verified by tests/operations",
    "audit_imports": "how far an import came; only the importer reads it",
    "login_throttles": "counts that may be lost or late",
    "queues": "what people said of queues; nothing follows from it",
    "rate_limits": "unlogged: a crash empties it, and it may be behind",
    "retention_runs": "what retention did last, for people",
    "schema_migrations": "the runner's own, checked by tests/migrations",
    "system_configs": "single rows with a version; nothing follows from one",
    "task_types": "what workers declare at every start",
    "tech_risk_ledger": "single rows with a version; nothing follows from one",
}


async def broken(db: Database, *, at_rest: bool, most: int = 5) -> list[Broken]:
    """The invariants that do not hold, each with a few of the rows that break it."""
    found = []
    for each in ALL:
        if at_rest or not each.at_rest:
            rows = await db.fetch_alone(f"SELECT * FROM ({each.sql}) AS offending LIMIT {most}")
            if rows:
                found.append(Broken(each.holds, [dict(row) for row in rows]))
    verified = await verify(db)
    if verified.finding is not None:
        found.append(Broken(SEALS, [{"finding": verified.finding.message}]))
    return found
