"""What must hold of tasks, their attempts and the events that tell of them."""

from tests.attack.model import Invariant

# An outcome of an attempt, or of what happened outside any (attempt 0); a line of a handler is neither.
# By the trail: the tasks themselves are purged soon after.
DELETED = """
SELECT resource ->> 'identifier' AS id FROM headrace.audit_events WHERE resource_type = 'task' AND action = 'deleted'
"""
_OUTCOMES = "SELECT * FROM headrace.task_logs WHERE status <> 'LOG'"
# Owners whose account was erased: their tasks keep no logs, by intent.
KEPT = """
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
        "a place in the queue has the route of its lane, which says what the lane says",
        ("task_queue", "task_lanes", "task_routes"),
        """
        SELECT q.seq, q.task_id, q.lane_id, q.route_id
        FROM headrace.task_queue AS q
        JOIN headrace.task_lanes AS lane ON lane.id = q.lane_id
        LEFT JOIN headrace.task_routes AS route ON route.id = q.route_id
        WHERE q.route_id <> 0 AND (lane.route_id, lane.queue, lane.task_type, lane.labels)
              IS DISTINCT FROM (route.id, route.queue, route.task_type, route.labels)
        """,
    ),
    Invariant(
        "a task that waits for its time is held by nobody",
        ("task_queue",),
        "SELECT seq, task_id, worker FROM headrace.task_queue WHERE delayed AND worker IS NOT NULL",
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
        FROM ({KEPT}) AS task
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

# A type that no worker has registered tells, too; and nobody is told who did not want to know when it was submitted.
_TOLD = f"""
SELECT task.id, task.status, task.attempt
FROM ({KEPT}) AS task LEFT JOIN headrace.task_types AS type ON type.name = task.task_type
WHERE coalesce(type.emits_events, true) AND (type.emits_always OR EXISTS (
  SELECT FROM headrace.event_interests AS interest
  WHERE interest.pattern IN ('*', 'task.*') AND interest.user_id IS NULL AND interest.task_type IS NULL
    AND interest.created_at <= task.created_at
))
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
                                        WHEN 'CANCELED' THEN 'task.canceled'
                                        ELSE CASE o.attempt WHEN 0 THEN 'task.revived' ELSE 'task.retried' END
                          END AS kind,
                 count(*) AS number
          FROM ({_TOLD}) AS task JOIN ({_OUTCOMES}) AS o ON o.task_id = task.id
          GROUP BY 1, 2
        ) AS outcome
        FULL JOIN (
          SELECT task.id, e.event_type AS kind, count(*) AS number
          FROM ({_TOLD}) AS task JOIN ({_EVENTS}) AS e ON e.aggregate_id = task.id
          WHERE e.event_type IN ('task.succeeded', 'task.failed', 'task.canceled', 'task.retried', 'task.revived')
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
        "an event of a task is of a task that is there, or was deleted",
        ("outbox_events", "tasks"),
        f"""
        SELECT event.event_id, event.aggregate_id FROM ({_EVENTS}) AS event
        WHERE event.aggregate_id NOT IN (SELECT id FROM headrace.tasks UNION ALL {DELETED})
        """,
    ),
    Invariant(
        "no event was published before an earlier one of its aggregate that still waits",
        ("outbox_events",),
        """
        SELECT event.event_id, event.aggregate_id, earlier.event_id AS overtaken
        FROM headrace.outbox_events AS event
        JOIN headrace.outbox_events AS earlier USING (aggregate_type, aggregate_id)
        WHERE event.status = 'PUBLISHED' AND earlier.status IN ('PENDING', 'FAILED') AND earlier.id < event.id
        """,
    ),
]
