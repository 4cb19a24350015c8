"""Failures grouped by what they say, and names beside ids."""

from headrace.access import Caller, Role
from headrace.accounts import administration
from headrace.admin.overview.failures import GROUP_FAILURES, MAX_RECENT, list_failure_groups
from headrace.database import Database
from tests.webhooks.stand import make_user

FILL = """
INSERT INTO headrace.tasks (id, user_id, title, task_type, status, error_code, error_message, created_at, updated_at,
  finished_at)
SELECT 'tsk_' || n, $1, '', CASE WHEN n % 3 = 0 THEN 'mail' ELSE 'report' END, 'FAILED', 'error',
       CASE WHEN n % 3 = 0 THEN 'timed out' ELSE E'Traceback\\n  File "x"\\nKeyError: ''total''\\n' END,
       now() - n * interval '1 s', now() - n * interval '1 s', now()
FROM generate_series(1, $2::integer) AS n
"""


async def fill(db: Database, user_id: str, number: int) -> None:
    async with db.transaction() as tx:
        await tx.execute(FILL, user_id, number)


async def test_failures_are_grouped_by_the_last_line_of_their_error(db: Database) -> None:  # S13
    ada = await make_user(db, "ada")
    await fill(db, ada.user_id, 90)
    async with db.transaction(readonly=True) as tx:
        groups = await list_failure_groups(tx)
    assert [(each.task_type, each.error, each.count) for each in groups] == [
        ("report", "KeyError: 'total'", 60),
        ("mail", "timed out", 30),
    ]
    assert groups[0].last_task_id == "tsk_1"


async def test_grouping_reads_a_bounded_number_of_rows_along_an_index(db: Database) -> None:
    ada = await make_user(db, "ada")
    await fill(db, ada.user_id, 3 * MAX_RECENT)
    async with db.transaction() as tx:
        await tx.execute("SET LOCAL enable_seqscan = off")
        plan = "\n".join(row[0] for row in await tx.fetch("EXPLAIN " + GROUP_FAILURES.format(failed="headrace.tasks")))
        groups = await list_failure_groups(tx)
    assert "idx_tasks_status_updated_at" in plan, plan
    assert sum(each.count for each in groups) == MAX_RECENT


async def test_names_of_users_are_read_together(db: Database) -> None:
    ada: Caller = await make_user(db, "ada")
    grace = await make_user(db, "grace", role=Role.ADMIN)
    async with db.transaction() as tx:
        names = await administration.list_names(tx, grace.who, [ada.user_id, grace.user_id, "u_nobody"])
    assert names == {ada.user_id: "ada", grace.user_id: "grace"}
