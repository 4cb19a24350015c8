"""Events are written where somebody wants them, decided in the transaction of the change; others cost nothing."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

from headrace import ids
from headrace.database import Database
from headrace.outbox.interests import Interest
from headrace.tasks.context import TaskContext
from headrace.tasks.events import OutboxFollower
from headrace.tasks.followers import OUTBOX, OUTBOX_ALWAYS, Followers
from headrace.tasks.model import TaskSpec
from tests.outbox.hearing import want
from tests.tasks.conftest import Bench
from tests.tasks.people import told

LIFE = ["created", "started", "succeeded"]


class Counting(Database):
    """A database that counts round trips: a statement alone is one, a transaction has two more than its statements."""

    alone = 0
    transactions = 0

    async def fetch_alone(self, sql: str, *args: object) -> Any:
        self.alone += "INSERT INTO headrace.tasks" in sql
        return await super().fetch_alone(sql, *args)

    def transaction(self, **how: Any) -> Any:
        self.transactions += 1
        return super().transaction(**how)


@pytest.fixture
async def counted(database_url: str) -> AsyncIterator[Counting]:
    from headrace.database import DatabaseConfig

    async with await Counting.connect(DatabaseConfig(database_url, role="test")) as db:
        yield db


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.followers = Followers({OUTBOX: OutboxFollower(), OUTBOX_ALWAYS: OutboxFollower(always=True)})
    types: dict[str, bool | Literal["always"]] = {"work": True, "silent": False, "sure": "always"}
    for name, events in types.items():

        @bench.registry.task(name, events=events)
        async def nothing(context: TaskContext, payload: Any) -> None: ...

    return bench


async def now(bench: Bench, *types: str, user_id: str = ids.SYSTEM_USER) -> list[str]:
    return await bench.submitter.submit_now(bench.db, [TaskSpec(name) for name in types], user_id=user_id)


async def run_all(bench: Bench, tasks: list[str]) -> None:
    async with bench.working():
        await bench.over(*tasks)


async def test_what_nobody_wants_is_not_written_and_what_must_be_is(bench: Bench) -> None:
    """W-06, W-07: types that demand it write always."""
    tasks = [*await now(bench, "work"), *await now(bench, "work"), *await now(bench, "silent", "sure", "work")]
    await run_all(bench, tasks)
    assert [await told(bench.db, task) for task in tasks] == [[], [], [], LIFE, []]


@pytest.mark.parametrize("together", [1, 3])
async def test_with_and_without_listeners_a_submission_is_one_round_trip(
    bench: Bench, counted: Counting, together: int
) -> None:
    bench.db = counted
    await now(bench, *["work"] * together)  # learns the lane
    counted.transactions = counted.alone = 0
    unheard = await now(bench, *["work"] * together)
    await want(bench.db)
    counted.transactions = 0
    heard = await now(bench, *["work"] * together)
    assert (counted.transactions, counted.alone) == (0, 2)
    await run_all(bench, unheard + heard)
    assert {tuple(await told(bench.db, task)) for task in unheard} == {("started", "succeeded")}
    assert {tuple(await told(bench.db, task)) for task in heard} == {tuple(LIFE)}


async def test_only_what_fits_an_interest_is_written(bench: Bench) -> None:
    ada, bob = await bench.user("ada"), await bench.user("bob")
    bench.registry.task("other")(lambda _context, _payload: None)
    await want(bench.db, Interest("task.succeeded", ada), Interest("task.*", task_type="other"), "account.*")
    tasks = [
        *await now(bench, "work", user_id=ada),
        *await now(bench, "work", user_id=bob),
        *await now(bench, "other", user_id=bob),
    ]
    await run_all(bench, tasks)
    assert [await told(bench.db, task) for task in tasks] == [["succeeded"], [], LIFE]


async def test_ids_that_the_database_makes_are_type_ids(bench: Bench) -> None:
    await want(bench.db, "*")
    await now(bench, *["work"] * 200)
    made = [row[0] for row in await bench.db.fetch_alone("SELECT event_id FROM headrace.outbox_events")]
    assert len(set(made)) == 200
    assert all(ids.check(each, "evt") for each in made)


async def test_a_subscription_gets_everything_that_commits_after_it(bench: Bench) -> None:
    """Transactions that are open while somebody subscribes: their events are there, or they committed before."""
    await now(bench, "work")
    async with bench.db.transaction() as early:
        before = await bench.submitter.submit(early, TaskSpec("work"), user_id=ids.SYSTEM_USER)
        subscribing = asyncio.create_task(want(bench.db))
        await asyncio.sleep(0.2)
        assert not subscribing.done()  # it waits for those who decided without it
    async with asyncio.timeout(60):
        await subscribing
    assert await told(bench.db, before) == []
    async with bench.db.transaction() as idle:  # one that was open all the time, and decides only now
        await idle.execute("SELECT 1")
        await want(bench.db, "task.created", key="another")
        after = await bench.submitter.submit(idle, TaskSpec("work"), user_id=ids.SYSTEM_USER)
    assert await told(bench.db, after) == ["created"]


async def test_under_constant_load_no_event_is_missing_from_the_first_one_on(bench: Bench) -> None:
    await now(bench, "work")
    stop, made = asyncio.Event(), []

    async def submit() -> None:
        while not stop.is_set():
            (task,) = await now(bench, "work")
            made.append((task, subscribed.is_set()))

    subscribed = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(submit())
        while len(made) < 20:
            await asyncio.sleep(0.01)
        await want(bench.db)
        subscribed.set()
        while sum(after for _, after in made) < 50:
            await asyncio.sleep(0.01)
        stop.set()
    rows = await bench.db.fetch_alone(
        "SELECT task.id, event.id IS NOT NULL AS told FROM headrace.tasks AS task "
        "LEFT JOIN headrace.outbox_events AS event ON event.aggregate_id = task.id ORDER BY task.queue_seq"
    )
    known = {row["id"]: row["told"] for row in rows}
    first = next(number for number, (task, after) in enumerate(made) if after)
    # Those that began before the subscription was acknowledged may be on either side; there are four hands at most.
    assert all(known[task] for task, _ in made[first + 4 :])
    assert not known[made[0][0]]
