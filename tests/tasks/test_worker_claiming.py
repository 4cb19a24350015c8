"""What a worker takes, and in which order: by priority, users in turns, within limits, nothing that is not for it."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.ids import SYSTEM_USER
from headrace.tasks.context import TaskContext
from headrace.tasks.model import TaskSpec
from headrace.tasks.worker.claiming import Claimer, Room
from tests.tasks.conftest import Bench
from tests.tasks.people import hire


async def test_higher_priority_first_and_equal_ones_in_the_order_of_submission(bench: Bench) -> None:  # D-03
    order: list[int] = []

    @bench.registry.task("note", max_attempts=1)  # a single attempt: nothing is taken ahead
    async def note(context: TaskContext, number: Any) -> None:
        order.append(number)

    tasks = [
        await bench.submit("note", number, priority=priority)
        for number, priority in [(5, 0), (6, 0), (1, 9), (3, 5), (2, 9), (7, -1), (4, 5)]
    ]
    async with bench.working(concurrency=1):
        await bench.over(*tasks)
    assert order == [1, 2, 3, 4, 5, 6, 7]


async def test_what_is_taken_ahead_does_not_overtake_a_higher_priority_with_one_attempt(bench: Bench) -> None:  # D-03
    order: list[str] = []
    started, go_on = asyncio.Event(), asyncio.Event()

    @bench.registry.task("often", max_attempts=3)
    async def often(context: TaskContext, payload: Any) -> None:
        order.append("often")
        if len(order) == 60:  # by now handlers are known to be quick, and many are taken ahead
            started.set()
            await go_on.wait()

    @bench.registry.task("once", max_attempts=1, priority=5)
    async def once(context: TaskContext, payload: Any) -> None:
        order.append("once")

    tasks = [await bench.submit("often") for _ in range(60)]
    async with bench.working(concurrency=1, poll_every=timedelta(minutes=10)) as worker:
        await started.wait()
        async with bench.db.transaction() as tx:
            specs = [TaskSpec("often")] * 5 + [TaskSpec("once")] * 3 + [TaskSpec("often")] * 5
            tasks += await bench.submitter.submit_many(tx, specs, user_id=SYSTEM_USER)
        worker._feeder._claimer.refresh()  # as it does by itself after a while
        go_on.set()
        await bench.over(*tasks)
    assert order[60:63] == ["once"] * 3


async def turns(bench: Bench, backlog: int, rules: dict[str, Any], **worker: Any) -> list[str]:
    """Whose tasks run, in their order: three of the quiet user come behind a backlog of the busy one."""
    order: list[str] = []

    @bench.registry.task("work", **rules)
    async def work(context: TaskContext, payload: Any) -> None:
        order.append(payload)

    users = {name: await bench.user(name) for name in ("busy", "quiet")}
    tasks = [await bench.submit("work", name, user_id=users[name]) for name in ["busy"] * backlog + ["quiet"] * 3]
    async with bench.working(**worker):
        await bench.over(*tasks)
    assert len(order) == backlog + 3
    return order


async def test_no_users_backlog_starves_another(bench: Bench) -> None:
    order = await turns(bench, 60, {"max_attempts": 1}, concurrency=2)
    assert "quiet" not in order[20:]


@pytest.mark.parametrize("max_attempts", [1, 3])
async def test_a_worker_that_takes_one_at_a_time_serves_users_in_turns(bench: Bench, max_attempts: int) -> None:
    order = await turns(bench, 30, {"max_attempts": max_attempts}, concurrency=1, ahead=timedelta(0))
    assert order[:6].count("quiet") == 3


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_user_with_many_lanes_has_no_more_turns_than_others(bench: Bench, concurrency: int) -> None:
    """With 190 limit keys, one user's tasks of two seconds made others wait for eight seconds instead of two."""
    order: list[str] = []

    @bench.registry.task("work", max_attempts=1)
    async def work(context: TaskContext, payload: Any) -> None:
        order.append(payload)

    busy, quiet = await bench.user("busy"), await bench.user("quiet")
    tasks = [await bench.submit("work", f"busy{n % 20}", user_id=busy, limit_key=str(n % 20)) for n in range(60)]
    tasks += [await bench.submit("work", "quiet", user_id=quiet) for _ in range(3)]
    async with bench.working(concurrency=concurrency, ahead=timedelta(0)):
        await bench.over(*tasks)
    assert order[: 6 * concurrency].count("quiet") == 3
    # The lanes of one user have their turns, too.
    assert len({each for each in order[:45] if each != "quiet"}) == 20


async def test_a_limits_only_slot_goes_to_each_lane_in_turn(bench: Bench) -> None:
    order = await turns(bench, 40, {"max_running": 1}, concurrency=10)
    assert "quiet" not in order[35:]


async def test_single_attempts_do_not_wait_for_the_next_look(bench: Bench) -> None:
    @bench.registry.task("once", max_attempts=1)
    async def once(context: TaskContext, payload: Any) -> None: ...

    async with bench.db.transaction() as tx:
        tasks = await bench.submitter.submit_many(tx, [TaskSpec("once")] * 200, user_id=SYSTEM_USER)
    # Short ones are taken ahead, these not: what is left must be taken as soon as there is room.
    async with bench.working(concurrency=2, poll_every=timedelta(minutes=10), ahead=timedelta(seconds=60)):
        await bench.over(*tasks)


@pytest.mark.parametrize("woken", [False, True])
async def test_of_single_attempts_no_more_are_taken_than_can_start(bench: Bench, woken: bool) -> None:
    @bench.registry.task("once", max_attempts=1)
    async def once(context: TaskContext, payload: Any) -> None: ...

    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    for name in ("one", "two", "three"):
        user = await bench.user(name)
        for _ in range(10):
            await bench.submit("once", user_id=user)
            await bench.submit("work", user_id=user)
    worker = await hire(bench)
    claimer = Claimer(bench.db, queues=None, types={"async": ["once", "work"]}, labels={})
    if woken:
        claimer.exhausted = True
        claimer.wake()
    rows = await claimer.claim(worker, {"async": Room(40, 4)})
    assert [row["task_type"] for row in rows[:5]] == ["once"] * 4 + ["work"]
    assert {row["task_type"] for row in rows[5:]} == {"work"}


async def test_a_delayed_task_waits_for_its_time(bench: Bench) -> None:
    ran: list[float] = []

    @bench.registry.task("later")
    async def later(context: TaskContext, payload: Any) -> None:
        ran.append(time.time())

    due = datetime.now(UTC) + timedelta(seconds=0.7)
    task = await bench.submit("later", run_at=due)
    async with bench.working(poll_every=timedelta(minutes=10)):
        await bench.over(task)
    assert due.timestamp() <= ran[0]  # and it was over within a minute, long before the next look


async def test_a_limit_for_a_key_holds_over_several_workers(bench: Bench) -> None:
    at_once: dict[str, int] = {}
    most: dict[str, int] = {}

    @bench.registry.task("limited", max_running_per_key=2, limit_key="payload.key")
    async def limited(context: TaskContext, payload: Any) -> None:
        key = payload["key"]
        at_once[key] = at_once.get(key, 0) + 1
        most[key] = max(most.get(key, 0), at_once[key])
        await asyncio.sleep(0.02)
        at_once[key] -= 1

    tasks = [await bench.submit("limited", {"key": key}) for key in "ab" * 12]
    async with bench.working(), bench.working(), bench.working():
        rows = await bench.over(*tasks)
    assert {row["status"] for row in rows} == {"SUCCEEDED"}
    assert most == {"a": 2, "b": 2}


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(bench: Bench) -> None:
    @bench.registry.task("work", queue="mail")
    async def work(context: TaskContext, payload: Any) -> None: ...

    async with bench.db.transaction() as tx:
        await tx.execute("INSERT INTO headrace.queues (name, paused_at) VALUES ('mail', now())")
    task = await bench.submit("work")
    async with bench.working():
        await asyncio.sleep(0.4)
        assert (await bench.row(task))["status"] == "QUEUED"
        async with bench.db.transaction() as tx:
            await tx.execute("UPDATE headrace.queues SET paused_at = NULL")
        await bench.over(task)


async def test_only_registered_types_queues_and_labels_are_taken(bench: Bench) -> None:
    @bench.registry.task("here")
    async def here(context: TaskContext, payload: Any) -> None: ...

    elsewhere = await bench.submit("here", queue="other")
    labelled = await bench.submit("here", labels={"gpu": "yes"})
    mine = await bench.submit("here")
    async with bench.working(queues=["default"], labels={"zone": "a"}):
        await bench.over(mine)
        assert (await bench.row(elsewhere))["status"] == "QUEUED"
        assert (await bench.row(labelled))["status"] == "QUEUED"
    async with bench.working(queues=["default", "other"], labels={"zone": "a", "gpu": "yes"}):
        await bench.over(elsewhere, labelled)
