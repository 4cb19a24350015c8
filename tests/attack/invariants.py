"""What must hold in the tables whatever was done to the system: read after attacks, storms and ordinary work alike.

Each invariant is a sentence and a query for the rows that break it. Some hold at every moment; the others once the
system is at rest: nothing waits or runs, and everybody has been told. A package adds its own to ``ALL``; every table is
read by an invariant, is ``UNWRITTEN`` so far, or stands in ``NOT_READ`` with the reason. test_invariants.py sees to it.
"""

from headrace.audit.verifying import verify
from headrace.database import Database
from headrace.errors import Unavailable
from tests.attack.model import Broken, Invariant
from tests.attack.payment_invariants import PAYMENTS
from tests.attack.task_invariants import DELETED, EVENTS, KEPT, TASKS
from tests.attack.webhook_invariants import NOTIFICATIONS, WEBHOOKS

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
          SELECT count(*) FILTER (WHERE finished_at IS NOT NULL AND NOT retried) AS total,
                 count(*) FILTER (WHERE retried) AS retries,
                 count(*) FILTER (WHERE state = 'success') AS successes,
                 count(*) FILTER (WHERE state IN ('failure', 'timeout') AND NOT retried) AS failures
          FROM (
            SELECT run.*, EXISTS (
              SELECT FROM headrace.task_executions AS later
              WHERE later.task_uid = run.task_uid AND later.scheduled_at = run.scheduled_at
                AND later.retry_count = run.retry_count + 1 AND later.task_id IS NOT DISTINCT FROM run.task_id
            ) AS retried
            FROM headrace.task_executions AS run WHERE run.task_uid = schedule.uid
          ) AS run
        ) AS counted
        WHERE schedule.deleted_at IS NULL
          AND (total_executions, retried_attempts, success_executions, failure_executions)
            IS DISTINCT FROM (total, retries, successes, failures)
        """,
    ),
    Invariant(
        "no more runs wait than the schedule's overlap policy lets, unless it was changed while they waited",
        ("scheduled_tasks", "task_executions"),
        """
        SELECT schedule.uid, schedule.overlap_policy, schedule.max_waiting, count(*) AS waiting
        FROM headrace.scheduled_tasks AS schedule JOIN headrace.task_executions AS run ON run.task_uid = schedule.uid
        WHERE schedule.deleted_at IS NULL AND run.state = 'pending' AND run.task_id IS NULL AND NOT EXISTS (
          SELECT FROM headrace.audit_events AS event
          WHERE event.resource_type = 'scheduledTask' AND event.action = 'updated'
            AND event.resource ->> 'identifier' = schedule.uid)
        GROUP BY schedule.uid
        HAVING count(*) > CASE schedule.overlap_policy
          WHEN 'queue_all' THEN schedule.max_waiting WHEN 'queue_one' THEN 1 WHEN 'skip' THEN 0
          ELSE schedule.max_concurrent END
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
        "who has a second factor has its secret, and who is gone has neither it nor links",
        ("users", "second_factors", "recovery_codes", "account_links"),
        """
        SELECT u.id, u.status, 'without its secret' AS fault
        FROM headrace.users AS u
        WHERE u.second_factor_at IS NOT NULL AND u.id NOT IN (SELECT user_id FROM headrace.second_factors)
        UNION ALL
        SELECT u.id, u.status, 'left behind'
        FROM headrace.users AS u
        JOIN (
          SELECT user_id FROM headrace.second_factors UNION ALL SELECT user_id FROM headrace.recovery_codes
          UNION ALL SELECT user_id FROM headrace.account_links
        ) AS credential ON credential.user_id = u.id
        WHERE u.status = 'DELETED'
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
        "a kept answer that made a task names one that is there, or was deleted",
        ("idempotency_keys", "tasks"),
        f"""
        SELECT kept.scope, kept.idempotency_key, kept.result_task_id
        FROM headrace.idempotency_keys AS kept
        WHERE kept.result_task_id LIKE 'tsk\\_%'
          AND kept.result_task_id NOT IN (SELECT id FROM headrace.tasks UNION ALL {DELETED})
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
        FROM ({KEPT}) AS task
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

LEDGER = [
    Invariant(
        "for every entitlement total = left + held + committed, by the ledger alone",
        ("entitlements", "usage_ledger"),
        """
        SELECT entitlement.id, quota_total, quota_left, entry.granted, entry.taken
        FROM headrace.entitlements AS entitlement
        CROSS JOIN LATERAL (
          SELECT coalesce(sum(CASE direction WHEN 'CREDIT' THEN consume_unit ELSE -consume_unit END)
                          FILTER (WHERE status = 'COMMITTED' AND hold_id IS NULL), 0) AS granted,
                 coalesce(sum(CASE status WHEN 'HELD' THEN consume_unit ELSE -consume_unit END)
                          FILTER (WHERE status IN ('HELD', 'RELEASED')), 0) AS taken
          FROM headrace.usage_ledger WHERE entitlement_id = entitlement.id
        ) AS entry
        WHERE (quota_total, quota_left) <> (entry.granted, entry.granted - entry.taken)
        """,
    ),
    Invariant(
        "what is held is settled whole, or belongs to a task that is not over",
        ("usage_ledger", "task_queue"),
        """
        SELECT held.id, held.task_id
        FROM headrace.usage_ledger AS held
        WHERE held.status = 'HELD'
          AND held.consume_unit <> coalesce(
            (SELECT sum(consume_unit) FROM headrace.usage_ledger AS settled WHERE settled.hold_id = held.id), 0)
          AND (EXISTS (SELECT FROM headrace.usage_ledger AS settled WHERE settled.hold_id = held.id)
               OR NOT EXISTS (SELECT FROM headrace.task_queue WHERE task_id = held.task_id AND units IS NOT NULL))
        """,
    ),
    Invariant(
        "the days that were added up are what the ledger says",
        ("usage_days", "usage_ledger"),
        """
        SELECT user_id, day, days.used, days.released, entry.used AS ledger_used, entry.released AS ledger_released
        FROM (
          SELECT user_id, (created_at AT TIME ZONE 'UTC')::date AS day,
                 coalesce(sum(consume_unit) FILTER (WHERE status = 'COMMITTED'), 0) AS used,
                 coalesce(sum(consume_unit) FILTER (WHERE status = 'RELEASED'), 0) AS released
          FROM headrace.usage_ledger
          WHERE status IN ('COMMITTED', 'RELEASED') AND hold_id IS NOT NULL
          GROUP BY 1, 2
        ) AS entry
        LEFT JOIN headrace.usage_days AS days USING (user_id, day)
        WHERE day < (SELECT day FROM headrace.usage_days_horizon)
          AND (days.used, days.released) IS DISTINCT FROM (entry.used, entry.released)
        """,
    ),
]

FILES = [
    Invariant(
        "a file and an upload under way never have the same id, unless the upload has become it",
        ("assets", "uploads"),
        """
        SELECT upload.id, upload.status FROM headrace.uploads AS upload
        WHERE (upload.status = 'COMPLETED')
              <> EXISTS (SELECT FROM headrace.assets WHERE id = upload.asset_id)
        """,
    ),
    Invariant(
        "the key of a file begins with its owner, and rows with the same bytes are one user's",
        ("assets",),
        """
        SELECT id, storage_key FROM headrace.assets AS asset
        WHERE storage_key NOT LIKE user_id || '/%' OR EXISTS (
          SELECT FROM headrace.assets AS other
          WHERE split_part(other.storage_key, '#', 1) = split_part(asset.storage_key, '#', 1)
            AND other.sha256 <> asset.sha256)
        """,
    ),
    Invariant(
        "a file that is there has not been purged, and was told of",
        ("assets", "outbox_events"),
        """
        SELECT id FROM headrace.assets AS asset
        WHERE status = 'UPLOADED' AND (purged_at IS NOT NULL OR NOT EXISTS (
          SELECT FROM headrace.outbox_events
          WHERE aggregate_type = 'asset' AND aggregate_id = asset.id AND event_type = 'asset.uploaded'))
        """,
    ),
    Invariant(
        "no part is larger than its upload's parts, and none comes after the last",
        ("uploads", "upload_parts"),
        """
        SELECT part.* FROM headrace.upload_parts AS part JOIN headrace.uploads AS upload ON upload.id = part.upload_id
        WHERE part.size_bytes > upload.part_bytes OR (part.number - 1) * upload.part_bytes >= upload.size_bytes
        """,
    ),
    Invariant(
        "the result file of a task lies under the task's own name",
        ("task_results",),
        "SELECT task_id, result_key FROM headrace.task_results WHERE result_key NOT LIKE '%/' || task_id || '/%'",
    ),
]

REMOVALS = [
    Invariant(
        "a media task has its declaration of rights, made by its own user for the file that it works on",
        ("removals", "tasks"),
        """
        SELECT task.id FROM headrace.tasks AS task LEFT JOIN headrace.removals AS removal ON removal.task_id = task.id
        WHERE task.task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT')
          AND (removal.user_id, removal.asset_id) IS DISTINCT FROM (task.user_id, task.input_asset_id)
        """,
    ),
    Invariant(
        "a document's password is there no longer than its task is at work",
        ("removal_passwords", "tasks"),
        """
        SELECT task.id FROM headrace.removal_passwords AS password
        JOIN headrace.tasks AS task ON task.id = password.task_id
        WHERE task.status IN ('SUCCEEDED', 'FAILED', 'CANCELED')
        """,
    ),
]

ALL = [
    *TASKS, *EVENTS, *SCHEDULES, *LOCKS, *ACCOUNTS, *PAYMENTS, *AUDIT, *LEDGER, *WEBHOOKS, *NOTIFICATIONS, *FILES,
    *REMOVALS,
]  # fmt: skip
SEALS = "the sealed trail is what it was"
SEALED_TABLES = ("audit_events", "audit_seals", "audit_leaves")

# Nothing writes these yet. Whoever begins to will find this broken, and adds to ALL what then must hold.
UNWRITTEN: tuple[str, ...] = ()
ALL += [
    Invariant(
        f"{table} is not written yet: say in tests/attack/invariants.py what must hold",
        (table,),
        f"SELECT * FROM headrace.{table}",
    )
    for table in UNWRITTEN
]

NOT_READ = {
    "broker_messages": "goes as the broker confirms; tests/outbox/test_nats.py reads the broker itself",
    "relays": "who is there, for those who wake them and for people; it may be late",
    "audit_verified_head": "a bookmark with an HMAC; tests/audit/test_continuing.py forges and removes it",
    "archives": "its moves are guarded by a trigger, its files verified by tests/archive",
    "audit_imports": "how far an import came; only the importer reads it",
    "ledger_verification": "what the last look through the ledger found, for people",
    "login_throttles": "counts that may be lost or late",
    "plans": "single rows with a version; what was bought of one has its own copy",
    "queues": "what people said of queues; nothing follows from it",
    "bulk_actions": "how far an action came; its counters may count a row again after a crash, what it does never is",
    "statistics_durations": "for plots: tests/admin/test_statistics.py compares the percentiles with exact ones",
    "statistics_minutes": "for plots: a minute may be missing, tests/admin/test_statistics.py reads what is there",
    "statistics_queues": "the same",
    "usage_days_horizon": "how far the days are added up",
    "rate_limits": "unlogged: a crash empties it, and it may be behind",
    "row_archives": "only added to, in the commit that deletes the rows; its files verified by tests/archive",
    "retention_minimums": "three rows that only the owner writes; what they forbid in tests/archive",
    "retention_runs": "what retention did last, for people",
    "schema_migrations": "the runner's own, checked by tests/migrations",
    "schema_definitions": "the runner's own, checked by tests/migrations",
    "system_configs": "single rows with a version; nothing follows from one",
    "task_types": "what workers declare at every start",
    "tech_risk_ledger": "single rows with a version; nothing follows from one",
}


async def broken(db: Database, *, at_rest: bool, most: int = 5) -> list[Broken]:
    """The invariants that do not hold, each with a few of the rows that break it."""
    found = []
    for each in ALL:
        if at_rest or not each.at_rest:
            try:
                rows = await db.fetch_alone(f"SELECT * FROM ({each.sql}) AS offending LIMIT {most}")
            except Unavailable as exc:  # it takes too long: the others are read all the same
                found.append(Broken(each.holds, [{"not read": str(exc)}]))
                continue
            if rows:
                found.append(Broken(each.holds, [dict(row) for row in rows]))
    verified = await verify(db)
    if verified.finding is not None:
        found.append(Broken(SEALS, [{"finding": verified.finding.message}]))
    return found
