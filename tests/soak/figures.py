"""What is sampled while the soak runs, how much each figure may rise, and whether it did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, linear_regression

import psutil

from headrace.database import Database
from tests.soak.site import Undisturbed

Sample = Mapping[str, float]

# How much a figure may rise over the part that is judged, by linear regression; None is shown and not judged.
# The figures of memory are MB. Rows that are kept grow by design: the database is judged by the thousand tasks.
LIMITS: dict[str, float | None] = {
    "up PSS": 15,
    "up private": 12,
    "up files open": 15,
    "up threads": 6,
    "worker PSS": 8,
    "worker private": 6,
    "worker files open": 10,
    "worker threads": 5,
    "children": 4,
    "children PSS": None,  # warm children come and go
    "zombies": 2,
    "PostgreSQL PSS": None,  # shared buffers are touched one after the other
    "PostgreSQL private": 60,
    "connections": 10,
    "longest transaction s": 10,
    "tasks not over": 150,
    "events not published": 150,
    "task_queue MB": 4,
    "task_lanes MB": 4,
    "files of nobody": 5,
    "files MB": None,
    "database MB": None,
}
MOST_PER_1000_TASKS = 25.0  # MB of the database

COUNTS = """
SELECT (SELECT count(*) FROM headrace.tasks WHERE finished_at IS NULL AND run_at <= now()) AS "tasks not over",
       (SELECT count(*) FROM headrace.outbox_events WHERE status IN ('PENDING', 'FAILED')) AS "events not published",
       (SELECT count(*) FROM headrace.tasks) AS tasks,
       pg_total_relation_size('headrace.task_queue') / 1e6 AS "task_queue MB",
       pg_total_relation_size('headrace.task_lanes') / 1e6 AS "task_lanes MB",
       pg_database_size(current_database()) / 1e6 AS "database MB",
       (SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'headrace %'
          AND application_name NOT LIKE 'headrace chaos%') AS connections,
       (SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0) FROM pg_stat_activity
        WHERE application_name LIKE 'headrace %') AS "longest transaction s"
"""
TABLES = """
SELECT coalesce(parent.relname, class.relname) AS name, sum(pg_total_relation_size(class.oid)) / 1e6 AS mb
FROM pg_class AS class
JOIN pg_namespace AS space ON space.oid = class.relnamespace AND space.nspname = 'headrace'
LEFT JOIN pg_inherits AS part ON part.inhrelid = class.oid
LEFT JOIN pg_class AS parent ON parent.oid = part.inhparent
WHERE class.relkind = 'r'
GROUP BY 1
"""
KEYS = """
SELECT 'media/' || split_part(storage_key, '#', 1) AS name FROM headrace.assets WHERE purged_at IS NULL
UNION ALL SELECT 'media/' || storage_key FROM headrace.uploads WHERE status IN ('OPEN', 'COMPLETING')
UNION ALL SELECT 'result/' || result_key FROM headrace.task_results WHERE purged_at IS NULL
"""
AT_WORK = "SELECT id FROM headrace.tasks WHERE finished_at IS NULL"


async def sample(site: Undisturbed, db: Database) -> tuple[dict[str, float], dict[str, float]]:
    """All figures, and the size of each table."""
    figures: dict[str, float] = {}
    for name, processes in site.processes().items():
        pss, private, files, threads, zombies = _of(processes)
        figures[f"{name} PSS"], figures[f"{name} private"] = pss, private
        if name in ("up", "worker"):
            figures[f"{name} files open"], figures[f"{name} threads"] = files, threads
        if name == "children":
            figures["children"], figures["zombies"] = len(processes), zombies
    counted = (await db.fetch_alone(COUNTS))[0]
    figures |= {name: float(value) for name, value in dict(counted).items()}
    there = _stored(site.files)
    named = {row["name"] for row in await db.fetch_alone(KEYS)}
    working = {row["id"] for row in await db.fetch_alone(AT_WORK)}
    # A file may have got its row between the two looks: what is still there, and still nobody's, counts.
    nobodys = [name for name in there if name not in named and not any(part in working for part in name.split("/"))]
    figures["files of nobody"] = len(nobodys)
    figures["files MB"] = sum(there.values()) / 1e6
    tables = {row["name"]: float(row["mb"]) for row in await db.fetch_alone(TABLES)}
    return figures, tables


def _of(processes: Sequence[psutil.Process]) -> tuple[float, float, int, int, int]:
    pss = private = 0.0
    files = threads = zombies = 0
    for process in processes:
        try:
            zombies += process.status() == psutil.STATUS_ZOMBIE
            memory = process.memory_full_info()
            pss, private = pss + memory.pss / 1e6, private + memory.uss / 1e6
            files, threads = files + process.num_fds(), threads + process.num_threads()
        except psutil.Error:  # it has just ended
            continue
    return pss, private, files, threads, zombies


def _stored(folder: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for kind in ("media", "result"):
        for path in (folder / kind).rglob("*"):
            try:
                if path.is_file():
                    found[path.relative_to(folder).as_posix()] = path.stat().st_size
            except FileNotFoundError:
                continue
    return found


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    first: float  # mean of the first sixth of what is judged
    last: float
    rise: float  # by regression, over all of it
    per_hour: float
    limit: float | None

    @property
    def is_too_much(self) -> bool:
        return self.limit is not None and self.rise > self.limit and self.last - self.first > self.limit / 2

    def line(self) -> str:
        allowed = "–" if self.limit is None else f"{self.limit:g}"
        told = "RISES" if self.is_too_much else ""
        return (
            f"  {self.name:<24}{self.first:>11.1f}{self.last:>11.1f}{self.rise:>+11.1f}{self.per_hour:>+11.1f}"
            f"{allowed:>9}  {told}"
        ).rstrip()


HEAD = f"  {'figure':<24}{'first 1/6':>11}{'last 1/6':>11}{'rise':>11}{'per hour':>11}{'limit':>9}"


def judge(name: str, times: Sequence[float], values: Sequence[float], limit: float | None) -> Verdict:
    """``times`` in seconds, of the samples behind the warm-up."""
    sixth = max(1, len(values) // 6)
    slope = linear_regression(times, values).slope
    rise = slope * (times[-1] - times[0])
    return Verdict(name, fmean(values[:sixth]), fmean(values[-sixth:]), rise, slope * 3600, limit)


def per_thousand_tasks(samples: Sequence[Sample]) -> float:
    tasks = [each["tasks"] for each in samples]
    if tasks[-1] - tasks[0] < 100:
        return 0.0
    return 1000 * linear_regression(tasks, [each["database MB"] for each in samples]).slope
