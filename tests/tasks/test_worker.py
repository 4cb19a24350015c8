"""What a worker does with tasks: each ends once, in the way its handler says."""

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from headrace.ids import SYSTEM_USER
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import Fatal, LeaseLost, PayloadInvalid, Snooze, TaskSpecInvalid
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Backoff
from headrace.tasks.worker import store
from headrace.tasks.worker.sweep import Sweep
from tests.tasks.conftest import Bench

AT_ONCE = Backoff(first=timedelta(milliseconds=1), jitter=0)


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


async def test_a_bad_payload_is_refused_at_submit_with_the_name_of_the_field(bench: Bench) -> None:
    @bench.registry.task("report.build")
    async def build(context: TaskContext, order: Order) -> None: ...

    with pytest.raises(PayloadInvalid, match="pages"):
        await bench.submit("report.build", {"pages": "many"})


@pytest.mark.parametrize("payload", [[], {"pages": "many"}])
async def test_a_payload_that_is_annotated_as_a_dict_is_checked_too(bench: Bench, payload: Any) -> None:
    @bench.registry.task("report.build")
    async def build(context: TaskContext, pages: dict[str, int]) -> None: ...

    with pytest.raises(PayloadInvalid):
        await bench.submit("report.build", payload)


async def test_a_failure_is_retried_with_growing_pauses_until_the_limit(bench: Bench) -> None:  # D-04, D-05
    @bench.registry.task("flaky", max_attempts=3, backoff=AT_ONCE)
    async def flaky(context: TaskContext, payload: Any) -> None:
        raise RuntimeError("no luck")

    task = await bench.submit("flaky")
    async with bench.working():
        (row,) = await bench.over(task)
    assert (row["status"], row["attempt"], row["retries"], row["error_code"]) == ("FAILED", 3, 2, "ERROR")
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
    assert (ended["status"], ended["error_code"], ended["error_message"]) == ("FAILED", "FATAL", "the file is gone")
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
    assert (first["status"], first["error_code"]) == ("FAILED", "BAD_RESULT")
    assert said in first["error_message"]
    assert second["status"] == "SUCCEEDED"


async def test_a_task_past_its_time_is_stopped_and_says_so(bench: Bench) -> None:  # S-05
    @bench.registry.task("slow", timeout=timedelta(seconds=1), max_attempts=1)
    async def slow(context: TaskContext, payload: Any) -> None:
        await asyncio.sleep(60)

    task = await bench.submit("slow")
    async with bench.working():
        (row,) = await bench.over(task)
    assert (row["status"], row["error_code"]) == ("FAILED", "TIMEOUT")


async def test_a_handler_that_will_not_stop_is_given_up_and_its_place_is_filled(bench: Bench) -> None:
    release = asyncio.Event()

    @bench.registry.task("stubborn", timeout=timedelta(seconds=1), grace=timedelta(milliseconds=100), max_attempts=1)
    async def stubborn(context: TaskContext, payload: Any) -> str:
        while not release.is_set():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue
        return "too late"

    @bench.registry.task("next")
    async def following(context: TaskContext, payload: Any) -> None: ...

    stuck = await bench.submit("stubborn")
    async with asyncio.timeout(20), bench.working(concurrency=1) as worker:
        (row,) = await bench.over(stuck)
        assert (row["status"], row["error_code"]) == ("FAILED", "TIMEOUT")
        await bench.over(await bench.submit("next"))
    (left,) = worker.left  # the worker has ended all the same
    release.set()
    left.cancel("let the stubborn one see the event")
    await asyncio.wait([left], timeout=5)
    assert left.done()
    assert not worker.left
    assert (await bench.row(stuck))["status"] == "FAILED"


async def test_a_worker_that_falls_does_not_wait_for_a_handler_that_will_not_stop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, started = asyncio.Event(), asyncio.Event()

    @bench.registry.task("stubborn", grace=timedelta(milliseconds=100))
    async def stubborn(context: TaskContext, payload: Any) -> None:
        started.set()
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def fall(_: object) -> None:
        await started.wait()
        raise RuntimeError("a loop died")

    worker = bench.worker()
    monkeypatch.setattr(worker, "_write_endings", lambda: fall(worker))
    await bench.submit("stubborn")
    async with asyncio.timeout(20):
        with pytest.raises(ExceptionGroup):
            await worker.run(asyncio.Event())
    (left,) = worker.left
    release.set()
    left.cancel()
    await asyncio.wait([left], timeout=5)
    assert left.done()  # and it took nothing more


async def test_a_running_task_that_is_canceled_stops_and_ends_canceled(bench: Bench) -> None:
    started = asyncio.Event()

    @bench.registry.task("long")
    async def long(context: TaskContext, payload: Any) -> None:
        started.set()
        await asyncio.sleep(60)

    task = await bench.submit("long")
    async with bench.working():
        await started.wait()
        await bench.cancel_running(task)
        (row,) = await bench.over(task)
    assert row["status"] == "CANCELED"
    assert await bench.logged(task) == [(1, "CANCELED")]


async def test_cancel_is_found_by_polling_alone(bench: Bench) -> None:
    started = asyncio.Event()

    @bench.registry.task("long")
    async def long(context: TaskContext, payload: Any) -> None:
        started.set()
        await asyncio.sleep(60)

    task = await bench.submit("long")
    async with bench.working(listen=False):
        await started.wait()
        async with bench.db.transaction() as tx:
            await tx.execute("UPDATE headrace.task_queue SET cancel_requested = true")
        (row,) = await bench.over(task)
    assert row["status"] == "CANCELED"


async def test_a_failure_after_a_cancellation_is_not_retried(bench: Bench) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    @bench.registry.task("brave", max_attempts=5, backoff=AT_ONCE)
    async def brave(context: TaskContext, payload: Any) -> None:
        started.set()
        await go_on.wait()
        raise RuntimeError("failed by myself")

    task = await bench.submit("brave")
    async with bench.working(listen=False, poll_every=timedelta(seconds=30)):
        await started.wait()
        async with bench.db.transaction() as tx:
            await tx.execute("UPDATE headrace.task_queue SET cancel_requested = true")
        go_on.set()
        (row,) = await bench.over(task)
    assert (row["status"], row["attempt"]) == ("CANCELED", 1)


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
    async with bench.working(concurrency=1, poll_every=timedelta(minutes=1)) as worker:
        await started.wait()
        async with bench.db.transaction() as tx:
            specs = [TaskSpec("often")] * 5 + [TaskSpec("once")] * 3 + [TaskSpec("often")] * 5
            tasks += await bench.submitter.submit_many(tx, specs, user_id=SYSTEM_USER)
        worker._feeder._sweep.look_again()  # as it does by itself after a while
        go_on.set()
        await bench.over(*tasks, seconds=10)
    assert order[60:63] == ["once"] * 3


async def test_no_users_backlog_starves_another(bench: Bench) -> None:
    order: list[str] = []

    @bench.registry.task("work", max_attempts=1)
    async def work(context: TaskContext, payload: Any) -> None:
        order.append(context.user_id)

    busy, quiet = await bench.user("busy"), await bench.user("quiet")
    tasks = [await bench.submit("work", user_id=busy) for _ in range(60)]
    tasks += [await bench.submit("work", user_id=quiet) for _ in range(3)]
    async with bench.working(concurrency=2):
        await bench.over(*tasks)
    assert max(index for index, user in enumerate(order) if user == quiet) < 20


@pytest.mark.parametrize("max_attempts", [1, 3])
async def test_a_worker_that_takes_one_at_a_time_serves_users_in_turns(bench: Bench, max_attempts: int) -> None:
    order: list[str] = []

    @bench.registry.task("work", max_attempts=max_attempts)
    async def work(context: TaskContext, payload: Any) -> None:
        order.append(context.user_id)

    busy, quiet = await bench.user("busy"), await bench.user("quiet")
    tasks = [await bench.submit("work", user_id=busy) for _ in range(30)]
    tasks += [await bench.submit("work", user_id=quiet) for _ in range(3)]
    async with bench.working(concurrency=1, ahead=timedelta(0)):
        await bench.over(*tasks)
    assert order[:6].count(quiet) == 3


async def test_a_limits_only_slot_goes_to_each_lane_in_turn(bench: Bench) -> None:
    order: list[str] = []

    @bench.registry.task("work", max_running=1)
    async def work(context: TaskContext, payload: Any) -> None:
        order.append(context.user_id)

    busy, quiet = await bench.user("busy"), await bench.user("quiet")
    tasks = [await bench.submit("work", user_id=busy) for _ in range(40)]
    tasks += [await bench.submit("work", user_id=quiet) for _ in range(3)]
    async with bench.working(concurrency=10):
        await bench.over(*tasks)
    assert max(index for index, user in enumerate(order) if user == quiet) < 35


async def test_single_attempts_do_not_wait_for_the_next_look(bench: Bench) -> None:
    @bench.registry.task("once", max_attempts=1)
    async def once(context: TaskContext, payload: Any) -> None: ...

    async with bench.db.transaction() as tx:
        tasks = await bench.submitter.submit_many(tx, [TaskSpec("once")] * 200, user_id=SYSTEM_USER)
    # Short ones are taken ahead, these not: what is left must be taken as soon as there is room.
    async with bench.working(concurrency=2, poll_every=timedelta(minutes=1), ahead=timedelta(seconds=60)):
        await bench.over(*tasks, seconds=10)


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
    async with bench.db.transaction() as tx:
        worker = await store.register(
            tx, "wrk_x", host="here", pid=1, queues=None, types=["once", "work"], labels={}, concurrency=4,
            lease=timedelta(minutes=1),
        )  # fmt: skip
    sweep = Sweep(bench.db, queues=None, types=["once", "work"], labels={})
    if woken:
        sweep.exhausted = True
        sweep.wake()
    rows = await sweep.take(worker, most=40, now_startable=4)
    assert [row["task_type"] for row in rows[:5]] == ["once"] * 4 + ["work"]
    assert {row["task_type"] for row in rows[5:]} == {"work"}


async def test_a_worker_that_lost_its_lease_can_be_woken_again(bench: Bench) -> None:
    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    async def sleeps() -> bool:
        rows = await bench.db.fetch_alone("SELECT asleep FROM headrace.workers ORDER BY number DESC LIMIT 1")
        return bool(rows) and rows[0]["asleep"]

    async with bench.working(poll_every=timedelta(minutes=1)) as worker, asyncio.timeout(10):
        while not await sleeps():
            await asyncio.sleep(0.01)
        first = worker.identity
        await bench.db.fetch_alone("UPDATE headrace.workers SET heartbeat_at = now() - interval '1 hour'")
        while worker.identity is first or not await sleeps():
            await asyncio.sleep(0.01)
        await bench.over(await bench.submit("work"))


@pytest.mark.parametrize("run_at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)], ids=str)
async def test_a_time_that_would_be_an_infinity_is_refused(bench: Bench, run_at: datetime) -> None:
    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    with pytest.raises(TaskSpecInvalid, match="1970"):
        await bench.submit("work", run_at=run_at)


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


async def test_a_delayed_task_waits_for_its_time(bench: Bench) -> None:
    ran: list[float] = []

    @bench.registry.task("later")
    async def later(context: TaskContext, payload: Any) -> None:
        ran.append(time.time())

    due = datetime.now(UTC) + timedelta(seconds=0.7)
    task = await bench.submit("later", run_at=due)
    async with bench.working(poll_every=timedelta(seconds=30)):
        await bench.over(task)
    assert due.timestamp() <= ran[0] < due.timestamp() + 0.5


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


async def test_a_long_task_shows_as_running_with_its_progress_and_steps(bench: Bench) -> None:
    going, go_on = asyncio.Event(), asyncio.Event()

    @bench.registry.task("film", steps=("read", "write"))
    async def film(context: TaskContext, payload: Any) -> None:
        async with context.step("read") as step:
            step.detail = {"frames": 10}
        async with context.step("write"):
            await context.progress(40, eta_seconds=7)
            await context.log("half way")
            going.set()
            await go_on.wait()

    task = await bench.submit("film")
    async with bench.working() as worker:
        await going.wait()
        row = await bench.row(task)
        assert (row["status"], row["current_step"], row["progress"], row["eta_sec"]) == ("RUNNING", "write", 40, 7)
        assert (row["attempt"], row["worker_id"]) == (1, worker.identity.id)
        go_on.set()
        await bench.over(task)
    async with bench.db.transaction() as tx:
        steps = await tx.fetch("SELECT step_name, status, detail_json FROM headrace.task_steps ORDER BY id")
    assert [tuple(row) for row in steps] == [("read", "SUCCESS", {"frames": 10}), ("write", "SUCCESS", None)]
    assert await bench.logged(task) == [(1, "LOG"), (1, "SUCCEEDED")]


async def test_a_retry_skips_the_steps_that_are_done(bench: Bench) -> None:
    did: list[str] = []

    @bench.registry.task("two", steps=("first", "second"), backoff=AT_ONCE)
    async def two(context: TaskContext, payload: Any) -> Any:
        async with context.step("first") as first:
            if not first.done:
                did.append("first")
                first.detail = {"kept": 1}
        async with context.step("second"):
            did.append("second")
            if context.attempt == 1:
                raise RuntimeError("trip")
        return first.detail

    task = await bench.submit("two")
    async with bench.working():
        (row,) = await bench.over(task)
    assert did == ["first", "second", "second"]
    assert row["result"] == {"kept": 1}


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
    assert (row["status"], row["error_code"], row["attempt"]) == ("FAILED", "FATAL", 1_000_000)


async def test_a_stopped_worker_gives_back_what_it_has_not_started_and_spends_no_attempt(bench: Bench) -> None:
    started = asyncio.Event()

    @bench.registry.task("long", max_attempts=2, grace=timedelta(milliseconds=100))
    async def long(context: TaskContext, payload: Any) -> None:
        started.set()
        await asyncio.sleep(60)

    tasks = [await bench.submit("long") for _ in range(5)]
    async with bench.working(concurrency=2, shutdown_timeout=timedelta(milliseconds=100)):
        await started.wait()
    rows = [await bench.row(task) for task in tasks]
    assert {row["status"] for row in rows} == {"QUEUED"}
    assert {row["retries"] for row in rows} == {0}
    async with bench.db.transaction() as tx:
        assert await tx.fetchval("SELECT count(*) FROM headrace.task_queue WHERE worker IS NULL") == 5
        assert await tx.fetchval("SELECT ending FROM headrace.workers") == "STOPPED"


async def test_a_late_worker_cannot_finish_a_reclaimed_task(bench: Bench) -> None:  # D-08, S-11
    """Its heart is stopped by hand; another worker gives it up and runs the task; then it wakes and finishes."""
    begun, wake = asyncio.Event(), asyncio.Event()
    refused: list[type[BaseException]] = []

    @bench.registry.task("contested", max_attempts=5, events=False)
    async def contested(context: TaskContext, payload: Any) -> Any:
        if context.attempt > 1:
            return "the second"
        begun.set()
        await asyncio.shield(wake.wait())
        try:
            await context.progress(99)
        except LeaseLost as exc:
            refused.append(type(exc))
            raise
        return "the first"

    task = await bench.submit("contested")
    lease = timedelta(milliseconds=600)
    async with bench.working(
        lease=lease, concurrency=1
    ) as late:  # its hand is full: it asks for nothing, learns nothing
        await begun.wait()
        await late._heart.stop()
        late._heart.alive_until = time.monotonic() + 3600  # a paused process does not notice that time goes by
        async with bench.working(lease=lease):
            (row,) = await bench.over(task)
            wake.set()
            await asyncio.sleep(0.3)
            row = await bench.row(task)
    assert (row["result"], row["attempt"], row["retries"]) == ("the second", 2, 1)
    assert refused == [LeaseLost]
    assert await bench.logged(task) == [(1, "INTERRUPTED"), (2, "SUCCEEDED")]


async def test_a_handler_that_hogs_the_loop_does_not_lose_its_lease(bench: Bench) -> None:
    @bench.registry.task("hog", max_attempts=1)
    async def hog(context: TaskContext, payload: Any) -> str:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            pass
        return "done"

    task = await bench.submit("hog")
    async with bench.working(lease=timedelta(milliseconds=600)):
        (row,) = await bench.over(task)
    assert (row["status"], row["attempt"]) == ("SUCCEEDED", 1)


async def test_one_key_gives_one_task_under_load(bench: Bench) -> None:  # D-06
    @bench.registry.task("once")
    async def once(context: TaskContext, payload: Any) -> None: ...

    ids = await asyncio.gather(*(bench.submit("once", {"a": 1}, idempotency_key="k1") for _ in range(20)))
    assert len(set(ids)) == 1
    async with bench.db.transaction() as tx:
        assert await tx.fetchval("SELECT count(*) FROM headrace.tasks") == 1
        assert await tx.fetchval("SELECT count(*) FROM headrace.task_queue") == 1


async def test_scratch_files_stay_from_attempt_to_attempt_and_go_with_the_task(bench: Bench) -> None:
    seen: list[list[str]] = []

    @bench.registry.task("files", backoff=AT_ONCE)
    async def files(context: TaskContext, payload: Any) -> None:
        seen.append(sorted(each.name for each in context.scratch.iterdir()))
        (context.scratch / f"part-{context.attempt}").write_text("…")
        if context.attempt < 3:
            raise RuntimeError("again")

    task = await bench.submit("files")
    async with bench.working():
        await bench.over(task)
    assert seen == [[], ["part-1"], ["part-1", "part-2"]]
    assert not (bench.scratch / task).exists()


async def test_a_worker_whose_loop_dies_stops_its_heart(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    @bench.registry.task("any")
    async def any_(context: TaskContext, payload: Any) -> None: ...

    worker = bench.worker()

    async def die() -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(worker._feeder, "run", die)
    with pytest.raises(ExceptionGroup):
        await worker.run(asyncio.Event())
    assert not worker._heart._thread.is_alive()


async def test_a_lane_of_a_rolled_back_transaction_is_not_remembered(bench: Bench) -> None:
    @bench.registry.task("lost")
    async def lost(context: TaskContext, payload: Any) -> None: ...

    with pytest.raises(KeyError):
        async with bench.db.transaction() as tx:
            for _ in range(2):
                await bench.submitter.submit(tx, TaskSpec("lost"), user_id=SYSTEM_USER)
            raise KeyError
    task = await bench.submit("lost")
    async with bench.working():
        await bench.over(task)
