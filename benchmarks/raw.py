"""The raw limit: a minimal asyncpg loop over the same tables and indexes, without leases, fences, retries or limits.

Two designs: ``narrow`` (readiness in task_queue, the wide row written once) and ``plain`` (claimed in tasks itself,
with the partial index that needs). Both claim 1,000, call a handler for each, and write the end and one log row for
each in one statement; claiming, handling and writing overlap.
"""

import asyncio
import time
from typing import Any

import asyncpg
import orjson

BATCH = 1000

CLAIM_NARROW = """
WITH chosen AS (
  SELECT seq FROM headrace.task_queue
  WHERE worker IS NULL AND precedence = 0 AND lane_id = $2 AND run_at <= now()
  ORDER BY run_at, seq LIMIT $1 FOR UPDATE SKIP LOCKED
), taken AS (
  UPDATE headrace.task_queue q SET worker = 1, attempt = attempt + 1, claimed_at = now()
  FROM chosen WHERE q.seq = chosen.seq RETURNING q.seq, q.task_id, q.attempt
)
SELECT taken.seq, taken.attempt, t.id, t.payload FROM taken JOIN headrace.tasks t ON t.id = taken.task_id
"""
FINISH_NARROW = """
WITH ended AS (
  DELETE FROM headrace.task_queue q USING unnest($1::bigint[], $2::integer[], $3::jsonb[]) AS g (seq, attempt, result)
  WHERE q.seq = g.seq AND q.attempt = g.attempt
  RETURNING q.task_id, q.attempt, q.claimed_at, g.result
), written AS (
  UPDATE headrace.tasks t
  SET status = 'SUCCEEDED', result = ended.result, attempt = ended.attempt, progress = 100, queue_seq = NULL,
      started_at = ended.claimed_at, finished_at = now(), updated_at = now(), version = version + 1
  FROM ended WHERE t.id = ended.task_id RETURNING t.id, t.attempt
)
INSERT INTO headrace.task_logs (task_id, attempt, status) SELECT id, attempt, 'SUCCEEDED' FROM written
"""
CLAIM_PLAIN = """
WITH chosen AS (
  SELECT id FROM headrace.tasks WHERE status = 'QUEUED' AND run_at <= now()
  ORDER BY priority DESC, run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE headrace.tasks t
SET status = 'RUNNING', attempt = attempt + 1, started_at = now(), updated_at = now(), version = version + 1
FROM chosen WHERE t.id = chosen.id RETURNING t.id AS seq, t.attempt, t.id, t.payload
"""
FINISH_PLAIN = """
WITH written AS (
  UPDATE headrace.tasks t
  SET status = 'SUCCEEDED', result = g.result, progress = 100, finished_at = now(), updated_at = now(),
      version = version + 1
  FROM unnest($1::varchar[], $2::integer[], $3::jsonb[]) AS g (id, attempt, result)
  WHERE t.id = g.id AND t.attempt = g.attempt AND t.status = 'RUNNING' RETURNING t.id, t.attempt
)
INSERT INTO headrace.task_logs (task_id, attempt, status) SELECT id, attempt, 'SUCCEEDED' FROM written
"""
PLAIN_INDEX = """
CREATE INDEX idx_bench_ready ON headrace.tasks (priority DESC, run_at, id) WHERE status = 'QUEUED'
"""


async def teach_json(connection: "asyncpg.Connection[Any]") -> None:
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: b"\x01" + orjson.dumps(value),
        decoder=lambda data: orjson.loads(data[1:]),
        format="binary",
    )


async def handler(payload: Any) -> Any:
    return {"at": time.time_ns(), "n": payload["n"]}


async def drain(url: str, design: str) -> None:
    """Until nothing is left."""
    narrow = design == "narrow"
    claimed: asyncio.Queue[list[Any]] = asyncio.Queue(2)
    handled: asyncio.Queue[list[Any] | None] = asyncio.Queue(2)

    async def claim() -> None:
        connection = await _connect(url)
        lane = await connection.fetchval("SELECT min(id) FROM headrace.task_lanes")
        while True:
            arguments = (BATCH, lane) if narrow else (BATCH,)
            rows = await connection.fetch(CLAIM_NARROW if narrow else CLAIM_PLAIN, *arguments)
            await claimed.put(rows)
            if not rows:
                return await connection.close()

    async def finish() -> None:
        connection = await _connect(url)
        while (batch := await handled.get()) is not None:
            seqs, attempts, results = (list(column) for column in zip(*batch, strict=True))
            await connection.execute(FINISH_NARROW if narrow else FINISH_PLAIN, seqs, attempts, results)
        await connection.close()

    async with asyncio.TaskGroup() as group:
        group.create_task(claim())
        group.create_task(finish())
        while rows := await claimed.get():
            await handled.put([(row["seq"], row["attempt"], await handler(row["payload"])) for row in rows])
        await handled.put(None)


async def pick_up(url: str, stop: asyncio.Event) -> None:
    """An idle loop that is woken by NOTIFY: claim one, handle it, write it."""
    connection, woken = await _connect(url), asyncio.Event()
    await connection.add_listener("headrace_tasks", lambda *_: woken.set())
    lane = await connection.fetchval("SELECT min(id) FROM headrace.task_lanes")
    while not stop.is_set():
        woken.clear()
        rows = await connection.fetch(CLAIM_NARROW, BATCH, lane)
        if rows:
            results = [await handler(row["payload"]) for row in rows]
            await connection.execute(
                FINISH_NARROW, [row["seq"] for row in rows], [row["attempt"] for row in rows], results
            )
            continue
        try:
            await asyncio.wait_for(woken.wait(), 0.5)
        except TimeoutError:
            continue
    await connection.close()


async def _connect(url: str) -> "asyncpg.Connection[Any]":
    connection = await asyncpg.connect(url)
    await teach_json(connection)
    return connection
