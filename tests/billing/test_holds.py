"""Holding with the creation, settling with the end: whoever creates, whoever ends."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from headrace.errors import QuotaExhausted
from headrace.tasks import settling
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import BlockingTaskContext, TaskContext
from headrace.tasks.errors import Fatal, FollowerMissing
from headrace.tasks.execution import BadTaskType
from headrace.tasks.followers import Followers
from headrace.tasks.model import Ending, Outcome, TaskSpec
from headrace.tasks.reaping import Reaper
from headrace.tasks.registry import Registry
from headrace.tasks.worker.endings import Writer
from tests.billing import stand
from tests.tasks import sql
from tests.tasks.conftest import AT_ONCE, Bench
from tests.tasks.people import hire, take

FULL = ("HELD", 3, "TASK_CREATE")


async def render(context: TaskContext, payload: dict[str, Any]) -> None:
    match payload.get("do"):
        case "fail":
            raise Fatal("half of the video is done, and the rest cannot be read")
        case "use":
            await context.used(payload["used"])
        case "wait":
            await asyncio.Event().wait()


def render_blocking(context: BlockingTaskContext, payload: dict[str, Any]) -> None:
    context.used(payload["used"])


@pytest.fixture
async def ada(bench: Bench) -> str:
    bench.registry.task("render", units="payload.units", max_attempts=1)(render)
    bench.registry.task("render.thread", units=3, max_attempts=1)(render_blocking)
    bench.registry.task("render.child", units=3, max_attempts=1, isolation="process")(render_blocking)
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    return await bench.user("ada")


async def run(bench: Bench, task_id: str) -> str:
    async with bench.working():
        [row] = await bench.over(task_id)
    status: str = row["status"]
    return status


async def test_creation_holds_and_success_charges_in_the_tasks_own_transactions(bench: Bench, ada: str) -> None:
    # W-06, W-07
    quota = await stand.grant_alone(bench.db, ada, 10)
    task_id = await bench.submit("render", {"units": 3}, user_id=ada)
    assert await stand.left(bench.db, quota) == 7
    assert await stand.entries(bench.db, task_id) == [FULL]
    assert await run(bench, task_id) == "SUCCEEDED"
    assert await stand.left(bench.db, quota) == 7
    assert await stand.entries(bench.db, task_id) == [FULL, ("COMMITTED", 3, "TASK_COMPLETE")]


async def test_a_failure_is_charged_nothing_also_when_half_is_done(bench: Bench, ada: str) -> None:  # W-08
    quota = await stand.grant_alone(bench.db, ada, 10)
    task_id = await bench.submit("render", {"units": 3, "do": "fail"}, user_id=ada)
    assert await run(bench, task_id) == "FAILED"
    assert await stand.left(bench.db, quota) == 10
    assert await stand.entries(bench.db, task_id) == [FULL, ("RELEASED", 3, "TASK_FAIL")]


@pytest.mark.parametrize("name", ["render", "render.thread", "render.child"])
async def test_a_handler_says_how_much_it_has_used(bench: Bench, ada: str, name: str) -> None:  # W-07
    quota = await stand.grant_alone(bench.db, ada, 10)
    task_id = await bench.submit(name, {"units": 3, "do": "use", "used": 1}, user_id=ada)
    assert await run(bench, task_id) == "SUCCEEDED"
    assert await stand.left(bench.db, quota) == 9
    assert await stand.entries(bench.db, task_id) == [
        FULL, ("COMMITTED", 1, "TASK_COMPLETE"), ("RELEASED", 2, "TASK_COMPLETE"),
    ]  # fmt: skip


async def test_who_has_used_nothing_is_charged_nothing(bench: Bench, ada: str) -> None:
    quota = await stand.grant_alone(bench.db, ada, 10)
    task_id = await bench.submit("render", {"units": 3, "do": "use", "used": 0}, user_id=ada)
    assert await run(bench, task_id) == "SUCCEEDED"
    assert await stand.left(bench.db, quota) == 10
    assert await stand.entries(bench.db, task_id) == [FULL, ("RELEASED", 3, "TASK_COMPLETE")]


@pytest.mark.parametrize("used", [4, 2**40, -1, True, 1.5])
async def test_more_than_is_held_cannot_have_been_used(bench: Bench, ada: str, used: object) -> None:
    quota = await stand.grant_alone(bench.db, ada, 10)
    task_id = await bench.submit("render", {"units": 3, "do": "use", "used": used}, user_id=ada)
    assert await run(bench, task_id) == "FAILED"
    assert "UnitsRefused" in (await bench.row(task_id))["error_message"]
    assert await stand.left(bench.db, quota) == 10


async def test_a_cancellation_gives_back_whether_it_waits_or_runs(bench: Bench, ada: str) -> None:  # W-08
    quota = await stand.grant_alone(bench.db, ada, 10)
    task_id = await bench.submit("render", {"units": 3, "do": "wait"}, user_id=ada)
    async with bench.working():
        await bench.until(task_id, lambda row: row["status"] == "RUNNING")
        await bench.cancel_running(task_id)
        await bench.over(task_id)
    assert await stand.left(bench.db, quota) == 10
    assert await stand.entries(bench.db, task_id) == [FULL, ("RELEASED", 3, "TASK_CANCEL")]


async def test_what_ends_first_is_spent_first_and_one_hold_may_span_several(bench: Bench, ada: str) -> None:  # W-10
    later = await stand.grant_alone(bench.db, ada, 5, ends_in=timedelta(days=9))
    sooner = await stand.grant_alone(bench.db, ada, 2, ends_in=timedelta(days=2))
    await stand.grant_alone(bench.db, ada, 50, starts_in=timedelta(days=3))
    await stand.grant_alone(bench.db, ada, 50, starts_in=timedelta(days=-9), ends_in=timedelta(days=-1))
    first, second = await submit_both(bench, ada, {"units": 1}, {"units": 3, "do": "use", "used": 2})
    assert (await stand.left(bench.db, sooner), await stand.left(bench.db, later)) == (0, 3)
    async with bench.working():
        await bench.over(first, second)
    # Of the one that ends last as much as possible is given back.
    assert (await stand.left(bench.db, sooner), await stand.left(bench.db, later)) == (0, 4)


async def submit_both(bench: Bench, user_id: str, *payloads: dict[str, Any]) -> list[str]:
    async with bench.db.transaction() as tx:
        specs = [TaskSpec("render", payload) for payload in payloads]
        return await bench.submitter.submit_many(tx, specs, user_id=user_id)


async def test_an_entitlement_that_ends_while_its_task_runs_is_the_one_that_is_charged(bench: Bench, ada: str) -> None:
    # W-11
    old = await stand.grant_alone(bench.db, ada, 10)
    kept, failed = await submit_both(bench, ada, {"units": 3}, {"units": 3, "do": "fail"})
    await bench.db.fetch_alone(
        "UPDATE headrace.entitlements SET status = 'EXPIRED', period_end = now() - interval '1 second' WHERE id = $1",
        old,
    )
    new = await stand.grant_alone(bench.db, ada, 10)
    async with bench.working():
        await bench.over(kept, failed)
    assert (await stand.left(bench.db, old), await stand.left(bench.db, new)) == (7, 10)


async def test_without_enough_nothing_is_written_and_the_refusal_says_what_is_missing(bench: Bench, ada: str) -> None:
    # W-10
    await stand.grant_alone(bench.db, ada, 4)
    with pytest.raises(QuotaExhausted, match=r"costs 6 units and 4 are left") as refused:
        await submit_both(bench, ada, {"units": 3}, {"units": 3})
    assert refused.value.details["needed"] == 6
    assert refused.value.details["left"] == 4
    assert refused.value.details["renews_at"] is not None
    assert await sql.count(bench.db, "tasks") == 0
    assert await sql.count(bench.db, "usage_ledger") == 1  # the grant


async def test_who_was_never_granted_anything_is_told_to_subscribe(bench: Bench, ada: str) -> None:
    with pytest.raises(QuotaExhausted, match=r"0 are left. Subscribe") as refused:
        await bench.submit("render", {"units": 1}, user_id=ada)
    assert refused.value.details["renews_at"] is None


async def test_a_process_that_cannot_hold_refuses(bench: Bench, ada: str) -> None:
    await stand.grant_alone(bench.db, ada, 4)
    bench.followers = Followers()
    with pytest.raises(FollowerMissing):
        await bench.submit("render", {"units": 1}, user_id=ada)
    assert await sql.count(bench.db, "tasks") == 0


async def test_a_worker_whose_program_is_older_than_the_price_settles_all_the_same(bench: Bench, ada: str) -> None:
    quota = await stand.grant_alone(bench.db, ada, 10)
    kept, failed = await submit_both(bench, ada, {"units": 3}, {"units": 3, "do": "fail"})
    old = Registry()
    old.task("render", max_attempts=1, events=False)(render)
    bench.registry, bench.followers = old, Followers()
    async with bench.working():
        await bench.over(kept, failed)
    assert await stand.left(bench.db, quota) == 7
    assert await stand.entries(bench.db, kept) == [FULL, ("COMMITTED", 3, "TASK_COMPLETE")]


async def test_sql_holds_too_and_refuses_with_a_code_of_its_own(bench: Bench, ada: str) -> None:  # W-06
    quota = await stand.grant_alone(bench.db, ada, 5)
    task_id = await sql.submit(bench.db, "render", {"units": 3}, user_id=ada)
    assert await stand.left(bench.db, quota) == 2
    with pytest.raises(Exception, match="3 needed, 2 left") as refused:
        await sql.submit(bench.db, "render", {"units": 3}, user_id=ada)
    assert refused.value.sqlstate == "HR006"  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="units is what the task costs"):
        await sql.submit(bench.db, "render", {"units": 0}, user_id=ada)
    assert await run(bench, task_id) == "SUCCEEDED"
    assert await stand.entries(bench.db, task_id) == [FULL, ("COMMITTED", 3, "TASK_COMPLETE")]


async def test_a_type_that_gets_its_price_after_the_tasks_came_holds_or_fails_them(bench: Bench) -> None:
    ada = await bench.user("ada")
    quota = await stand.grant_alone(bench.db, ada, 4)
    tasks = [await sql.submit(bench.db, "render", {"units": 3}, user_id=ada) for _ in range(2)]
    wrong = await sql.submit(bench.db, "render", {"units": "many"}, user_id=ada)
    bench.registry.task("render", units="payload.units")(render)
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    assert await settling.run_once(bench.db, ["render"]) == 3
    assert await stand.left(bench.db, quota) == 1
    assert "3 needed, 1 left" in (await bench.row(tasks[1]))["error_message"]
    assert "is what the task costs" in (await bench.row(wrong))["error_message"]
    assert await run(bench, tasks[0]) == "SUCCEEDED"
    assert await stand.entries(bench.db, tasks[0]) == [FULL, ("COMMITTED", 3, "TASK_COMPLETE")]


async def test_an_automatic_retry_keeps_its_hold_and_forgets_what_was_used(bench: Bench, ada: str) -> None:
    @bench.registry.task("flaky", units=3, backoff=AT_ONCE)
    async def flaky(context: TaskContext, _payload: object) -> None:
        if context.attempt == 1:
            await context.used(1)
            raise RuntimeError("not yet")

    quota = await stand.grant_alone(bench.db, ada, 3)
    task_id = await bench.submit("flaky", user_id=ada)
    assert await run(bench, task_id) == "SUCCEEDED"
    assert await stand.left(bench.db, quota) == 0
    assert await stand.entries(bench.db, task_id) == [FULL, ("COMMITTED", 3, "TASK_COMPLETE")]


async def test_a_metered_task_of_nobody_asks_who_pays(bench: Bench, ada: str) -> None:
    """It said "Subscribe to a plan" to an operator who had left out --user."""
    with pytest.raises(QuotaExhausted, match=r"name the user who pays for it \(--user"):
        await bench.submit("render", {"units": 6})


async def test_a_type_without_units_costs_nothing_and_cannot_say_what_it_used(bench: Bench) -> None:
    @bench.registry.task("free", max_attempts=1)
    async def free(context: TaskContext, _payload: object) -> None:
        await context.used(1)

    task_id = await bench.submit("free")
    assert await run(bench, task_id) == "FAILED"
    assert "free costs nothing" in (await bench.row(task_id))["error_message"]
    assert await sql.count(bench.db, "usage_ledger") == 0


@pytest.mark.parametrize("units", [0, -1, "user", "payload", "payload.", "1.5", "01", 10**9, "payload.a b", True])
def test_what_is_no_price_is_refused_when_the_type_is_declared(units: Any) -> None:
    with pytest.raises(BadTaskType, match="is no units for render"):
        Registry().task("render", units=units)(render)


async def test_a_worker_that_dies_in_the_last_attempt_costs_nothing(bench: Bench, ada: str) -> None:  # W-08
    quota = await stand.grant_alone(bench.db, ada, 3)
    task_id = await bench.submit("render", {"units": 3}, user_id=ada)
    worker = await hire(bench)
    [claimed] = await take(bench, worker)
    await bench.db.fetch_alone("UPDATE headrace.workers SET heartbeat_at = now() - interval '1 day'")
    await Reaper(bench.db, bench.registry, bench.followers).run_once()
    assert (await bench.row(task_id))["status"] == "FAILED"
    assert await stand.left(bench.db, quota) == 3
    # It comes back after all: nothing that it says counts.
    late = Ending(claimed, Outcome.SUCCEEDED)
    assert await Writer(bench.db, bench.registry, bench.followers).write(worker, [late]) == 0
    assert await stand.entries(bench.db, task_id) == [FULL, ("RELEASED", 3, "TASK_FAIL")]


async def test_a_handler_that_finishes_in_its_own_transaction_is_charged_in_it(bench: Bench, ada: str) -> None:  # W-07
    undone: list[str] = []

    @bench.registry.task("own", units=3, max_attempts=1)
    async def own(context: TaskContext, payload: dict[str, Any]) -> None:
        await context.used(2)
        try:
            async with bench.db.transaction() as tx:
                await context.finish_in(tx)
                if payload.get("undo"):
                    raise LookupError
        except LookupError:
            undone.append(context.task_id)
            raise Fatal("taken back") from None

    quota = await stand.grant_alone(bench.db, ada, 10)
    kept, taken_back = [await bench.submit("own", {"undo": undo}, user_id=ada) for undo in (False, True)]
    async with bench.working():
        await bench.over(kept, taken_back)
    assert undone == [taken_back]
    assert await stand.left(bench.db, quota) == 8
    assert await stand.entries(bench.db, kept) == [
        FULL, ("COMMITTED", 2, "TASK_COMPLETE"), ("RELEASED", 1, "TASK_COMPLETE"),
    ]  # fmt: skip
    assert await stand.entries(bench.db, taken_back) == [FULL, ("RELEASED", 3, "TASK_FAIL")]


async def test_a_batch_of_a_thousand_is_held_at_once(bench: Bench, ada: str) -> None:
    await stand.grant_alone(bench.db, ada, 2000)
    async with bench.db.transaction() as tx:
        task_ids = await bench.submitter.submit_many(tx, [TaskSpec("render", {"units": 2})] * 1000, user_id=ada)
    rows = await bench.db.fetch_alone("SELECT task_id FROM headrace.usage_ledger WHERE status = 'HELD'")
    assert {row["task_id"] for row in rows} == set(task_ids)
    with pytest.raises(QuotaExhausted):
        await bench.submit("render", {"units": 1}, user_id=ada)
