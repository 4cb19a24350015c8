"""Tasks, workers and schedules for `/metrics`, as the database has them: the same whichever process is asked."""

from dataclasses import dataclass

from headrace.admin.blocking import read_blocking_figures
from headrace.database import Tx
from headrace.figures import OTHER, Figure, Labels
from headrace.tasks.store.queues import MAX_BACKLOG, Contents, count_backlog

MAX_SERIES = 200  # of queue and type; the longest backlogs have their own, the rest are one
_MANY = 10_000

COUNT_WORKERS = """
SELECT CASE WHEN heartbeat_at + lease < now() THEN 'silent'
            WHEN stopping_at IS NOT NULL THEN 'stopping' ELSE 'alive' END AS state,
       count(*) AS number, sum(concurrency)::bigint AS slots, sum(least(running, concurrency))::bigint AS busy
FROM headrace.workers
WHERE ended_at IS NULL
GROUP BY 1
"""
ESTIMATE = "SELECT pg_stat_get_live_tuples('headrace.task_queue'::regclass)"
LIST_PAUSED = "SELECT name FROM headrace.queues WHERE paused_at IS NOT NULL ORDER BY name LIMIT 200"
READ_SCHEDULES = f"""
SELECT count(*) FILTER (WHERE enabled) AS enabled, count(*) FILTER (WHERE NOT enabled) AS disabled,
       count(*) FILTER (WHERE consecutive_failures > 0) AS failing,
       coalesce(greatest(0, extract(epoch FROM now() - min(next_run) FILTER (WHERE enabled))), 0)::float8 AS late,
       (SELECT count(*) FROM (
          SELECT FROM headrace.task_executions WHERE state = 'pending' AND task_id IS NULL LIMIT {_MANY}
        ) AS held) AS waiting
FROM headrace.scheduled_tasks
WHERE deleted_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class ScheduleTotals:
    enabled: int
    disabled: int
    failing: int
    late: float
    waiting: int


async def read_task_figures(tx: Tx) -> list[Figure]:
    """A few milliseconds, for any backlog: counts end at a bound."""
    workers = {row["state"]: row for row in await tx.fetch(COUNT_WORKERS)}
    at_work = [row for state, row in workers.items() if state != "silent"]
    totals = await tx.fetchrow(READ_SCHEDULES)
    assert totals is not None
    return [
        *_backlog(await count_backlog(tx)),
        Figure(
            "headrace_queue_rows_estimated",
            "Tasks that wait or run, as PostgreSQL estimates them, however many there are.",
            values={(): await tx.fetchval(ESTIMATE)},
        ),
        Figure(
            "headrace_queue_paused",
            "1 for each queue from which nothing is started.",
            ("queue",),
            {(row["name"],): 1 for row in await tx.fetch(LIST_PAUSED)},
        ),
        Figure(
            "headrace_workers",
            "Worker processes: alive, stopping, or silent for longer than their lease and not yet given up. Alarm at 0 "
            "alive while tasks wait.",
            ("state",),
            {
                (state,): workers[state]["number"] if state in workers else 0
                for state in ("alive", "stopping", "silent")
            },
        ),
        Figure(
            "headrace_worker_slots",
            "Tasks that all workers together can run at once, and how many they run, as of their last heartbeat.",
            ("state",),
            {
                ("total",): sum(row["slots"] for row in at_work),
                ("busy",): sum(row["busy"] for row in at_work),
            },
        ),
        *_schedules(ScheduleTotals(**totals)),
        *await read_blocking_figures(tx),
    ]


def _backlog(backlog: dict[tuple[str, str], Contents]) -> list[Figure]:
    ranked = sorted(backlog.items(), key=lambda item: (-item[1].waiting - item[1].delayed, item[0]))
    kept: dict[tuple[str, str], Contents] = dict(ranked[:MAX_SERIES])
    for _, contents in ranked[MAX_SERIES:]:
        kept[OTHER, OTHER] = kept.get((OTHER, OTHER), Contents()) + contents
    depths: dict[Labels, float] = {}
    ages: dict[Labels, float] = {}
    for pair, contents in kept.items():
        depths[*pair, "waiting"], depths[*pair, "delayed"] = contents.waiting, contents.delayed
        ages[pair] = contents.oldest_waiting_seconds or 0.0
    return [
        Figure(
            "headrace_queue_tasks",
            "Tasks that wait to be run, by queue and type: waiting are due, delayed are not yet. Counted up to "
            f"{MAX_BACKLOG:,} in all; beyond that the value is a lower bound.",
            ("queue", "type", "state"),
            depths,
        ),
        Figure(
            "headrace_queue_oldest_seconds",
            "How long the longest-waiting task has been due, by queue and type.",
            ("queue", "type"),
            ages,
        ),
        Figure(
            "headrace_queue_tasks_exact",
            "1 while every waiting task is counted; 0 when the counts are lower bounds.",
            values={(): float(all(each.exact for each in backlog.values()))},
        ),
    ]


def _schedules(totals: ScheduleTotals) -> list[Figure]:
    return [
        Figure(
            "headrace_schedules",
            "Schedules that are enabled and disabled; failing ones are those whose last run failed.",
            ("state",),
            {("enabled",): totals.enabled, ("disabled",): totals.disabled, ("failing",): totals.failing},
        ),
        Figure(
            "headrace_schedule_late_seconds",
            "How long the first missed due time is past; 0 when there is none. Alarm above 60: no scheduler "
            "runs, or it cannot fire.",
            values={(): totals.late},
        ),
        Figure(
            "headrace_schedule_runs_waiting",
            f"Runs of schedules that wait for others of theirs to end, up to {_MANY:,}.",
            values={(): totals.waiting},
        ),
    ]
