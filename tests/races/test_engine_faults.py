"""The worst moments, one by one: an answer that is lost, a stop in the middle of a claim, an end that nobody wants."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace.database import Database, DatabaseConfig, Row, Tx
from headrace.database_errors import DatabaseUnavailable
from headrace.tasks.context import TaskContext
from headrace.tasks.execution import Backoff
from headrace.tasks.followers import Followers
from headrace.tasks.model import Change, Transition
from headrace.tasks.reaping import Reaper
from headrace.tasks.worker import store, writing
from headrace.tasks.worker.endings import Writer
from tests.races.engine_stand import line_to
from tests.tasks.conftest import Bench
from tests.tasks.people import hire, take

AT_ONCE = Backoff(first=timedelta(milliseconds=1), jitter=0)
# Longer than any of these tests: whatever is mended in time is not mended by the reaper.
LONG = timedelta(seconds=60)


class Shaky(Database):
    """A database to which the line can break, before a statement arrives or after it was done."""

    lose_answer: str | None = None  # the next non-empty answer to this statement is lost
    delay_answer: tuple[str, float] | None = None
    refuse: str | None = None  # this statement does not arrive, as long as it stands here

    async def fetch_alone(self, sql: str, *args: object) -> list[Row]:
        if sql == self.refuse:
            raise DatabaseUnavailable
        rows = await super().fetch_alone(sql, *args)
        if self.delay_answer is not None and sql == self.delay_answer[0] and rows:
            await asyncio.sleep(self.delay_answer[1])
        if sql == self.lose_answer and rows:
            self.lose_answer = None
            raise DatabaseUnavailable
        return rows

    @asynccontextmanager
    async def transaction(self, **options: Any) -> AsyncIterator[Tx]:
        if self.refuse == "BEGIN":
            raise DatabaseUnavailable
        async with super().transaction(**options) as tx:
            yield tx


@pytest.fixture
async def shaky(database_url: str) -> AsyncIterator[Shaky]:
    async with await Shaky.connect(DatabaseConfig(database_url, role="test", pool_max=20)) as database:
        yield database


@pytest.fixture
def bench(shaky: Shaky, tmp_path: Path) -> Bench:
    return Bench(shaky, tmp_path)


async def held(db: Database) -> int:
    return int((await db.fetch_alone("SELECT count(*) FROM headrace.task_queue WHERE worker IS NOT NULL"))[0][0])


async def test_a_claim_whose_answer_is_lost_runs_all_the_same(bench: Bench, shaky: Shaky) -> None:
    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    tasks = [await bench.submit("work") for _ in range(3)]
    shaky.lose_answer = store.CLAIM
    async with bench.working(lease=LONG):
        rows = await bench.over(*tasks)
    assert {(row["status"], row["attempt"], row["retries"]) for row in rows} == {("SUCCEEDED", 1, 0)}


async def test_a_claim_of_two_priorities_that_breaks_in_the_middle_loses_nothing(bench: Bench, shaky: Shaky) -> None:
    @bench.registry.task("work", max_attempts=1)
    async def work(context: TaskContext, payload: Any) -> None: ...

    tasks = [await bench.submit("work", priority=priority) for priority in (1, 2)]
    calls = 0
    original = shaky.fetch_alone

    async def break_at_the_second(sql: str, *args: object) -> list[Row]:
        nonlocal calls
        calls += sql == store.CLAIM
        if sql == store.CLAIM and calls == 2:
            raise DatabaseUnavailable
        return await original(sql, *args)

    shaky.fetch_alone = break_at_the_second  # type: ignore[method-assign]
    async with bench.working(lease=LONG):
        rows = await bench.over(*tasks)
    assert {(row["status"], row["attempt"]) for row in rows} == {("SUCCEEDED", 1)}


@asynccontextmanager
async def claim_in_flight(bench: Bench, shaky: Shaky) -> AsyncIterator[None]:
    """A worker that has claimed something and does not know it yet; it is stopped at the block's end."""
    shaky.delay_answer = (store.CLAIM, 0.5)
    async with bench.working(lease=LONG):
        async with asyncio.timeout(60):
            while not await held(shaky):
                await asyncio.sleep(0.01)
        yield


async def test_a_claim_in_flight_when_the_worker_is_stopped_is_given_back(bench: Bench, shaky: Shaky) -> None:
    @bench.registry.task("work", max_attempts=1)
    async def work(context: TaskContext, payload: Any) -> None: ...

    task = await bench.submit("work")
    async with claim_in_flight(bench, shaky):
        pass
    assert await held(shaky) == 0
    async with bench.working(lease=LONG):
        (row,) = await bench.over(task)
    assert (row["status"], row["attempt"]) == ("SUCCEEDED", 1)


async def test_a_task_canceled_in_a_claim_in_flight_when_the_worker_is_stopped(bench: Bench, shaky: Shaky) -> None:
    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    task = await bench.submit("work")
    async with claim_in_flight(bench, shaky):
        await bench.cancel_running(task)
    assert (await bench.row(task))["status"] == "CANCELED"
    assert await bench.logged(task) == [(1, "CANCELED")]


async def test_what_a_stop_cannot_give_back_is_left_to_the_reaper(bench: Bench, shaky: Shaky) -> None:
    release = asyncio.Event()

    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None:
        await release.wait()

    tasks = [await bench.submit("work") for _ in range(4)]
    lease = timedelta(seconds=2)
    worker, stop = bench.worker(concurrency=1, ahead=timedelta(seconds=10), lease=lease), asyncio.Event()
    running = asyncio.create_task(worker.run(stop))
    async with asyncio.timeout(60):
        while await held(shaky) < 4 or worker.running < 1:
            await asyncio.sleep(0.01)
        shaky.refuse = store.UNCLAIM
        stop.set()
        while worker._load.prefetched:
            await asyncio.sleep(0.001)
        release.set()
        await running
    shaky.refuse = None
    assert await held(shaky) == 3
    async with bench.working(lease=lease):
        rows = await bench.over(*tasks)
    assert {row["status"] for row in rows} == {"SUCCEEDED"}
    assert sorted(row["retries"] for row in rows) == [0, 1, 1, 1]


async def test_a_stop_that_comes_together_with_a_call_is_heard(bench: Bench) -> None:
    """Both wake the same loop in the same turn; the call must not make it forget that it is to end."""

    @bench.registry.task("never")
    async def never(context: TaskContext, payload: Any) -> None: ...

    async with bench.working(listen=False, poll_every=timedelta(minutes=10)) as worker:
        loops: set[asyncio.Task[Any]] = set()
        while len(loops) < 2:
            await asyncio.sleep(0.05)
            loops = {task for task in asyncio.all_tasks() if task.get_name() in ("feed", "poll cancels")}
        await asyncio.sleep(0.5)  # both have gone to sleep
        worker._feeder._woken.set()
        worker._feeder.cancels.set()
        for task in loops:
            task.cancel()
        ended, _ = await asyncio.wait(loops, timeout=60)
        assert len(ended) == 2


async def test_a_worker_outlives_a_line_that_breaks_while_it_says_that_it_is_awake(bench: Bench, shaky: Shaky) -> None:
    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None:
        await asyncio.sleep(0.02)

    async with bench.working(lease=LONG, concurrency=1):
        await bench.over(await bench.submit("work"))
        await asyncio.sleep(0.3)  # it has gone to sleep, and said so
        shaky.refuse = store.SET_ASLEEP
        await bench.over(*[await bench.submit("work") for _ in range(60)])
        shaky.refuse = None
        await bench.over(await bench.submit("work"))


async def test_a_worker_that_was_not_answered_when_it_awoke_says_again_that_it_sleeps(
    bench: Bench, shaky: Shaky
) -> None:
    """Else nobody would call it, and it would find each task only when it looks by itself."""

    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None:
        await asyncio.sleep(0.02)

    unanswered = asyncio.Event()
    original = shaky.fetch_alone

    async def lose_the_awakening(sql: str, *args: object) -> list[Row]:
        rows = await original(sql, *args)
        if sql == store.SET_ASLEEP and args[1] is False:
            unanswered.set()
            raise DatabaseUnavailable
        return rows

    async def until_asleep() -> None:
        async with asyncio.timeout(20):
            while not (await original("SELECT bool_or(asleep) FROM headrace.workers"))[0][0]:
                await asyncio.sleep(0.02)

    async with bench.working(lease=LONG, concurrency=1):
        await until_asleep()
        shaky.fetch_alone = lose_the_awakening  # type: ignore[method-assign]
        while not unanswered.is_set():
            await bench.over(*[await bench.submit("work") for _ in range(40)])
        await until_asleep()


class Refuses:
    """A follower that wants nothing to do with some ends, and may break the line while it says so."""

    def __init__(
        self,
        *,
        breaks: Shaky | None = None,
        of: Sequence[Change] = (Change.SUCCEEDED, Change.FAILED, Change.CANCELED, Change.RETRIED),
    ) -> None:
        self.task_ids: set[str] = set()
        self.asked = asyncio.Event()
        self._breaks = breaks
        self._of = of

    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:  # noqa: ARG002
        for each in transitions:
            if each.task_id in self.task_ids and each.change in self._of:
                self.asked.set()
                if self._breaks is not None:
                    self._breaks.refuse = "BEGIN"
                raise RuntimeError(f"I will not follow {each.task_id}")


async def test_an_end_that_can_neither_be_written_nor_put_aside_is_not_forgotten(
    bench: Bench, shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_WRITE_AGAIN_S", 0.2)
    refuses = Refuses(breaks=shaky)
    bench.followers = Followers({"refuses": refuses})

    @bench.registry.task("work", followers=("refuses",))
    async def work(context: TaskContext, payload: Any) -> None: ...

    task = await bench.submit("work")
    refuses.task_ids.add(task)
    async with bench.working(lease=LONG):
        await asyncio.wait_for(refuses.asked.wait(), 60)
        refuses.task_ids.clear()
        await asyncio.sleep(0.1)
        shaky.refuse = None
        (row,) = await bench.over(task)
    assert (row["status"], row["attempt"]) == ("SUCCEEDED", 1)


async def test_a_worker_outlives_a_database_that_refuses_to_put_an_end_aside(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_WRITE_AGAIN_S", 0.2)
    refuses = Refuses()
    bench.followers = Followers({"refuses": refuses})

    @bench.registry.task("work", followers=("refuses",))
    async def work(context: TaskContext, payload: Any) -> None: ...

    async def refuse(*_: object) -> bool:
        refuses.task_ids.clear()
        raise asyncpg.CheckViolationError("not this row")

    task = await bench.submit("work")
    refuses.task_ids.add(task)
    monkeypatch.setattr(Writer, "put_aside", refuse)
    async with bench.working(lease=LONG):
        (row,) = await bench.over(task)
    assert (row["status"], row["attempt"]) == ("SUCCEEDED", 1)


class Notes:
    """A follower that writes down what it hears, and refuses the first end."""

    def __init__(self) -> None:
        self.heard: list[tuple[Change, int]] = []
        self.refused = False

    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:  # noqa: ARG002
        if not self.refused and any(each.change is Change.SUCCEEDED for each in transitions):
            self.refused = True
            raise RuntimeError("not now")
        self.heard += [(each.change, each.attempt) for each in transitions]


async def test_the_next_start_of_a_task_that_was_put_aside_is_told(bench: Bench, shaky: Shaky) -> None:
    notes = Notes()
    bench.followers = Followers({"notes": notes})
    release = asyncio.Event()

    @bench.registry.task("work", followers=("notes",))
    async def work(context: TaskContext, payload: Any) -> None:
        await context.progress(50)
        if context.attempt > 1:
            await release.wait()

    task = await bench.submit("work")
    async with bench.working(lease=LONG):
        await bench.until(task, lambda row: bool(row["status"] == "QUEUED" and row["attempt"] == 1))
        async with shaky.transaction() as tx:
            await tx.execute("UPDATE headrace.task_queue SET run_at = now()")
        await bench.until(task, lambda row: bool(row["progress"] == 50 and row["attempt"] == 2))
        assert notes.heard[-1] == (Change.STARTED, 2)
        release.set()
        await bench.over(task)


async def test_a_cancellation_that_a_follower_refuses_is_not_forgotten(
    bench: Bench, shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_WRITE_AGAIN_S", 0.2)
    started = asyncio.Event()
    refuses = Refuses()
    bench.followers = Followers({"refuses": refuses})

    @bench.registry.task("long", followers=("refuses",))
    async def long(context: TaskContext, payload: Any) -> None:
        started.set()
        await asyncio.sleep(60)

    task = await bench.submit("long")
    refuses.task_ids.add(task)
    async with bench.working(lease=LONG):
        await started.wait()
        await bench.cancel_running(task)
        await asyncio.wait_for(refuses.asked.wait(), 60)
        refuses.task_ids.clear()
        (row,) = await bench.over(task)
    assert row["status"] == "CANCELED"
    assert await bench.logged(task) == [(1, "CANCELED")]


async def test_a_start_that_a_follower_refuses_does_not_take_the_worker_down(bench: Bench) -> None:
    refuses = Refuses(of=(Change.STARTED,))
    bench.followers = Followers({"refuses": refuses})

    @bench.registry.task("long", followers=("refuses",))
    async def long(context: TaskContext, payload: Any) -> None:
        await asyncio.sleep(0.5)

    tasks = [await bench.submit("long") for _ in range(3)]
    refuses.task_ids.add(tasks[1])
    async with bench.working(lease=LONG):
        await asyncio.wait_for(refuses.asked.wait(), 60)
        for task in (tasks[0], tasks[2]):
            await bench.until(task, lambda row: bool(row["status"] == "RUNNING"))
        refuses.task_ids.clear()
        rows = await bench.over(*tasks)
    assert {(row["status"], row["attempt"]) for row in rows} == {("SUCCEEDED", 1)}


async def test_the_heart_of_a_worker_that_fell_stops(bench: Bench, shaky: Shaky) -> None:
    started = asyncio.Event()

    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None:
        started.set()
        await asyncio.sleep(60)

    await bench.submit("work")
    stop = asyncio.Event()
    worker = bench.worker(lease=timedelta(milliseconds=600))
    running = asyncio.create_task(worker.run(stop))
    await started.wait()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    async with asyncio.timeout(60):
        while not (await Reaper(shaky, bench.registry, bench.followers).run_once()).workers:
            await asyncio.sleep(0.1)
    assert await held(shaky) == 0


async def test_a_worker_that_lost_its_lease_may_run_the_same_task_beside_its_old_attempt(
    bench: Bench, shaky: Shaky
) -> None:
    begun: asyncio.Queue[int] = asyncio.Queue()
    second, ended = asyncio.Event(), asyncio.Event()

    @bench.registry.task("stubborn", max_attempts=5)
    async def stubborn(context: TaskContext, payload: Any) -> str:
        begun.put_nowait(context.attempt)
        if context.attempt == 1:
            while True:  # deaf: the second attempt begins before the first has noticed
                with suppress(asyncio.CancelledError):
                    await second.wait()
                    ended.set()
                    return "the first"
        second.set()
        await ended.wait()
        await asyncio.sleep(0.5)  # what the first says comes before
        return "the second"

    task = await bench.submit("stubborn")
    async with bench.working(lease=timedelta(seconds=2)) as worker:
        assert await begun.get() == 1
        async with shaky.transaction() as tx:
            await tx.execute("UPDATE headrace.workers SET heartbeat_at = now() - interval '1 hour'")
        await Reaper(shaky, bench.registry, bench.followers).run_once()
        assert await asyncio.wait_for(begun.get(), 60) == 2
        (row,) = await bench.over(task)
        assert worker.running == 0
        fresh = await bench.submit("stubborn")
        (again,) = await bench.over(fresh)
    assert (row["result"], row["attempt"]) == ("the second", 2)
    assert again["result"] == "the first"


async def claim(bench: Bench) -> store.Identity:
    """Become a worker and take one task, without ever beating again."""
    worker = await hire(bench, concurrency=1, lease=timedelta(milliseconds=1))
    rows = await take(bench, worker, most=1)
    assert len(rows) == 1
    return worker


async def test_one_task_that_a_follower_refuses_does_not_keep_others_from_being_rescued(
    bench: Bench, shaky: Shaky
) -> None:
    refuses = Refuses()
    bench.followers = Followers({"refuses": refuses})

    @bench.registry.task("work", followers=("refuses",))
    async def work(context: TaskContext, payload: Any) -> None: ...

    tasks = [await bench.submit("work") for _ in range(3)]
    for _ in tasks:
        await claim(bench)
    refuses.task_ids.add(tasks[1])
    await asyncio.sleep(0.01)
    await Reaper(shaky, bench.registry, bench.followers).run_once()
    assert await bench.logged(tasks[0]) == [(1, "INTERRUPTED")]
    assert await bench.logged(tasks[2]) == [(1, "INTERRUPTED")]
    # The refused one is not forgotten: it is rescued as soon as nobody objects.
    refuses.task_ids.clear()
    async with bench.working():
        async with shaky.transaction() as tx:
            await tx.execute("UPDATE headrace.task_queue SET run_at = now()")
        rows = await bench.over(*tasks)
    assert {row["status"] for row in rows} == {"SUCCEEDED"}


async def test_a_worker_frozen_in_its_finishing_transaction_holds_up_that_task_only(bench: Bench, shaky: Shaky) -> None:
    @bench.registry.task("work")
    async def work(context: TaskContext, payload: Any) -> None: ...

    tasks = [await bench.submit("work") for _ in range(3)]
    workers = [await claim(bench) for _ in tasks]
    reaper = Reaper(shaky, bench.registry, bench.followers)
    async with shaky.transaction() as frozen:
        await frozen.execute("SELECT FROM headrace.task_queue WHERE worker = $1 FOR UPDATE", workers[0].number)
        async with asyncio.timeout(60):
            await reaper.run_once()
        assert await bench.logged(tasks[0]) == []
        assert await bench.logged(tasks[1]) == [(1, "INTERRUPTED")]
        assert await bench.logged(tasks[2]) == [(1, "INTERRUPTED")]
        # It wakes up, but its lease is over for good: otherwise it could go on as if nothing had happened.
        assert await shaky.fetch_alone(store.BEAT, workers[0].number, 0, 0, {}) == []
    await reaper.run_once()
    assert await bench.logged(tasks[0]) == [(1, "INTERRUPTED")]
    assert await held(shaky) == 0


@pytest.mark.slow
async def test_a_worker_outlives_a_line_that_is_dead_for_a_while(database_url: str, tmp_path: Path) -> None:
    """Nothing is refused and nothing breaks: packets just do not arrive, for longer than anything may take."""
    async with line_to(database_url) as line:
        config = DatabaseConfig(
            line.url, role="test", statement_timeout=timedelta(seconds=1), connect_timeout=timedelta(seconds=1)
        )
        async with await Database.connect(config) as db:
            bench = Bench(db, tmp_path)

            @bench.registry.task("work", max_attempts=10, backoff=AT_ONCE)
            async def work(context: TaskContext, payload: Any) -> None:
                await asyncio.sleep(0.2)
                await context.log("half way")
                await asyncio.sleep(0.2)

            tasks = [await bench.submit("work") for _ in range(30)]
            async with bench.working(lease=timedelta(seconds=2), concurrency=3):
                await asyncio.sleep(1)
                line.dead = True
                await asyncio.sleep(8)  # a statement has a second, and the driver gives up after five more
                line.dead = False
                rows = await bench.over(*tasks, seconds=120)
    assert {row["status"] for row in rows} == {"SUCCEEDED"}


class Careless:
    """A pool that breaks connections when they are given back."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.acquire = pool.acquire

    async def release(self, connection: Any, **how: Any) -> None:
        await self._pool.release(connection, **how)
        raise asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress")


async def test_what_was_committed_stands_when_the_connection_breaks_on_its_way_home(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(shaky, "_pool", Careless(shaky._pool))
        async with shaky.transaction() as tx:
            await tx.execute("INSERT INTO headrace.queues (name) VALUES ('kept')")
        assert [row["name"] for row in await shaky.fetch_alone("SELECT name FROM headrace.queues")] == ["kept"]
