"""What schedules forget of a user whose account goes. W-16."""

from datetime import UTC, datetime, timedelta

from headrace.schedules.erasure import ForgetSchedules
from tests.schedules.conftest import Clockwork
from tests.tasks.people import caller_of


async def test_the_schedules_of_a_user_go_and_nobody_elses(clockwork: Clockwork) -> None:
    await clockwork.create("everybody's")
    ada = await clockwork.user("ada")
    clockwork.caller = caller_of(ada)
    for name in ("ada's", "ada's other"):
        await clockwork.create(name)
    due = datetime.now(UTC) + timedelta(hours=2)
    await clockwork.fire(due)
    await clockwork.db.fetch_alone(
        "INSERT INTO headrace.task_executions (task_uid, task_name, task_type, execution_uid, scheduled_at, run_by, "
        "state, started_at, finished_at, trigger_type) "
        "SELECT uid, name, type, 'exe_' || lpad(n::text, 26, '0'), now() - n * interval '1 s', 'w', 'success', now(), "
        "now(), 'scheduled' FROM headrace.scheduled_tasks, generate_series(1, 5500) AS n WHERE name = 'ada''s'"
    )
    batches = [gone async for gone in ForgetSchedules().erase(clockwork.db, ada)]
    assert (sum(batches), max(batches)) == (5500 + 2 + 2, 5000)
    left = await clockwork.db.fetch_alone("SELECT name FROM headrace.scheduled_tasks")
    assert [row["name"] for row in left] == ["everybody's"]
    assert await clockwork.db.fetch_alone("SELECT FROM headrace.task_executions WHERE task_name LIKE 'ada%'") == []
    # What was fired is a task, and the next step's business.
    assert len(await clockwork.db.fetch_alone("SELECT FROM headrace.tasks WHERE user_id = $1", ada)) == 2
    await clockwork.fire(due + timedelta(hours=2))
    assert len(await clockwork.db.fetch_alone("SELECT FROM headrace.tasks WHERE user_id = $1", ada)) == 2
