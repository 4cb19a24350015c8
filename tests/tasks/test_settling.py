"""Tasks that SQL submits before any worker has declared their type: the type decides, not a guess. D-02."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from headrace.access import Role
from headrace.database import Tx
from headrace.tasks import service, settling
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.followers import Followers
from headrace.tasks.model import Transition
from tests.tasks.conftest import AT_ONCE, Bench
from tests.tasks.people import person, tasks_of
from tests.tasks.sql import caller, nothing, row_of, submit

SETTLED = ("queue", "priority", "max_attempts", "timeout_seconds", "limit_key", "left_to_type")


async def settle(bench: Bench) -> int:
    """What a worker of the bench's types does when it starts."""
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    return await settling.run_once(bench.db, bench.registry.names)


async def test_a_type_with_a_single_attempt_runs_once_however_early_it_was_submitted(bench: Bench) -> None:
    ran: list[str] = []

    @bench.registry.task("pay", max_attempts=1, backoff=AT_ONCE)
    async def pay(context: TaskContext, payload: Any) -> None:
        ran.append(context.task_id)
        raise RuntimeError("the card was refused")

    task = await submit(bench.db, "pay")
    async with bench.working():
        (row,) = await bench.over(task)
    assert (row["status"], row["attempt"], row["max_attempts"]) == ("FAILED", 1, 1)
    assert ran == [task]


async def test_what_was_left_out_is_as_the_type_says_and_what_was_given_stays(bench: Bench) -> None:
    bench.registry.task(
        "crawl",
        queue="web",
        priority=5,
        max_attempts=9,
        timeout=timedelta(seconds=90),
        max_running_per_key=1,
        limit_key="payload.host",
    )(nothing)
    bare = await submit(bench.db, "crawl", {"host": "a"})
    given = await submit(bench.db, "crawl", {"host": "b"}, queue="q", priority=-2, max_attempts=1, limit_key="mine")
    assert await settle(bench) == 2
    rows = [await row_of(bench.db, "tasks", each) for each in (bare, given)]
    assert [tuple(row[name] for name in SETTLED) for row in rows] == [
        ("web", 5, 9, 90, "a", None),
        ("q", -2, 1, 90, "b", None),  # a type that computes its key takes no other
    ]
    places = [await row_of(bench.db, "task_queue", each) for each in (bare, given)]
    lanes = [
        (await bench.db.fetch_alone("SELECT * FROM headrace.task_lanes WHERE id = $1", place["lane_id"]))[0]
        for place in places
    ]
    assert [place["precedence"] for place in places] == [-5, 2]
    assert [(lane["queue"], lane["limit_key"], lane["labels"], lane["only_once"]) for lane in lanes] == [
        ("web", "a", {}, False),
        ("q", "b", {}, True),
    ]
    assert await settle(bench) == 0


async def test_a_limit_per_key_holds_for_what_came_before_the_type(bench: Bench) -> None:
    running, most = 0, 0

    @bench.registry.task("crawl", max_running_per_key=1, limit_key="payload.host")
    async def crawl(context: TaskContext, payload: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1

    tasks = [await submit(bench.db, "crawl", {"host": "a"}) for _ in range(6)]
    async with bench.working():
        await bench.over(*tasks)
    assert most == 1


async def test_a_transaction_that_was_open_while_the_type_was_declared_is_settled_later(
    bench: Bench, database_url: str
) -> None:
    bench.registry.task("pay", queue="money", max_attempts=1)(nothing)
    async with caller(database_url) as program:
        begun = program.transaction()
        await begun.start()
        task = await program.fetchval("SELECT headrace.submit('pay', unknown_type => 'wait')")
        async with bench.working(lease=timedelta(seconds=1.5), queues=["money"]):
            async with asyncio.timeout(20):
                while not await bench.db.fetch_alone("SELECT FROM headrace.workers"):
                    await asyncio.sleep(0.02)
            await begun.commit()
            (row,) = await bench.over(task)
    assert (row["status"], row["queue"], row["max_attempts"]) == ("SUCCEEDED", "money", 1)


async def test_no_worker_takes_it_before_it_is_settled(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.registry.task("pay")(nothing)
    task = await submit(bench.db, "pay")

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(settling, "run", never)
        async with bench.working():
            await bench.over(await bench.submit("pay"))
            assert (await bench.row(task))["status"] == "QUEUED"
    async with bench.working():
        await bench.over(task)


async def test_one_that_was_canceled_and_sent_again_by_hand_is_settled_all_the_same(bench: Bench) -> None:
    admin = await person(bench, "root", role=Role.ADMIN)
    task = await submit(bench.db, "pay")
    bench.registry.task("pay", max_attempts=1, priority=3)(nothing)
    async with bench.db.transaction() as tx:
        await service.cancel_task(tx, tasks_of(bench), admin, task)
        await service.retry_task(tx, tasks_of(bench), admin, task)
    assert await settle(bench) == 1
    place = await row_of(bench.db, "task_queue", task)
    assert (place["precedence"], (await bench.row(task))["max_attempts"]) == (-3, 1)


async def test_what_cannot_be_a_key_counts_by_its_text(bench: Bench) -> None:
    bench.registry.task("crawl", max_running_per_key=1, limit_key="payload.host")(nothing)
    task = await submit(bench.db, "crawl", {"host": {"name": "a" * 400}})
    assert await settle(bench) == 1
    assert (await bench.row(task))["limit_key"] == '{"name": "' + "a" * 245


async def test_several_workers_settle_thousands_in_batches_each_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "_AT_ONCE", 10)
    bench.registry.task("pay", max_attempts=7)(nothing)
    tasks = [await submit(bench.db, "pay") for _ in range(75)]
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    settled = 0
    while settled < len(tasks):
        settled += sum(await asyncio.gather(*(settling.run_once(bench.db, ["pay"]) for _ in range(4))))
    assert settled == len(tasks)
    rows = [await bench.row(task) for task in tasks]
    assert {(row["max_attempts"], row["version"]) for row in rows} == {(7, rows[0]["version"])}


async def test_a_type_that_others_must_move_with_takes_none_of_those_that_came_before(bench: Bench) -> None:  # W-06
    """Its followers never heard of their creation, so they must not hear of their end."""

    class Silent:
        async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:  # noqa: ARG002
            raise AssertionError(transitions)

    task = await submit(bench.db, "pay")
    bench.followers = Followers({"ledger": Silent()})
    bench.registry.task("pay", followers=("ledger",))(nothing)
    assert await settle(bench) == 1
    (row,) = await bench.over(task)
    assert (row["status"], row["error_code"], row["queue_seq"]) == ("FAILED", "fatal", None)
    assert "must be submitted over the API" in row["error_message"]
    assert await bench.logged(task) == [(0, "FAILED")]
