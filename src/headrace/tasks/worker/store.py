"""The worker's SQL. Every write names worker, seq and attempt: a task that is no longer ours is not changed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from headrace.database import Database, Row, Tx
from headrace.tasks.errors import LeaseLost, WorkerGone
from headrace.tasks.model import FIRST_STATUS, Claimed, Ending, Outcome


@dataclass(frozen=True, slots=True)
class Identity:
    """A worker as the database knows it: the number in narrow rows, the id everywhere else."""

    number: int
    id: str


REGISTER = """
INSERT INTO headrace.workers (id, host, pid, queues, types, labels, concurrency, lease, slots)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
RETURNING number
"""


async def register(
    tx: Tx,
    worker_id: str,
    *,
    host: str,
    pid: int,
    queues: Sequence[str] | None,
    labels: dict[str, str],
    slots: Sequence[tuple[str, int, Sequence[str]]],
    lease: timedelta,
) -> Identity:
    queue_names = None if queues is None else list(queues)
    pools = {pool: {"slots": size, "running": 0, "types": list(names)} for pool, size, names in slots}
    types = sorted(name for _, _, names in slots for name in names)
    total = sum(size for _, size, _ in slots)
    number = await tx.fetchval(REGISTER, worker_id, host, pid, queue_names, types, labels, total, lease, pools)
    return Identity(number, worker_id)


# An expired lease is over even before it is noticed: the reaper may be at work on the worker's tasks.
BEAT = """
UPDATE headrace.workers
SET heartbeat_at = now(), running = $2, finished = $3, slots = (
  SELECT coalesce(jsonb_object_agg(kind.key, kind.value || jsonb_build_object('running', $4::jsonb -> kind.key)), '{}')
  FROM jsonb_each(slots) AS kind
)
WHERE number = $1 AND ended_at IS NULL AND heartbeat_at + lease >= now()
RETURNING number
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a worker says with each heartbeat."""

    running: Mapping[str, int]
    finished: int


def beat_arguments(counts: Counts) -> tuple[object, ...]:
    return sum(counts.running.values()), counts.finished, counts.running


SET_ASLEEP = "UPDATE headrace.workers SET asleep = $2 WHERE number = $1 AND asleep <> $2"


async def set_asleep(db: Database, worker: Identity, *, asleep: bool) -> None:
    await db.fetch_alone(SET_ASLEEP, worker.number, asleep)


STOPPING = "UPDATE headrace.workers SET stopping_at = now() WHERE number = $1 AND ended_at IS NULL"
# This row lock waits for the claim that is under way, and keeps new ones away until we commit.
HOLD_WORKER = "SELECT FROM headrace.workers WHERE number = $1 FOR UPDATE"
STOPPED = """
UPDATE headrace.workers SET ended_at = now(), ending = 'STOPPED'
WHERE number = $1 AND ended_at IS NULL AND NOT EXISTS (SELECT FROM headrace.task_queue WHERE worker = $1)
"""


async def say_stopping(db: Database, worker: Identity) -> None:
    await db.fetch_alone(STOPPING, worker.number)


async def say_stopped(db: Database, worker: Identity) -> bool:
    """Leave in good order; False if something is still ours: then silence is left to speak, and the reaper hears it."""
    async with db.transaction() as tx:
        await tx.execute(HOLD_WORKER, worker.number)
        return await tx.count(STOPPED, worker.number) == 1


# The row without a lane has the time of the next delayed task, of any worker.
SURVEY = """
SELECT found.precedence, found.lane_id, found.run_at, found.seq, found.only_once, found.wait_seconds,
       lane.task_type, lane.user_id
FROM headrace.survey_lanes($1, $2, $3, $4, $5, $6) AS found
-- Looked up one by one: any other join could change the order.
LEFT JOIN LATERAL (
  SELECT known.task_type, known.user_id FROM headrace.task_lanes AS known WHERE known.id = found.lane_id OFFSET 0
) AS lane ON true
UNION ALL
SELECT NULL, NULL, run_at, seq, NULL, extract(epoch FROM run_at - now())::double precision, NULL, NULL
FROM (SELECT run_at, seq FROM headrace.task_queue WHERE delayed ORDER BY run_at, seq LIMIT 1) AS first_delayed
"""


async def survey(
    db: Database,
    *,
    queues: Sequence[str] | None,
    types: Sequence[str],
    labels: dict[str, str],
    after: tuple[int, int],
    most: int,
) -> list[Row]:
    return await db.fetch_alone(SURVEY, queues, types, labels, *after, most)


LANE_FACTS = "SELECT id, task_type, user_id FROM headrace.task_lanes WHERE id = ANY ($1)"


async def lane_facts(db: Database, lanes: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Type and user of lanes that were committed during the survey: its function saw them, the statement did not."""
    return {row["id"]: (row["task_type"], row["user_id"]) for row in await db.fetch_alone(LANE_FACTS, lanes)}


CLAIM = "SELECT * FROM headrace.claim_tasks($1, $2, $3, $4, $5, $6, $7)"


async def claim(db: Database, worker: Identity, lanes: Sequence[Any], shares: Sequence[int], *, most: int) -> list[Row]:
    """Claim up to ``most`` tasks from these lanes (see claiming.Lane); ``WorkerGone`` if we are no longer a worker."""
    floors = [list(column) for column in zip(*((e.lane_id, e.precedence, e.run_at, e.seq) for e in lanes), strict=True)]
    return await _fetch_claims(db, CLAIM, worker.number, *floors, shares, most)


CLAIM_FIRST = "SELECT * FROM headrace.claim_first($1, $2, $3, $4, $5, $6)"


async def claim_first(
    db: Database,
    worker: Identity,
    *,
    queues: Sequence[str] | None,
    types: Sequence[str],
    labels: dict[str, str],
    most: int,
    startable: int,
) -> list[Row]:
    """Claim due tasks of the highest priority, without a survey before it."""
    return await _fetch_claims(db, CLAIM_FIRST, worker.number, queues, types, labels, most, startable)


async def _fetch_claims(db: Database, sql: str, *args: object) -> list[Row]:
    try:
        return await db.fetch_alone(sql, *args)
    except asyncpg.PostgresError as exc:
        if exc.sqlstate == "HR001":
            raise WorkerGone from exc
        raise


LOST_CLAIMS = """
SELECT q.seq, q.attempt, q.task_id, q.claimed_at, task.user_id, task.task_type, task.payload, task.retries,
       task.max_attempts, task.timeout_seconds, task.trace_id, task.schedule_uid, task.grace_seconds,
       task.extension_seconds
FROM headrace.task_queue AS q
JOIN headrace.tasks AS task ON task.id = q.task_id
WHERE q.worker = $1 AND q.claimed_at > coalesce($2::timestamptz, '-infinity') AND q.claimed_at <> ALL ($3)
ORDER BY q.seq
"""


async def lost_claims(
    db: Database, worker: Identity, *, after: datetime | None, exclude: Collection[datetime]
) -> list[Row]:
    """What we hold of later claims than ``after``, except these: as CLAIM would have given it."""
    return await db.fetch_alone(LOST_CLAIMS, worker.number, after, list(exclude))


# Others who sleep are woken: we give back because we stop, or are no longer who took it.
UNCLAIM = """
WITH back AS MATERIALIZED (
  SELECT headrace.unclaim_tasks($1, $2, $3) AS seq
), woken AS MATERIALIZED (
  SELECT pg_notify('headrace_tasks', '')
  FROM headrace.workers
  WHERE ended_at IS NULL AND asleep AND number <> $1 AND EXISTS (SELECT FROM back)
  LIMIT 1
)
SELECT back.seq FROM back LEFT JOIN woken ON true
"""


async def unclaim(db: Database, worker: Identity, tasks: Sequence[Claimed]) -> set[int]:
    """Return tasks that never started; gives the seqs of those that went back."""
    rows = await db.fetch_alone(UNCLAIM, worker.number, [each.seq for each in tasks], [each.attempt for each in tasks])
    return {row["seq"] for row in rows}


FINISH = "SELECT headrace.finish_tasks($1, $2, $3, $4, $5, $6, $7, $8) AS seq"
FINISH_AND_EMIT = """
SELECT headrace.finish_tasks($1, $2, $3, $4, NULL, $5, NULL, NULL, emits => true, told => $6, unsure => $7) AS seq
"""


def _in_order(endings: Sequence[Ending]) -> Sequence[Ending]:
    """finish_tasks deletes narrow rows and puts beside them what was given by position: in the order of seq."""
    return sorted(endings, key=lambda each: each.claimed.seq)


def finish_arguments(worker: Identity, endings: Sequence[Ending]) -> tuple[object, ...]:
    endings = _in_order(endings)
    seqs = [each.claimed.seq for each in endings]
    attempts = [each.claimed.attempt for each in endings]
    results = [each.result for each in endings]
    if all(each.outcome is Outcome.SUCCEEDED for each in endings):
        # Three arrays instead of six: encoding them is a good part of what a short task costs.
        return worker.number, worker.id, seqs, attempts, None, results, None, None
    return (
        worker.number,
        worker.id,
        seqs,
        attempts,
        [each.outcome for each in endings],
        results,
        [each.error_code for each in endings],
        [each.error_message for each in endings],
    )


async def finish_and_emit(db: Database, worker: Identity, endings: Sequence[Ending]) -> set[int]:
    """Write ends that all are successes, and these tasks' events with subscribers, as one statement."""
    endings = _in_order(endings)
    claims = [each.claimed for each in endings]
    rows = await db.fetch_alone(
        FINISH_AND_EMIT,
        worker.number,
        worker.id,
        [each.seq for each in claims],
        [each.attempt for each in claims],
        [each.result for each in endings],
        [each.seq for each in claims if each.start_reported],
        any(each.start_sent and not each.start_reported for each in claims),
    )
    return {row["seq"] for row in rows}


async def finish(on: Tx | Database, worker: Identity, endings: Sequence[Ending]) -> set[int]:
    """Write ends, in a transaction or as one; gives the seqs that were still ours."""
    fetch = on.fetch if isinstance(on, Tx) else on.fetch_alone
    return {row["seq"] for row in await fetch(FINISH, *finish_arguments(worker, endings))}


# Wakes sleeping workers, also this one: a slot of a limit may be free, and the returned tasks will be due. A wake-up
# leads to a claim and not to another return, so this cannot loop for ever.
RETURN = """
WITH back AS MATERIALIZED (
  SELECT seq FROM headrace.requeue_tasks($1, $2, $3, $4, $5, $6, $7, $8)
), woken AS MATERIALIZED (
  SELECT pg_notify('headrace_tasks', '')
  FROM headrace.workers
  WHERE ended_at IS NULL AND asleep AND EXISTS (SELECT FROM back)
  LIMIT 1
)
SELECT back.seq FROM back LEFT JOIN woken ON true
"""
_RETURNED_AT_ONCE = 200
# A time that no program can read would stop every worker at the survey.
MAX_DELAY = timedelta(days=36525)


async def requeue_tasks(tx: Tx, worker: Identity, endings: Sequence[Ending]) -> set[int]:
    """Return tasks to the queue; gives the seqs that were still ours and have no cancellation request."""
    returned: set[int] = set()
    for start in range(0, len(endings), _RETURNED_AT_ONCE):
        part = endings[start : start + _RETURNED_AT_ONCE]
        rows = await tx.fetch(
            RETURN,
            worker.number,
            [each.claimed.seq for each in part],
            [each.claimed.attempt for each in part],
            [each.outcome for each in part],
            [min(each.delay, MAX_DELAY) for each in part],
            [each.spends_attempt for each in part],
            [each.error_code for each in part],
            [each.error_message for each in part],
        )
        returned.update(row["seq"] for row in rows)
    return returned


CANCELS = "SELECT seq FROM headrace.task_queue WHERE worker = $1 AND cancel_requested"


async def cancels(db: Database, worker: Identity) -> set[int]:
    return {row["seq"] for row in await db.fetch_alone(CANCELS, worker.number)}


USED = """
UPDATE headrace.task_queue SET used = CASE WHEN $4 <= units THEN $4 ELSE used END
WHERE seq = $1 AND worker = $2 AND attempt = $3
RETURNING units
"""


async def note_used(db: Database, worker: Identity, claimed: Claimed, units: int) -> int | None:
    """Record the used units, unless they are more than held; gives the held ones. ``LeaseLost`` if not ours."""
    rows = await db.fetch_alone(USED, claimed.seq, worker.number, claimed.attempt, units)
    if not rows:
        raise LeaseLost
    held: int | None = rows[0]["units"]
    return held


# The queue row is locked first, so that a reaper cannot give the task away between the look and the write.
START = f"""
WITH mine AS MATERIALIZED (
  SELECT q.task_id, q.attempt, q.claimed_at
  FROM headrace.task_queue AS q
  WHERE q.seq = ANY ($2) AND q.worker = $1 AND headrace.fence(q.seq, q.attempt) = ANY (headrace.fences($2, $3))
  FOR UPDATE
)
UPDATE headrace.tasks AS task
SET status = {FIRST_STATUS}, attempt = mine.attempt, worker_id = $4, started_at = mine.claimed_at, updated_at = now(),
    version = task.version + 1
FROM mine
WHERE task.id = mine.task_id AND task.status = 'QUEUED'
RETURNING task.id
"""


async def write_start(tx: Tx, worker: Identity, tasks: Sequence[Claimed]) -> set[str]:
    """Show on the wide row that these run; gives the ids of those that are still ours."""
    rows = await tx.fetch(
        START, worker.number, [each.seq for each in tasks], [each.attempt for each in tasks], worker.id
    )
    return {row["id"] for row in rows}


STARTED = "SELECT headrace.started_tasks($1, $2, $3) AS seq"


async def find_started(tx: Tx, worker: Identity, tasks: Sequence[Claimed]) -> set[int]:
    """Lock these claims until the end of the transaction; gives the seqs of those whose start is on the wide row."""
    rows = await tx.fetch(STARTED, worker.number, [each.seq for each in tasks], [each.attempt for each in tasks])
    return {row["seq"] for row in rows}


HOLD = "SELECT true FROM headrace.task_queue WHERE seq = $1 AND worker = $2 AND attempt = $3 FOR UPDATE"


async def hold(tx: Tx, worker: Identity, claimed: Claimed) -> bool:
    """Lock our claim until the end of the transaction; False if it is no longer ours."""
    return bool(await tx.fetchval(HOLD, claimed.seq, worker.number, claimed.attempt))


PROGRESS = f"""
UPDATE headrace.tasks AS task
SET progress = $2, eta_sec = $3, updated_at = now(), version = version + 1,
    status = CASE WHEN status = 'QUEUED' THEN {FIRST_STATUS} ELSE status END,
    attempt = $4, worker_id = $5, started_at = $6
WHERE id = $1
"""
STEP_SHOWN = """
UPDATE headrace.tasks
SET current_step = $2, status = $3, attempt = $4, worker_id = $5, started_at = $6, updated_at = now(),
    version = version + 1
WHERE id = $1
"""
LOG = "INSERT INTO headrace.task_logs (task_id, attempt, status, message) VALUES ($1, $2, $3, $4)"
FIND_DONE_STEP = """
SELECT detail_json FROM headrace.task_steps
WHERE task_id = $1 AND step_name = $2 AND status = 'SUCCESS'
ORDER BY attempt DESC LIMIT 1
"""
# A step may be entered again within an attempt (a loop); the row shows the last time.
BEGIN_STEP = """
INSERT INTO headrace.task_steps (task_id, step_name, status, attempt, started_at, detail_json, trace_id)
VALUES ($1, $2, $3, $4, now(), $5, $6)
ON CONFLICT (task_id, step_name, attempt) DO UPDATE SET status = excluded.status, started_at = now(), ended_at = NULL
"""
END_STEP = """
UPDATE headrace.task_steps SET status = $4, ended_at = now(), duration_ms = $5, detail_json = $6
WHERE task_id = $1 AND step_name = $2 AND attempt = $3
"""
# Steps whose run could not end them any more: the worker died, or the connection broke.
END_OPEN_STEPS = """
UPDATE headrace.task_steps AS step
SET status = 'FAILED', ended_at = now(),
    duration_ms = least(extract(epoch FROM now() - step.started_at) * 1000, 2147483647)
WHERE step.task_id = ANY ($1) AND step.status = 'RUNNING'
"""


async def end_open_steps(tx: Tx, task_ids: Sequence[str]) -> None:
    """Steps of these tasks that are under way have failed with their attempt."""
    if task_ids:
        await tx.execute(END_OPEN_STEPS, task_ids)


async def add_log(tx: Tx, claimed: Claimed, message: str) -> None:
    await tx.execute(LOG, claimed.task_id, claimed.attempt, Outcome.LOGGED, message)
