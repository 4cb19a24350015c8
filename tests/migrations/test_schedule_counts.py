"""Counts of schedules by attempts become counts by due times, and back."""

from importlib.resources import files

from headrace.database import Tx

FILL = """
WITH made AS (
  INSERT INTO headrace.scheduled_tasks
    (uid, name, type, is_recurring, "interval", total_executions, success_executions, failure_executions,
     consecutive_failures)
  VALUES ('sch_1', 'flaky', 'job', true, 60, 7, 1, 4, 2), ('sch_2', 'fine', 'job', true, 60, 1, 1, 0, 0)
)
INSERT INTO headrace.task_executions
  (task_uid, task_name, task_type, execution_uid, scheduled_at, retry_count, state, trigger_type, run_by, started_at,
   finished_at, user_id)
SELECT uid, 'n', 'job', 'exe_' || lpad(row_number() OVER ()::text, 26, '0'),
       '2026-01-01'::timestamptz + due * interval '1 h', attempt, state, 'scheduled', 'w', '2026-01-01',
       '2026-01-01'::timestamptz + due * interval '1 h' + attempt * interval '1 s', 'u_00000000000000000000000000'
FROM (VALUES ('sch_1', 1, 0, 'failure'), ('sch_1', 1, 1, 'interrupted'), ('sch_1', 1, 2, 'success'),
             ('sch_1', 2, 0, 'failure'), ('sch_1', 2, 1, 'timeout'),
             ('sch_1', 3, 0, 'cancelled'),
             ('sch_2', 1, 0, 'success')) AS rows (uid, due, attempt, state)
"""
COUNTS = """
SELECT total_executions, success_executions, failure_executions, consecutive_failures, retried_attempts
FROM headrace.scheduled_tasks WHERE uid LIKE 'sch__' ORDER BY uid
"""


def statement(name: str, start: str) -> str:
    text = (files("headrace.migrations") / f"0022_schedule_overlap.{name}.sql").read_text()
    return start + text.split(start)[-1].partition(";")[0]


async def test_attempts_become_due_times_once(owner_tx: Tx) -> None:  # S-09
    await owner_tx.execute("SET LOCAL session_replication_role = replica")
    await owner_tx.execute(FILL)
    for _ in range(2):  # a file without a transaction may be run again
        await owner_tx.execute(statement("up", "UPDATE headrace.scheduled_tasks"))
        # One that succeeded at the third attempt, one that failed at the second, one that was canceled.
        # One failure of before is no longer in the history, and counts as it did.
        assert [tuple(row) for row in await owner_tx.fetch(COUNTS)] == [(4, 1, 2, 1, 3), (1, 1, 0, 0, 0)]
    await owner_tx.execute(statement("down", "UPDATE headrace.scheduled_tasks"))
    assert [tuple(row)[:3] for row in await owner_tx.fetch(COUNTS)] == [(7, 1, 4), (1, 1, 0)]
