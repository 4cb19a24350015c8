"""How an attempt ends, and what becomes of the task then: each ends once, in the way its handler says."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Fatal, Snooze
from headrace.tasks.execution import Backoff
from tests.tasks.conftest import AT_ONCE, Bench
from tests.tasks.people import hire, take


class Order(BaseModel):
    pages: int


class Report(BaseModel):
    url: str


async def test_a_task_runs_and_its_result_is_kept(bench: Bench) -> None:  # D-02
    @bench.registry.task("report.build")
    async def build(context: TaskContext, order: Order) -> Report:
        return Report(url=f"/reports/{order.pages}")

    task = await bench.submit("report.build", {"pages": 3})
    async with bench.working():
        (row,) = await bench.over(task)
    assert (row["status"], row["result"], row["attempt"], row["progress"]) == (
        "SUCCEEDED",
        {"url": "/reports/3"},
        1,
        100,
    )
    assert row["started_at"] <= row["finished_at"]
    assert await bench.logged(task) == [(1, "SUCCEEDED")]  # D-05


async def test_a_failure_is_retried_with_growing_pauses_until_the_limit(bench: Bench) -> None:  # D-04, D-05
    @bench.registry.task("flaky", max_attempts=3, backoff=AT_ONCE)
    async def flaky(context: TaskContext, payload: Any) -> None:
        raise RuntimeError("no luck")

    task = await bench.submit("flaky")
    async with bench.working():
        (row,) = await bench.over(task)
    assert (row["status"], row["attempt"], row["retries"], row["error_code"]) == ("FAILED", 3, 2, "error")
    assert "no luck" in row["error_message"]
    assert await bench.logged(task) == [(1, "RETRIED"), (2, "RETRIED"), (3, "FAILED")]


def test_pauses_grow_up_to_the_cap_and_are_jittered() -> None:  # D-04
    backoff = Backoff(first=timedelta(seconds=1), cap=timedelta(seconds=60), jitter=0.2)
    for retries, expected in [(0, 1), (1, 2), (5, 32), (6, 60), (5000, 60)]:
        delays = [backoff.delay(retries).total_seconds() for _ in range(50)]
        assert expected * 0.79 <= min(delays) <= max(delays) <= expected * 1.21
        assert len(set(delays)) > 10


async def test_fatal_ends_at_once_and_snooze_spends_nothing(bench: Bench) -> None:
    naps: list[int] = []

    @bench.registry.task("fatal")
    async def fatal(context: TaskContext, payload: Any) -> None:
        raise Fatal("the file is gone")

    @bench.registry.task("snooze", max_attempts=1)
    async def snooze(context: TaskContext, payload: Any) -> str:
        naps.append(context.attempt)
        if len(naps) < 3:
            raise Snooze(timedelta(milliseconds=5))
        return "awake"

    one, other = await bench.submit("fatal"), await bench.submit("snooze")
    async with bench.working():
        ended, slept = await bench.over(one, other)
    assert (ended["status"], ended["error_code"], ended["error_message"]) == ("FAILED", "fatal", "the file is gone")
    assert (slept["status"], slept["retries"], naps) == ("SUCCEEDED", 0, [1, 2, 3])


@pytest.mark.parametrize(
    ("result", "said"),
    [(object(), "not JSON"), ("x" * 300_000, "bytes"), ({"a": "\0"}, "NUL")],
    ids=["not JSON", "too large", "NUL"],
)
async def test_a_result_that_cannot_be_stored_fails_the_task_and_the_worker_lives_on(
    bench: Bench, result: Any, said: str
) -> None:
    @bench.registry.task("odd")
    async def odd(context: TaskContext, payload: Any) -> Any:
        return result

    @bench.registry.task("good")
    async def good(context: TaskContext, payload: Any) -> str:
        return "fine"

    bad, fine = await bench.submit("odd"), await bench.submit("good")
    async with bench.working():
        first, second = await bench.over(bad, fine)
    assert (first["status"], first["error_code"]) == ("FAILED", "bad_result")
    assert said in first["error_message"]
    assert second["status"] == "SUCCEEDED"


async def test_a_snooze_for_ages_does_not_keep_workers_from_reading_the_queue(bench: Bench) -> None:
    @bench.registry.task("ages")
    async def ages(context: TaskContext, payload: Any) -> None:
        raise Snooze(timedelta(days=4_000_000))  # beyond the year 9999

    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    sleeper = await bench.submit("ages")
    async with bench.working():
        await bench.until(sleeper, lambda row: bool(row["attempt"] == 1))
        await bench.over(await bench.submit("work"))


async def test_finishing_in_the_handlers_own_transaction_commits_both_or_neither(bench: Bench) -> None:
    @bench.registry.task("pay", backoff=AT_ONCE)
    async def pay(context: TaskContext, payload: Any) -> None:
        async with bench.db.transaction() as tx:
            await tx.execute("INSERT INTO headrace.rate_limits (bucket, tat) VALUES ($1, now())", context.task_id)
            await context.finish_in(tx, {"paid": True})
            if context.attempt == 1:
                raise RuntimeError("the transaction is rolled back, the end with it")

    task = await bench.submit("pay")
    async with bench.working():
        (row,) = await bench.over(task)
    assert (row["status"], row["attempt"], row["result"]) == ("SUCCEEDED", 2, {"paid": True})
    assert await bench.logged(task) == [(1, "RETRIED"), (2, "SUCCEEDED")]


async def test_a_task_that_its_handler_finished_does_not_count_as_lost(bench: Bench) -> None:
    @bench.registry.task("exact")
    async def exact(context: TaskContext, payload: Any) -> None:
        async with bench.db.transaction() as tx:
            await context.finish_in(tx)

    async with bench.working() as worker:
        await bench.over(await bench.submit("exact"))
    assert (worker.figures.finished, worker.figures.lost) == (1, 0)


async def test_a_task_that_snoozed_a_million_times_fails_and_stops_no_worker(bench: Bench) -> None:
    @bench.registry.task("nap")
    async def nap(context: TaskContext, payload: Any) -> None:
        raise Snooze(timedelta(0))

    task = await bench.submit("nap")
    await bench.db.fetch_alone("UPDATE headrace.task_queue SET attempt = 999998 WHERE task_id = $1", task)
    async with bench.working():
        (row,) = await bench.over(task)
    assert (row["status"], row["error_code"], row["attempt"]) == ("FAILED", "fatal", 1_000_000)


FINISH = "SELECT headrace.finish_tasks($1, $2, $3, $4, $5, $6, $7, $8) AS seq"


async def test_each_end_goes_to_its_task_in_whatever_order_it_is_given(bench: Bench) -> None:
    """A program of an earlier release gives its ends in the order in which they came; some are its own no more."""

    @bench.registry.task("numbered")
    async def numbered(context: TaskContext, payload: Any) -> None: ...

    tasks = [await bench.submit("numbered", {"n": n}) for n in range(6)]
    worker = await hire(bench)
    claims = sorted(await take(bench, worker), key=lambda each: each.seq)
    given = [claims[n] for n in (4, 0, 5, 2, 1)]
    rows = await bench.db.fetch_alone(
        FINISH,
        worker.number,
        worker.id,
        [each.seq for each in given],
        [each.attempt + (each is claims[2]) for each in given],  # another attempt than the worker's
        ["SUCCEEDED", "FAILED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED"],
        [{"n": 4}, None, {"n": 5}, {"n": 2}, {"n": 1}],
        [None, "broken", None, None, None],
        [None, "It is broken.", None, None, None],
    )
    assert {row["seq"] for row in rows} == {claims[n].seq for n in (0, 1, 4, 5)}
    found = await bench.db.fetch_alone("SELECT id, status, result, error_code FROM headrace.tasks")
    seen = {row["id"]: (row["status"], row["result"], row["error_code"]) for row in found}
    order = [seen[each.task_id] for each in claims]
    assert len(tasks) == len(order)
    assert order[0] == ("FAILED", None, "broken")
    assert [order[n] for n in (1, 4, 5)] == [("SUCCEEDED", {"n": n}, None) for n in (1, 4, 5)]
    assert {order[n][1] for n in (2, 3)} == {None}


async def test_an_end_that_is_given_twice_moves_no_other_to_the_wrong_task(bench: Bench) -> None:
    """A write whose answer was lost may come together with the end of the next attempt."""

    @bench.registry.task("numbered")
    async def numbered(context: TaskContext, payload: Any) -> None: ...

    for n in range(3):
        await bench.submit("numbered", {"n": n})
    worker = await hire(bench)
    claims = sorted(await take(bench, worker), key=lambda each: each.seq)
    given = [(claims[0], 1), (claims[0], 0), (claims[0], 0), (claims[1], 0), (claims[2], 0)]
    results = [{"n": "of another attempt"}, {"n": 0}, {"n": 0}, {"n": 1}, {"n": 2}]
    await bench.db.fetch_alone(
        FINISH,
        worker.number,
        worker.id,
        [each.seq for each, _ in given],
        [each.attempt + more for each, more in given],
        None,
        results,
        None,
        None,
    )
    found = await bench.db.fetch_alone("SELECT id, status, result FROM headrace.tasks")
    seen = {row["id"]: (row["status"], row["result"]) for row in found}
    assert [seen[each.task_id] for each in claims] == [("SUCCEEDED", {"n": n}) for n in range(3)]
