"""Whatever people and workers do to a task at the same time, it ends once, and its two rows agree. D-08, W-09"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from headrace.access import Caller, Role
from headrace.errors import Conflict
from headrace.tasks import queues, service, submit
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import TaskChanged, TaskNotOver, TaskOver
from headrace.tasks.events import OutboxFollower
from headrace.tasks.execution import Backoff
from headrace.tasks.followers import Followers
from headrace.tasks.model import Ending, Outcome, TaskSpec
from headrace.tasks.reaping import Reaper
from headrace.tasks.registry import Registry
from headrace.tasks.worker import store
from headrace.tasks.worker.declaring import declare_patiently
from headrace.tasks.worker.endings import Writer
from tests.outbox.hearing import want
from tests.tasks.conftest import Bench
from tests.tasks.people import WAITING_SESSIONS, hire, person, take, tasks_of, trail

# A narrow row is there exactly while a task waits or runs, and names it by the number that the wide row has.
DISAGREEING = """
SELECT task.id, task.status, task.queue_seq, place.seq
FROM headrace.tasks AS task FULL JOIN headrace.task_queue AS place ON place.task_id = task.id
WHERE (task.status IN ('SUCCEEDED', 'FAILED', 'CANCELED')) = (place.seq IS NOT NULL)
   OR task.queue_seq IS DISTINCT FROM place.seq
"""
# Each life of a task has one end: after every retry by hand another one.
ENDS = """
SELECT task.id, task.status, count(*) FILTER (WHERE line.status IN ('SUCCEEDED', 'FAILED', 'CANCELED')) AS ends,
       count(*) FILTER (WHERE line.status = 'RETRIED' AND line.attempt = 0) AS again
FROM headrace.tasks AS task LEFT JOIN headrace.task_logs AS line ON line.task_id = task.id
GROUP BY task.id
"""


@pytest.fixture
async def bench(bench: Bench) -> Bench:
    bench.followers = Followers({"outbox": OutboxFollower()})
    await want(bench.db)

    @bench.registry.task("quick", max_attempts=2, backoff=Backoff(first=timedelta(milliseconds=1)))
    async def quick(context: TaskContext, payload: Any) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))
        if random.random() < 0.3:
            raise RuntimeError("no luck")

    return bench


async def check(bench: Bench) -> Counter[str]:
    """Both rows agree and each life ended once; gives how many tasks have which status."""
    async with bench.db.transaction() as tx:
        assert [dict(row) for row in await tx.fetch(DISAGREEING)] == []
        rows = await tx.fetch(ENDS)
        told = await tx.fetch(
            "SELECT aggregate_id, count(*) FROM headrace.outbox_events "
            "WHERE event_type IN ('task.succeeded', 'task.failed', 'task.canceled') GROUP BY 1"
        )
    ends = {row["id"]: row["ends"] for row in rows if row["ends"]}
    for row in rows:
        over = row["status"] in ("SUCCEEDED", "FAILED", "CANCELED")
        assert row["ends"] == row["again"] + over, dict(row)
    assert {row["aggregate_id"]: row["count"] for row in told} == ends
    return Counter(row["status"] for row in rows)


Verb = Callable[..., Awaitable[object]]


async def attempt(bench: Bench, caller: Caller, verb: Verb, task_id: str) -> type[Exception] | None:
    """Do it as a request would; gives what it was refused with."""
    try:
        async with bench.db.transaction() as tx:
            await verb(tx, tasks_of(bench), caller, task_id)
    except Conflict as refused:
        return type(refused)
    return None


async def submit_many(bench: Bench, caller: Caller, number: int) -> list[str]:
    return [await bench.submit("quick", user_id=caller.user_id) for _ in range(number)]


async def test_cancel_against_a_working_worker(bench: Bench) -> None:
    ada = await person(bench)
    task_ids = await submit_many(bench, ada, 80)
    async with bench.working(), bench.working():
        refusals = await asyncio.gather(*(attempt(bench, ada, service.cancel_task, task) for task in task_ids))
        await bench.over(*task_ids)
    assert set(refusals) <= {None, TaskOver}
    statuses = await check(bench)
    assert statuses["CANCELED"] > 0
    assert statuses.total() == 80


async def test_cancel_and_retry_by_many_hands_against_a_working_worker(bench: Bench) -> None:
    ada = await person(bench)
    task_ids = await submit_many(bench, ada, 12)

    async def hand() -> Counter[type[Exception] | None]:
        answers: Counter[type[Exception] | None] = Counter()
        for _ in range(40):
            verb = random.choice([service.cancel_task, service.retry_task])
            answers[await attempt(bench, ada, verb, random.choice(task_ids))] += 1
        return answers

    async with bench.working():
        answers = sum(await asyncio.gather(*(hand() for _ in range(6))), Counter())
        await asyncio.gather(*(attempt(bench, ada, service.cancel_task, task) for task in task_ids))
        await bench.over(*task_ids)
    assert set(answers) <= {None, TaskOver, TaskNotOver, TaskChanged}
    assert answers[None] > 0
    await check(bench)


async def test_of_many_who_try_again_at_once_one_does(bench: Bench) -> None:
    ada = await person(bench)
    (task,) = await submit_many(bench, ada, 1)
    assert await attempt(bench, ada, service.cancel_task, task) is None
    answers = await asyncio.gather(*(attempt(bench, ada, service.retry_task, task) for _ in range(10)))
    assert Counter(answers)[None] == 1
    assert set(answers) <= {None, TaskNotOver, TaskChanged}
    assert await check(bench) == {"QUEUED": 1}


async def test_cancel_against_the_end_of_an_attempt(bench: Bench) -> None:
    ada, worker = await person(bench), await hire(bench)
    task_ids = await submit_many(bench, ada, 60)
    claimed = await take(bench, worker)
    assert len(claimed) == 60
    writer = Writer(bench.db, bench.registry, bench.followers)

    async def end() -> None:
        for start in range(0, 60, 10):
            batch = claimed[start : start + 10]
            random.shuffle(batch)
            outcomes = random.choices([Outcome.SUCCEEDED, Outcome.RETRIED], k=10)
            await writer.write(worker, list(map(Ending, batch, outcomes)))

    answers, _ = await asyncio.gather(
        asyncio.gather(*(attempt(bench, ada, service.cancel_task, task) for task in random.sample(task_ids, 60))), end()
    )
    assert set(answers) <= {None, TaskOver}
    statuses = await check(bench)  # what was told to stop and did not go back was ended by its worker
    assert statuses["QUEUED"] + statuses["RUNNING"] == 0
    assert statuses.total() == 60


async def test_cancel_against_the_reaper(bench: Bench) -> None:
    ada = await person(bench)
    dead = await hire(bench, lease=timedelta(seconds=1))
    task_ids = await submit_many(bench, ada, 60)
    assert len(await take(bench, dead)) == 60
    async with bench.db.transaction() as tx:
        await tx.execute("UPDATE headrace.workers SET heartbeat_at = now() - interval '1 minute'")
    reaper = Reaper(bench.db, bench.registry, bench.followers)
    answers, *_ = await asyncio.gather(
        asyncio.gather(*(attempt(bench, ada, service.cancel_task, task) for task in task_ids)),
        reaper.run_once(),
        reaper.run_once(),
    )
    assert set(answers) == {None}
    await reaper.run_once()  # it waits for nobody, and leaves to a later look what it finds locked
    assert await check(bench) == {"CANCELED": 60}


async def test_a_limit_counts_what_is_being_claimed_at_this_moment(bench: Bench) -> None:
    ada, root = await person(bench), await person(bench, "root", role=Role.ADMIN)
    await submit_many(bench, ada, 60)
    workers = [await hire(bench) for _ in range(6)]

    async def limit() -> None:
        await asyncio.sleep(random.uniform(0, 0.03))
        async with bench.db.transaction() as tx:
            await queues.limit_queue(tx, root, "default", max_running=3)

    taken = [take(bench, worker, most=2) for worker in workers for _ in range(4)]
    await asyncio.gather(limit(), *taken)
    (row,) = await bench.db.fetch_alone(
        "SELECT count(*) AS running, count(*) FILTER (WHERE limited) AS counted "
        "FROM headrace.task_queue WHERE worker IS NOT NULL"
    )
    assert row["running"] == row["counted"]
    more = await take(bench, workers[0], most=10)
    assert len(more) == max(0, 3 - row["running"])


async def test_a_claim_that_waited_for_a_lock_is_dated_after_the_wait(bench: Bench) -> None:  # S-07
    """Otherwise a run seems to begin before the end of the one whose slot it has."""
    ada, worker = await person(bench), await hire(bench)
    await submit_many(bench, ada, 1)
    async with bench.db.transaction() as locking:
        async with bench.db.transaction() as submitting:
            await submitting.execute("SELECT 1")  # its task is due from here on
            await locking.execute("SELECT FROM headrace.workers WHERE number = $1 FOR NO KEY UPDATE", worker.number)
            taking = asyncio.create_task(take(bench, worker))
            async with asyncio.timeout(60):
                while not await bench.db.fetch_alone(WAITING_SESSIONS):
                    await asyncio.sleep(0.01)
            last = await bench.submitter.submit(submitting, TaskSpec("quick"), user_id=ada.user_id)
        ((committed_at,),) = await bench.db.fetch_alone("SELECT clock_timestamp()")
    (claimed,) = [each for each in await taking if each.task_id == last]
    assert claimed.claimed_at > committed_at


async def test_of_two_submits_with_one_key_one_is_audited(bench: Bench) -> None:  # D-06
    ada, tasks, spec = await person(bench), tasks_of(bench), TaskSpec("quick", idempotency_key="k1")
    async with bench.db.transaction() as earlier:
        await earlier.execute("SELECT 1")
        async with bench.db.transaction() as tx:
            first = await service.submit_task(tx, tasks, ada, spec)
        again = await service.submit_task(earlier, tasks, ada, spec)
    assert again.id == first.id
    assert len(await trail(bench.db, "created")) == 1


async def test_a_key_that_is_removed_while_it_is_asked_about_is_claimed_anew(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await bench.submit("quick", idempotency_key="k1")
    # Retention comes in between the two statements.
    monkeypatch.setattr(
        submit,
        "FIND_KEY",
        """
        WITH gone AS (DELETE FROM headrace.idempotency_keys WHERE user_id = $1 AND idempotency_key = $2)
        SELECT WHERE false
        """,
    )
    second = await bench.submit("quick", idempotency_key="k1")
    assert second != first


async def test_a_new_limit_of_a_type_and_a_batch_that_ends_do_not_deadlock(bench: Bench) -> None:
    worker = await hire(bench)
    for _ in range(2):
        await bench.submit("quick")
    first, second = sorted(claimed.seq for claimed in await take(bench, worker))
    bench.registry = Registry()

    @bench.registry.task("quick", max_running=1)
    async def quick(context: TaskContext, payload: Any) -> None: ...

    lock = "SELECT FROM headrace.task_queue WHERE seq = $1 FOR UPDATE"
    # Databases that are copies of one have relations of the same number.
    held_back = (
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        "WHERE datname = current_database() AND relation = 'headrace.workers'::regclass AND mode = 'ExclusiveLock'"
    )
    async with asyncio.timeout(60), bench.db.transaction() as tx:
        await tx.execute(lock, second)
        starting = asyncio.create_task(declare_patiently(bench.db, bench.registry))
        while not await tx.fetchval(held_back):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # it has the first by now
        await tx.execute(lock, first)
    await starting
    rows = await bench.db.fetch_alone("SELECT limited FROM headrace.task_queue")
    assert [row["limited"] for row in rows] == [True, True]


async def test_whoever_sleeps_is_woken_by_what_goes_back(bench: Bench) -> None:
    busy, sleeper = await hire(bench), await hire(bench)
    await store.set_asleep(bench.db, sleeper, asleep=True)
    async with asyncio.timeout(60), aclosing(bench.db.listen("headrace_tasks")) as notes:
        assert (await anext(notes)).resumed
        await bench.submit("quick")
        assert (await anext(notes)).payload == ""
        assert await store.unclaim(bench.db, busy, await take(bench, busy))
        assert (await anext(notes)).payload == ""
        (claimed,) = await take(bench, busy)
        async with bench.db.transaction() as tx:
            assert await store.requeue_tasks(tx, busy, [Ending(claimed, Outcome.SNOOZED)])
        assert (await anext(notes)).payload == ""

        # Nobody is called for nothing, nor by himself.
        assert not await store.unclaim(bench.db, busy, [claimed])
        assert await store.unclaim(bench.db, sleeper, await take(bench, sleeper))
        await bench.db.fetch_alone("SELECT pg_notify('headrace_tasks', 'the next')")
        assert (await anext(notes)).payload == "the next"
