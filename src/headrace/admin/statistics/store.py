"""SQL for statistics. The cost depends on the minute's events, never on the backlog: see docs/why/statistics.md."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from headrace.admin.statistics.model import (
    CLASS_RATIO,
    KEEP,
    SHORTEST_SECONDS,
    Durations,
    Point,
    QueueSeries,
)
from headrace.database import Tx
from headrace.tasks.model import INPUT_CODES, MEDIA_TYPES
from headrace.tasks.store.queues import Contents

# The process that inserts the row of a minute measures it. After an outage only the last few minutes are made up
# for: more could be millions of tasks. The few seconds are for ends whose transactions are not committed yet.
CLAIM = """
WITH span AS (
  SELECT date_bin('1 minute', coalesce($1, now()) - $2::interval, 'epoch') AS until
), missing AS (
  SELECT until, greatest(until - $3::interval, last.minute + interval '1 minute') AS since
  FROM span, (SELECT max(minute) AS minute FROM headrace.statistics_minutes) AS last
)
INSERT INTO headrace.statistics_minutes (minute, waited, ran, oldest_xid, next_xid)
SELECT minute, '{}', '{}', pg_snapshot_xmin(open.transactions)::text::bigint,
       pg_snapshot_xmax(open.transactions)::text::bigint
FROM missing, pg_current_snapshot() AS open (transactions),
     generate_series(since, until - interval '1 minute', '1 minute') AS minute
ON CONFLICT DO NOTHING
RETURNING minute
"""
SETTLED = timedelta(seconds=5)
MADE_UP_FOR = timedelta(minutes=10)


async def claim_minutes(tx: Tx, *, now: datetime | None = None) -> list[datetime]:
    """Past minutes without a measurement: they are this transaction's to measure."""
    return sorted(row["minute"] for row in await tx.fetch(CLAIM, now, SETTLED, MADE_UP_FOR))


# A transaction that was open when a minute was measured may have committed tasks of that minute since. One that had not
# begun then has none: so minutes stay as they are up to the last one that was measured before every transaction began
# that was open at the last measuring.
FIND_UNSETTLED = """
WITH last AS (
  SELECT minute, oldest_xid FROM headrace.statistics_minutes WHERE minute < $1 ORDER BY minute DESC LIMIT 1
), settled AS (
  SELECT max(earlier.minute) AS minute
  FROM headrace.statistics_minutes AS earlier, last
  WHERE earlier.minute <= last.minute AND earlier.next_xid <= last.oldest_xid
)
SELECT kept.minute
FROM headrace.statistics_minutes AS kept, last, settled
WHERE kept.minute < $1 AND kept.minute >= $1 - $2::interval AND last.oldest_xid IS NOT NULL
  AND kept.minute > coalesce(settled.minute, '-infinity')
ORDER BY kept.minute
"""
COUNTED_AGAIN_FOR = timedelta(hours=1)


async def find_unsettled(tx: Tx, first: datetime) -> list[datetime]:
    """Minutes of the hour before ``first`` for which something may have been committed after they were measured."""
    return [row["minute"] for row in await tx.fetch(FIND_UNSETTLED, first, COUNTED_AGAIN_FOR)]


# By the index on status and updated_at, which is never before the end: of what ended before the minute nothing is read.
# Counted down to classes at once, so that a million ends take hardly more memory than ten thousand.
COUNT_ENDED = """
WITH ended AS MATERIALIZED (
  SELECT date_bin('1 minute', finished_at, 'epoch') AS minute, queue, status, task_type,
         status = 'FAILED' AND task_type = ANY ($6) AND error_code = ANY ($7) AS needs_input,
         CASE WHEN wait <= $4 THEN 0 ELSE ceil(ln(wait / $4) / ln($5)) END::smallint AS waited,
         CASE WHEN run <= $4 THEN 0 ELSE ceil(ln(run / $4) / ln($5)) END::smallint AS ran,
         count(*) AS number, max(wait) AS longest_wait, max(run) AS longest_run
  FROM headrace.tasks, LATERAL (
    SELECT extract(epoch FROM started_at - run_at)::double precision AS wait,
           extract(epoch FROM finished_at - started_at)::double precision AS run
  ) AS duration
  WHERE status IN ('SUCCEEDED', 'FAILED', 'CANCELED') AND updated_at >= $1 AND finished_at >= $1 AND finished_at < $2
  GROUP BY 1, 2, 3, 4, 5, 6, 7
), classes AS (
  SELECT minute, CASE WHEN grouping(task_type) = 0 THEN task_type ELSE '' END AS task_type, part.kind, part.class,
         sum(number)::bigint AS number, max(part.longest) AS longest
  FROM ended CROSS JOIN LATERAL (
    VALUES ('waited', waited, longest_wait), ('ran', ran, longest_run)
  ) AS part (kind, class, longest)
  WHERE minute = ANY ($3) AND part.longest IS NOT NULL
  GROUP BY GROUPING SETS ((minute, task_type, part.kind, part.class), (minute, part.kind, part.class))
), durations AS (
  INSERT INTO headrace.statistics_durations AS kept
    (minute, task_type, number, waited_classes, waited_counts, longest_wait, ran_classes, ran_counts, longest_run)
  SELECT minute, task_type, sum(number) FILTER (WHERE kind = 'ran'),
         array_agg(class ORDER BY class) FILTER (WHERE kind = 'waited'),
         array_agg(number ORDER BY class) FILTER (WHERE kind = 'waited'), max(longest) FILTER (WHERE kind = 'waited'),
         array_agg(class ORDER BY class) FILTER (WHERE kind = 'ran'),
         array_agg(number ORDER BY class) FILTER (WHERE kind = 'ran'), max(longest) FILTER (WHERE kind = 'ran')
  FROM classes
  GROUP BY minute, task_type
  ON CONFLICT (minute, task_type) DO UPDATE
  SET number = excluded.number, waited_classes = excluded.waited_classes, waited_counts = excluded.waited_counts,
      longest_wait = excluded.longest_wait, ran_classes = excluded.ran_classes, ran_counts = excluded.ran_counts,
      longest_run = excluded.longest_run
  -- Counted again, there may be less of it: some tasks were deleted or run again meanwhile.
  WHERE excluded.number >= kept.number
), made AS (
  SELECT date_bin('1 minute', created_at, 'epoch') AS minute, queue, count(*) AS number
  FROM headrace.tasks
  WHERE created_at >= $1 AND created_at < $2
  GROUP BY 1, 2
)
INSERT INTO headrace.statistics_queues AS kept (minute, queue, submitted, succeeded, failed, canceled, needs_input)
SELECT minute, queue, sum(submitted), sum(succeeded), sum(failed), sum(canceled), sum(needs_input)
FROM (
  SELECT minute, queue, number AS submitted, 0 AS succeeded, 0 AS failed, 0 AS canceled, 0 AS needs_input FROM made
  UNION ALL
  SELECT minute, queue, 0, CASE status WHEN 'SUCCEEDED' THEN number ELSE 0 END,
         CASE status WHEN 'FAILED' THEN number ELSE 0 END, CASE status WHEN 'CANCELED' THEN number ELSE 0 END,
         CASE WHEN needs_input THEN number ELSE 0 END
  FROM ended
) AS counted
WHERE minute = ANY ($3)
GROUP BY minute, queue
ON CONFLICT (minute, queue) DO UPDATE
SET submitted = greatest(kept.submitted, excluded.submitted), succeeded = greatest(kept.succeeded, excluded.succeeded),
    failed = greatest(kept.failed, excluded.failed), canceled = greatest(kept.canceled, excluded.canceled),
    needs_input = greatest(kept.needs_input, excluded.needs_input)
"""


async def count_ended(tx: Tx, minutes: Sequence[datetime]) -> None:
    """Record submissions and ends in these minutes: those that the caller has claimed, and others that are
    counted again."""
    until = minutes[-1] + timedelta(minutes=1)
    await tx.execute(
        COUNT_ENDED,
        minutes[0],
        until,
        list(minutes),
        SHORTEST_SECONDS,
        CLASS_RATIO,
        list(MEDIA_TYPES),
        list(INPUT_CODES),
    )


KEEP_CONTENTS = """
INSERT INTO headrace.statistics_queues (minute, queue, waiting, delayed, running, oldest_seconds)
SELECT $1, given.* FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::double precision[]) AS given
ON CONFLICT (minute, queue) DO UPDATE
SET waiting = excluded.waiting, delayed = excluded.delayed, running = excluded.running,
    oldest_seconds = excluded.oldest_seconds
"""
KEEP_WORKERS = """
UPDATE headrace.statistics_minutes
SET (workers, slots, slots_busy) = (
  SELECT count(*), coalesce(sum(greatest(concurrency, running)), 0), coalesce(sum(running), 0) FROM headrace.workers
  WHERE ended_at IS NULL AND heartbeat_at + lease >= now()
)
WHERE minute = $1
"""


async def keep_contents(tx: Tx, minute: datetime, contents: Mapping[str, Contents]) -> None:
    """Record the current contents of the queues and the workers, as those of the minute that ended just now."""
    await tx.execute(
        KEEP_CONTENTS,
        minute,
        list(contents),
        [each.waiting for each in contents.values()],
        [each.delayed for each in contents.values()],
        [each.running for each in contents.values()],
        [each.oldest_waiting_seconds for each in contents.values()],
    )
    await tx.execute(KEEP_WORKERS, minute)


FORGET = "DELETE FROM headrace.statistics_minutes WHERE minute < coalesce($1, now()) - $2::interval"


async def forget(tx: Tx, *, now: datetime | None = None) -> int:
    """Remove minutes that are too old to be requested; gives how many."""
    return await tx.count(FORGET, now, KEEP)


CLOCK = "SELECT date_bin($2::interval, coalesce($1, now()), 'epoch') + $2::interval"


async def end_of_step(tx: Tx, step: timedelta, *, now: datetime | None = None) -> datetime:
    """When the step is over that is under way."""
    at: datetime = await tx.fetchval(CLOCK, now, step)
    return at


LIST_POINTS = """
WITH totals AS (
  SELECT minute, sum(submitted) AS submitted, sum(succeeded) AS succeeded, sum(failed) AS failed,
         sum(canceled) AS canceled, sum(waiting) AS waiting, sum(delayed) AS delayed, sum(running) AS running,
         sum(needs_input) AS needs_input, max(oldest_seconds) AS oldest
  FROM headrace.statistics_queues
  WHERE minute >= $1 AND minute < $2
  GROUP BY minute
), shown AS (
  SELECT date_bin($3::interval, minutes.minute, $1) AS at,
         coalesce(sum(submitted), 0)::bigint AS submitted, coalesce(sum(succeeded), 0)::bigint AS succeeded,
         coalesce(sum(failed), 0)::bigint AS failed, coalesce(sum(canceled), 0)::bigint AS canceled,
         coalesce(sum(needs_input), 0)::bigint AS needs_input,
         -- An empty queue has no row in a measured step, and the number is 0.
         max(coalesce(waiting, 0)) FILTER (WHERE workers IS NOT NULL)::bigint AS waiting,
         max(coalesce(delayed, 0)) FILTER (WHERE workers IS NOT NULL)::bigint AS delayed,
         avg(coalesce(running, 0)) FILTER (WHERE workers IS NOT NULL)::double precision AS running,
         max(coalesce(oldest, 0)) FILTER (WHERE workers IS NOT NULL)::double precision AS oldest_seconds,
         avg(workers)::double precision AS workers, avg(slots)::double precision AS slots,
         avg(slots_busy)::double precision AS slots_busy
  FROM headrace.statistics_minutes AS minutes
  LEFT JOIN totals ON totals.minute = minutes.minute
  WHERE minutes.minute >= $1 AND minutes.minute < $2
  GROUP BY 1
)
SELECT * FROM shown ORDER BY at
"""
LIST_DURATIONS = """
WITH classes AS (
  SELECT date_bin($3::interval, minute, $1) AS at, kind, class, sum(part.number)::bigint AS number,
         max(CASE kind WHEN 'waited' THEN longest_wait ELSE longest_run END) AS longest
  FROM headrace.statistics_durations
  CROSS JOIN LATERAL (
    SELECT 'waited' AS kind, * FROM unnest(waited_classes, waited_counts) AS waited (class, number)
    UNION ALL
    SELECT 'ran', * FROM unnest(ran_classes, ran_counts) AS ran (class, number)
  ) AS part
  WHERE minute >= $1 AND minute < $2 AND task_type = $4
  GROUP BY 1, 2, 3
)
SELECT at, kind, array_agg(class ORDER BY class) AS classes, array_agg(number ORDER BY class) AS counts,
       max(longest) AS longest
FROM classes GROUP BY at, kind
"""


async def list_points(tx: Tx, since: datetime, until: datetime, step: timedelta, *, task_type: str) -> list[Point]:
    """All queues together, a point for each step with a measurement; durations of one task type, or of all."""
    durations = {
        (row["at"], row["kind"]): Durations(row["classes"], row["counts"], row["longest"])
        for row in await tx.fetch(LIST_DURATIONS, since, until, step, task_type)
    }
    return [
        Point(
            **row,
            waited=durations.get((row["at"], "waited"), Durations()),
            ran=durations.get((row["at"], "ran"), Durations()),
        )
        for row in await tx.fetch(LIST_POINTS, since, until, step)
    ]


LIST_TYPES = """
SELECT task_type FROM headrace.statistics_durations
WHERE minute >= $1 AND minute < $2 AND task_type <> ''
GROUP BY task_type ORDER BY sum(number) DESC, task_type LIMIT $3
"""


async def list_types(tx: Tx, since: datetime, until: datetime, *, most: int) -> list[str]:
    """Task types with durations, the most frequent first."""
    return [row["task_type"] for row in await tx.fetch(LIST_TYPES, since, until, most)]


LIST_QUEUES = """
WITH kept AS MATERIALIZED (
  SELECT date_bin($3::interval, minute, $1) AS at, queue, max(waiting) AS waiting,
         sum(succeeded + failed + canceled)::bigint AS ended, sum(failed)::bigint AS failed
  FROM headrace.statistics_queues
  WHERE minute >= $1 AND minute < $2
  GROUP BY 1, 2
), busiest AS (
  SELECT queue, sum(ended) + max(coalesce(waiting, 0)) AS busy
  FROM kept GROUP BY queue ORDER BY busy DESC, queue LIMIT $4
)
SELECT kept.* FROM kept JOIN busiest ON busiest.queue = kept.queue ORDER BY busiest.busy DESC, kept.queue, kept.at
"""


async def list_queues(
    tx: Tx, since: datetime, until: datetime, step: timedelta, *, points: Sequence[Point], most: int
) -> list[QueueSeries]:
    """The busiest queues, with a value for each of these points."""
    rows = await tx.fetch(LIST_QUEUES, since, until, step, most)
    queues: dict[str, dict[datetime, tuple[int | None, int, int]]] = {}
    for row in rows:
        queues.setdefault(row["queue"], {})[row["at"]] = (row["waiting"], row["ended"], row["failed"])
    series = []
    for name, by_time in queues.items():
        # A queue without a row in a measured step was empty then.
        steps = [by_time.get(point.at) or (None, 0, 0) for point in points]
        waiting = [
            each[0] if each[0] is not None or point.waiting is None else 0
            for each, point in zip(steps, points, strict=True)
        ]
        series.append(QueueSeries(name, waiting, [each[1] for each in steps], [each[2] for each in steps]))
    return series
