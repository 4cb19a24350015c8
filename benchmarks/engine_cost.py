"""What a task costs PostgreSQL, part by part: `make bench name=engine_cost`. See docs/why/engine.md.

One connection submits, claims and finishes in batches with the product's own statements. Each variant leaves one part
out: the difference is what this part costs. The figures are processor time of the backend, so other processes on the
machine hardly change them.
"""

import argparse
import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks.report import Run, console, print_json, print_rounds
from benchmarks.scratch import analyze, reset, scratch_server
from headrace import ids
from headrace.tasks.insertion import INSERT_TASKS

BATCH = 2000
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

_JOIN = """      SELECT known.user_id, known.task_type, known.payload, known.retries, known.max_attempts, \
known.timeout_seconds,
             known.trace_id, known.current_step, known.schedule_uid, known.grace_seconds, known.extension_seconds
      FROM headrace.tasks AS known
      WHERE known.id = taken.task_id"""
_NO_JOIN = """      SELECT ''::varchar, ''::varchar, '{}'::jsonb, 0, 1, NULL::integer, NULL::varchar, NULL::varchar,
             NULL::varchar, NULL::integer, NULL::integer"""
_LOG = """INSERT INTO headrace.task_logs (task_id, attempt, status, message)
  SELECT held.task_id, held.attempt, held.status, held.error_message FROM held;"""
_NO_LOG = "SELECT count(*) INTO gone FROM held;"


@dataclass(frozen=True)
class Sizes:
    rounds: int
    tasks: int


FULL, QUICK = Sizes(5, 20_000), Sizes(1, 4_000)


def _function(name: str) -> str:
    return (files("headrace.migrations") / "functions" / f"{name}.sql").read_text("utf-8")


def _without(name: str, part: str, instead: str) -> tuple[str, str]:
    text = _function(name)
    assert part in text, f"{name} has changed: change this benchmark with it"
    return text.replace(part, instead), text


def _without_index(name: str, columns: str) -> tuple[str, str]:
    return f"DROP INDEX headrace.{name}", f"CREATE INDEX {name} ON headrace.tasks ({columns})"


_BY_STATUS = _without_index("idx_tasks_status_updated_at", "status, updated_at DESC")
_BY_USER_STATUS = _without_index("idx_tasks_user_status_created_at", "user_id, status, created_at DESC")
_ROOM = (
    "ALTER TABLE headrace.tasks SET (fillfactor = 50)",
    "ALTER TABLE headrace.tasks RESET (fillfactor)",
)
VARIANTS: Mapping[str, tuple[str, str]] = {
    "as it is": ("SELECT", "SELECT"),
    "without the foreign key to users": (
        "ALTER TABLE headrace.tasks DROP CONSTRAINT fk_tasks_users_user_id",
        "ALTER TABLE headrace.tasks ADD CONSTRAINT fk_tasks_users_user_id "
        "FOREIGN KEY (user_id) REFERENCES headrace.users (id)",
    ),
    "without the payload's join": _without("claim_tasks", _JOIN, _NO_JOIN),
    "without the log row": _without("finish_tasks", _LOG, _NO_LOG),
    "without the logs' key on id": (
        "ALTER TABLE headrace.task_logs DROP CONSTRAINT task_logs_pkey",
        "ALTER TABLE headrace.task_logs ADD CONSTRAINT task_logs_pkey PRIMARY KEY (id)",
    ),
    "without idx_tasks_created_at": _without_index("idx_tasks_created_at", "created_at"),
    "without idx_tasks_user_created_at": _without_index("idx_tasks_user_created_at", "user_id DESC, created_at DESC"),
    "without the two indexes by status": (
        "; ".join(each[0] for each in (_BY_STATUS, _BY_USER_STATUS, _ROOM)),
        "; ".join(each[1] for each in (_BY_STATUS, _BY_USER_STATUS, _ROOM)),
    ),
}


def _cpu_us(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000


async def measure(run: Run[Sizes]) -> None:
    connection = await asyncpg.connect(run.url)
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
    await connection.execute("INSERT INTO headrace.task_types (name) VALUES ('noop')")
    lane = await connection.fetchrow(
        "SELECT lane_id, route_id FROM headrace.assign_lane('default', 'noop', $1, '', '{}', true)", ids.SYSTEM_USER
    )
    for number in range(run.sizes.rounds):
        console.print(f"round {number + 1} of {run.sizes.rounds}")
        for name, (change, undo) in VARIANTS.items():
            await reset(run.url)
            await connection.execute(change)
            try:
                await _measure_variant(run, name, connection, lane)
            finally:
                await reset(run.url)  # making an index again is quicker without rows
                await connection.execute(undo)
    await connection.close()


async def _measure_variant(run: Run[Sizes], name: str, connection: Any, lane: Any) -> None:
    batches, pid = run.sizes.tasks // BATCH, connection.get_server_pid()
    tasks = batches * BATCH
    rows = [_rows(lane) for _ in range(batches)]
    before = _cpu_us(pid)
    for each in rows:
        await connection.execute(INSERT_TASKS, *each)
    inserted = _cpu_us(pid) - before
    await analyze(run.url)
    worker = await connection.fetchval(
        "INSERT INTO headrace.workers (id, host, pid, lease, types, concurrency) "
        "VALUES ('w', 'h', 1, '1 hour', '{}', 1) RETURNING number"
    )
    claimed = finished = 0.0
    for _ in range(batches):
        before = _cpu_us(pid)
        taken = await connection.fetch(
            "SELECT seq, attempt FROM headrace.claim_tasks($1, $2, $3, $4, $5, $6, $7)",
            worker, [lane["lane_id"]], [0], [LONG_AGO], [0], [BATCH], BATCH,
        )  # fmt: skip
        between = _cpu_us(pid)
        await connection.fetch(
            "SELECT headrace.finish_tasks($1, 'w', $2, $3, NULL, NULL, NULL, NULL, true)",
            worker, [row["seq"] for row in taken], [row["attempt"] for row in taken],
        )  # fmt: skip
        claimed += between - before
        finished += _cpu_us(pid) - between
        assert len(taken) == BATCH, "a batch was not full"
    for verb, microseconds in (("submit", inserted), ("claim", claimed), ("finish", finished)):
        run.note(f"{verb}, {name}", microseconds / tasks)


def _rows(lane: Any) -> list[Any]:
    """The parameters of ``INSERT_TASKS``; an array of one value holds for every row."""
    given = [[ids.new("tsk") for _ in range(BATCH)], [ids.SYSTEM_USER], ["noop"], ["noop"]]
    return [*given, [{"n": n} for n in range(BATCH)], [0], ["default"], None, [1], *[None] * 13, [lane[0]], [lane[1]]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="smaller sizes, under a minute")
    arguments.add_argument("--json", action="store_true", help="print the figures as JSON, last on standard output")
    chosen = arguments.parse_args()
    with scratch_server() as url:
        run = Run(url, QUICK if chosen.quick else FULL, digits=2)
        asyncio.run(measure(run))
    print_rounds(run, title="PostgreSQL's processor time: µs a task", digits=2)
    if chosen.json:
        print_json(run.medians())


if __name__ == "__main__":
    main()
