"""Why is this not running? Each answer names what it is, for people and for programs."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.access import Caller, Role
from headrace.tasks import queues, service
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.execution import Backoff
from headrace.tasks.store import obstacles
from headrace.tasks.why import Code, Reason, explain
from headrace.tasks.worker.store import BEAT
from tests.tasks.conftest import Bench
from tests.tasks.people import hire, person, take, tasks_of


@pytest.fixture
def bench(bench: Bench) -> Bench:
    @bench.registry.task("report.build", max_running=2, max_running_per_key=1)
    async def build(context: TaskContext, payload: Any) -> None: ...

    @bench.registry.task("mail.send", max_attempts=3, backoff=Backoff(first=timedelta(hours=1), jitter=0))
    async def send(context: TaskContext, payload: Any) -> None:
        raise RuntimeError("no luck")

    return bench


async def why(bench: Bench, caller: Caller, task_id: str) -> Sequence[Reason]:
    async with bench.db.transaction() as tx:
        return (await explain(tx, caller, task_id)).reasons


async def test_no_worker_is_alive(bench: Bench) -> None:
    ada = await person(bench)
    task = await bench.submit("mail.send", user_id=ada.user_id)
    (reason,) = await why(bench, ada, task)
    assert (reason.code, reason.text, reason.facts["last_seen_at"]) == (Code.NO_WORKER, "No worker is alive.", None)


async def test_no_worker_knows_the_type(bench: Bench) -> None:
    ada = await person(bench)
    gone = await hire(bench)
    await hire(bench, types=["other.type"])
    async with bench.db.transaction() as tx:
        await tx.execute("UPDATE headrace.workers SET ended_at = now(), ending = 'DEAD' WHERE id = $1", gone.id)
    task = await bench.submit("mail.send", user_id=ada.user_id)
    (reason,) = await why(bench, ada, task)
    assert reason.code is Code.NO_WORKER_FOR_TYPE
    assert reason.facts["known_types"] == ["other.type"]
    assert reason.facts["last_seen_at"] is not None
    assert "mail.send" in reason.text


async def test_a_type_that_nobody_ever_registered_waits_and_says_so(bench: Bench) -> None:
    ada = await person(bench)
    await hire(bench)
    async with bench.db.transaction() as tx:
        task = await tx.fetchval(
            "SELECT headrace.submit('nobody.knows', user_id => $1, unknown_type => 'wait', trusted => true)",
            ada.user_id,
        )
    (reason,) = await why(bench, ada, task)
    assert (reason.code, reason.facts["last_seen_at"]) == (Code.NO_WORKER_FOR_TYPE, None)
    assert "never been seen" in reason.text
    assert reason.facts["known_types"] == ["mail.send", "report.build"]


@pytest.mark.parametrize(
    "silence",
    ["stopping_at = now()", "heartbeat_at = now() - interval '1 hour'", "ended_at = now(), ending = 'STOPPED'"],
)
async def test_a_worker_that_takes_nothing_more_does_not_count(bench: Bench, silence: str) -> None:
    ada = await person(bench)
    await hire(bench)
    async with bench.db.transaction() as tx:
        await tx.execute(f"UPDATE headrace.workers SET {silence}")
    (reason,) = await why(bench, ada, await bench.submit("mail.send", user_id=ada.user_id))
    assert reason.code is Code.NO_WORKER


async def test_no_worker_takes_from_the_queue_or_has_the_labels(bench: Bench) -> None:
    ada = await person(bench)
    await hire(bench, queues=["fast"], labels={"zone": "b"})
    elsewhere = await bench.submit("mail.send", user_id=ada.user_id, queue="slow")
    picky = await bench.submit("mail.send", user_id=ada.user_id, queue="fast", labels={"zone": "a"})
    (reason,) = await why(bench, ada, elsewhere)
    assert (reason.code, reason.facts) == (
        Code.NO_WORKER_FOR_QUEUE,
        {"queue": "slow", "taken_queues": ["fast"]},
    )
    (reason,) = await why(bench, ada, picky)
    assert (reason.code, reason.facts) == (Code.NO_WORKER_WITH_LABELS, {"labels": {"zone": "a"}})
    assert "zone=a" in reason.text


async def test_it_is_not_time_yet_and_the_queue_is_paused(bench: Bench) -> None:
    ada, root = await person(bench), await person(bench, "root", role=Role.ADMIN)
    await hire(bench)
    at = datetime.now(UTC) + timedelta(hours=2)
    task = await bench.submit("mail.send", user_id=ada.user_id, run_at=at)
    async with bench.db.transaction() as tx:
        paused = await queues.pause_queue(tx, root, "default")
    time, queue = await why(bench, ada, task)
    assert (time.code, time.facts) == (Code.SCHEDULED, {"run_at": at})
    assert (queue.code, queue.facts) == (Code.QUEUE_PAUSED, {"queue": "default", "since": paused.paused_at})


async def test_it_waits_after_a_failure(bench: Bench) -> None:
    ada = await person(bench)
    task = await bench.submit("mail.send", user_id=ada.user_id)
    async with bench.working():
        await bench.until(task, lambda row: row["retries"] == 1)
        (reason,) = await why(bench, ada, task)
    assert reason.code is Code.BACKING_OFF
    assert (reason.facts["failures"], reason.facts["max_attempts"], reason.facts["error_code"]) == (1, 3, "error")
    assert "failure 1 of 3" in reason.text


async def test_a_limit_is_reached_and_by_whom(bench: Bench) -> None:
    ada, eve, root = await person(bench), await person(bench, "eve"), await person(bench, "root", role=Role.ADMIN)
    worker = await hire(bench)
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
        await queues.limit_queue(tx, root, "default", max_running=2)
    await bench.submit("report.build", user_id=eve.user_id, limit_key="one")
    mine = await bench.submit("report.build", user_id=ada.user_id, limit_key="two")
    assert len(await take(bench, worker)) == 2
    task = await bench.submit("report.build", user_id=ada.user_id, limit_key="two")
    reasons = await why(bench, ada, task)
    assert [(reason.code, reason.facts["scope"], reason.facts["name"]) for reason in reasons] == [
        (Code.LIMIT_REACHED, "queue", "default"),
        (Code.LIMIT_REACHED, "type", "report.build"),
        (Code.LIMIT_REACHED, "key", "two"),
    ]
    queue, _, key = reasons
    assert (queue.facts["limit"], queue.facts["running"]) == (2, 2)
    assert (queue.facts["own_tasks"], queue.facts["tasks_of_others"]) == ([mine], 1)
    assert (key.facts["own_tasks"], key.facts["tasks_of_others"]) == ([mine], 0)
    assert eve.user_id not in str(reasons)
    assert await take(bench, worker) == []  # it is so


async def test_others_go_first(bench: Bench) -> None:
    ada = await person(bench)
    await hire(bench)
    for _ in range(3):
        await bench.submit("mail.send", priority=5)
    await bench.submit("mail.send", priority=9, run_at=datetime.now(UTC) + timedelta(hours=1))
    for _ in range(2):
        await bench.submit("mail.send", user_id=ada.user_id)
    task = await bench.submit("mail.send", user_id=ada.user_id)
    (reason,) = await why(bench, ada, task)
    assert (reason.code, reason.facts) == (
        Code.BEHIND_OTHERS,
        {"higher_priority": 3, "earlier": 2, "exact": True},
    )


async def test_counting_those_ahead_stops_at_its_bound(bench: Bench) -> None:
    ada = await person(bench)
    await hire(bench)
    for _ in range(2):
        task = await bench.submit("mail.send", user_id=ada.user_id)
    async with bench.db.transaction() as tx:
        await tx.execute(
            "INSERT INTO headrace.task_queue (run_at, lane_id, route_id, precedence, task_id) "
            "SELECT now() - n * interval '1 s', "
            "q.lane_id, q.route_id, 0, 'x' FROM headrace.task_queue AS q, generate_series(1, $1::int) AS n "
            "WHERE task_id = $2",
            obstacles.MAX_AHEAD,
            task,
        )
    (reason,) = await why(bench, ada, task)
    assert reason.facts == {"higher_priority": 0, "earlier": obstacles.MAX_AHEAD, "exact": False}
    assert "at least" in reason.text


async def test_the_workers_are_busy_or_it_starts_any_moment(bench: Bench) -> None:
    ada, worker = await person(bench), await hire(bench, concurrency=1)
    task = await bench.submit("mail.send", user_id=ada.user_id)
    (reason,) = await why(bench, ada, task)
    assert (reason.code, reason.facts) == (Code.ANY_MOMENT, {"workers": 1})
    await bench.db.fetch_alone(BEAT, worker.number, 1, 0, {"async": 1})
    (reason,) = await why(bench, ada, task)
    assert (reason.code, reason.facts) == (Code.WORKERS_BUSY, {"workers": 1, "running": 1, "slots": 1})


async def test_the_slots_for_its_isolation_are_busy(bench: Bench) -> None:
    """Free slots on the event loop are of no use to a task that needs a process."""
    slots = [("async", 50, ["other"]), ("process", 2, ["mail.send"])]
    ada, worker = await person(bench), await hire(bench, slots=slots)
    task = await bench.submit("mail.send", user_id=ada.user_id)
    await bench.db.fetch_alone(BEAT, worker.number, 2, 0, {"async": 0, "process": 2})
    (reason,) = await why(bench, ada, task)
    assert (reason.code, reason.facts) == (Code.WORKERS_BUSY, {"workers": 1, "running": 2, "slots": 2})


async def test_it_runs_is_told_to_stop_or_is_over(bench: Bench) -> None:
    ada, worker = await person(bench), await hire(bench)
    task = await bench.submit("mail.send", user_id=ada.user_id)
    await take(bench, worker)
    (reason,) = await why(bench, ada, task)
    assert (reason.code, reason.facts["worker_id"], reason.facts["attempt"]) == (Code.RUNNING, worker.id, 1)
    async with bench.db.transaction() as tx:
        await service.cancel_task(tx, tasks_of(bench), ada, task)
    (reason,) = await why(bench, ada, task)
    assert reason.code is Code.STOPPING
    waiting = await bench.submit("mail.send", user_id=ada.user_id)
    async with bench.db.transaction() as tx:
        await service.cancel_task(tx, tasks_of(bench), ada, waiting)
    (reason,) = await why(bench, ada, waiting)
    assert (reason.code, reason.facts["status"]) == (Code.OVER, "CANCELED")
