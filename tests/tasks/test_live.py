"""Following a task: everything that happens is told once, in order, to as many as want to know."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Any

import pytest

from headrace.access import Caller
from headrace.database import Database
from headrace.edge.streams import TooManyStreams
from headrace.tasks import live, service
from headrace.tasks.context import TaskContext
from headrace.tasks.live import Event, Kind, Watch, WatchConfig
from headrace.tasks.store.watching import Position
from tests.conftest import TestServer
from tests.tasks.conftest import Bench
from tests.tasks.people import hire, person, take, tasks_of

QUICK = WatchConfig(every=timedelta(milliseconds=20), heartbeat=timedelta(milliseconds=300))


@pytest.fixture
async def watch(db: Database) -> AsyncIterator[Watch]:
    async with live.open_watch(db, QUICK) as opened:
        yield opened


@pytest.fixture
def bench(bench: Bench) -> Bench:
    @bench.registry.task("talk")
    async def talk(context: TaskContext, lines: Any) -> None:
        for number in range(lines or 0):
            await context.progress(number)
            await context.log(f"line {number}")

    return bench


async def follow(watch: Watch, task_id: str, *, into: list[Event] | None = None, **options: Any) -> list[Event]:
    """Everything until the end, without the heartbeats."""
    seen = [] if into is None else into
    async with asyncio.timeout(60), aclosing(watch.follow(task_id, user_id="u_1", **options)) as events:
        async for event in events:
            if event.kind is not Kind.HEARTBEAT:
                seen.append(event)
    return seen


async def begin(watch: Watch, task_id: str) -> "asyncio.Task[list[Event]]":
    """Follow in the background, from when the snapshot was seen."""
    seen: list[Event] = []
    following = asyncio.create_task(follow(watch, task_id, into=seen))
    async with asyncio.timeout(60):
        while not seen:
            await asyncio.sleep(0.01)
    return following


def lines(events: list[Event]) -> list[str | None]:
    return [event.line.message for event in events if event.line is not None]


def statuses(events: list[Event]) -> list[str]:
    return [event.task.status for event in events if event.kind is Kind.TASK and event.task is not None]


async def cancel(bench: Bench, caller: Caller, task_id: str) -> None:
    async with bench.db.transaction() as tx:
        await service.cancel_task(tx, tasks_of(bench), caller, task_id)


async def test_a_task_is_told_from_its_snapshot_to_its_end(bench: Bench, watch: Watch) -> None:
    task = await bench.submit("talk", 5)
    following = await begin(watch, task)
    async with bench.working():
        events = await following
    assert events[0].kind is Kind.TASK
    assert statuses(events)[0] == "QUEUED"
    assert statuses(events)[-1] == "SUCCEEDED"
    assert lines(events) == [*(f"line {number}" for number in range(5)), None]
    assert events[-1].kind is Kind.END
    progress = [event.task.progress for event in events if event.task is not None]
    assert progress == sorted(progress)
    assert watch.streams == 0


async def test_what_is_over_is_told_at_once_with_the_lines_that_were_asked_for(bench: Bench, watch: Watch) -> None:
    task = await bench.submit("talk", 450)  # more than one read
    async with bench.working():
        await bench.over(task)
    events = await follow(watch, task)
    assert [event.kind for event in events] == [Kind.TASK, Kind.END]
    events = await follow(watch, task, lines_after=0)
    assert lines(events) == [*(f"line {number}" for number in range(450)), None]


async def test_a_stream_that_breaks_goes_on_without_gaps_or_repetitions(bench: Bench, watch: Watch) -> None:
    task = await bench.submit("talk", 60)
    seen: list[Event] = []
    since: Position | None = None

    async def watch_in_pieces() -> None:
        nonlocal since
        while not seen or seen[-1].kind is not Kind.END:
            piece = 0
            options: dict[str, Any] = {"lines_after": 0} if since is None else {"since": since}
            async with aclosing(watch.follow(task, user_id="u_1", **options)) as events:
                async for event in events:
                    seen.append(event)
                    since = live.position_of(live.event_id(event.position))  # as a client sends it back
                    piece += 1
                    if piece == 3 or event.kind is Kind.END:
                        break

    following = asyncio.create_task(watch_in_pieces())
    async with asyncio.timeout(60), bench.working():
        await following
    assert lines(seen) == [*(f"line {number}" for number in range(60)), None]
    shown = [event.position[:2] for event in seen if event.kind is Kind.TASK]
    assert len(shown) == len(set(shown))
    assert statuses(seen)[-1] == "SUCCEEDED"


async def test_that_a_worker_has_taken_it_shows_before_the_row_says_so(bench: Bench, watch: Watch) -> None:
    ada, worker = await person(bench), await hire(bench)
    task = await bench.submit("talk", user_id=ada.user_id)
    async with asyncio.timeout(60), aclosing(watch.follow(task, user_id=ada.user_id)) as events:
        assert await next_status(events) == "QUEUED"
        await take(bench, worker)
        assert await next_status(events) == "RUNNING"
        assert (await bench.row(task))["status"] == "QUEUED"
        async with bench.db.transaction() as tx:
            await tx.execute("UPDATE headrace.task_queue SET worker = NULL, claimed_at = NULL, attempt = 0")
        assert await next_status(events) == "QUEUED"
        await cancel(bench, ada, task)
        assert await next_status(events) == "CANCELED"


async def next_status(events: AsyncIterator[Event]) -> str:
    while (event := await anext(events)).kind is not Kind.TASK:
        pass
    assert event.task is not None
    return event.task.status


async def test_who_has_seen_the_end_is_told_not_to_come_back(bench: Bench, watch: Watch) -> None:
    ada = await person(bench)
    task = await bench.submit("talk", user_id=ada.user_id)
    await cancel(bench, ada, task)
    events = await follow(watch, task)
    async with bench.db.transaction() as tx:
        shown = await service.get_task(tx, ada, task)
        assert await live.nothing_left(tx, shown, events[-1].position)
        assert not await live.nothing_left(tx, shown, None)
        assert not await live.nothing_left(tx, shown, Position(0, 0, 0))


async def test_a_deleted_task_ends_its_streams(bench: Bench, watch: Watch) -> None:
    task = await bench.submit("talk")
    following = await begin(watch, task)
    async with bench.db.transaction() as tx:
        await tx.execute("UPDATE headrace.tasks SET deleted_at = now() WHERE id = $1", task)
    events = await following
    assert (events[-1].kind, events[-1].task) == (Kind.END, None)


async def test_a_young_stream_is_looked_at_while_old_ones_wait(bench: Bench) -> None:
    """Streams that were opened long ago do not make others wait for their next turn, nor are they read with them."""
    asked: list[set[str]] = []
    async with live.open_watch(bench.db, WatchConfig(every=timedelta(hours=1))) as watch:
        looks = watch.run_once

        async def noted(due: Any = None) -> int:
            asked.append({watcher.task_id for watcher in due})
            return await looks(due)

        watch.run_once = noted  # type: ignore[method-assign]
        old, young = await bench.submit("talk"), await bench.submit("talk")
        following = await begin(watch, old)
        async with asyncio.timeout(60):
            while not asked:
                await asyncio.sleep(0.01)
        (aged,) = watch._watchers
        watch._pacer._turns[aged].since -= 3600 * 24 * 3
        watch._pacer._turns[aged].due += 3600
        asked.clear()
        short = await begin(watch, young)
        async with bench.db.transaction() as tx:
            await tx.execute("UPDATE headrace.tasks SET deleted_at = now() WHERE id = $1", young)
        assert (await short)[-1].kind is Kind.END
        assert asked
        assert all(each == {young} for each in asked)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


async def test_silence_is_filled_with_heartbeats_and_nothing_is_read(bench: Bench, watch: Watch) -> None:
    task = await bench.submit("talk")
    async with asyncio.timeout(60), aclosing(watch.follow(task, user_id="u_1")) as events:
        kinds = [(await anext(events)).kind for _ in range(3)]
    assert kinds == [Kind.TASK, Kind.HEARTBEAT, Kind.HEARTBEAT]
    assert await watch.run_once() == 0


async def test_streams_are_limited_for_a_user_and_altogether(bench: Bench) -> None:
    task = await bench.submit("talk")
    async with live.open_watch(bench.db, WatchConfig(most=3, most_per_user=2)) as watch:
        opened = []
        for user_id in ("u_1", "u_1", "u_2"):
            watch.check_room(user_id)
            opened.append(watch.follow(task, user_id=user_id))
            await anext(opened[-1])
            if len(opened) == 2:
                with pytest.raises(TooManyStreams):
                    watch.check_room("u_1")
        with pytest.raises(TooManyStreams):
            watch.check_room("u_3")
        await opened.pop().aclose()
        watch.check_room("u_3")
        for stream in opened:
            await stream.aclose()


async def test_a_stream_ends_when_its_time_is_over_or_the_process_stops(bench: Bench) -> None:
    task = await bench.submit("talk")
    brief = WatchConfig(every=QUICK.every, heartbeat=timedelta(milliseconds=50), longest=timedelta(milliseconds=120))
    async with live.open_watch(bench.db, brief) as watch:
        assert [event.kind for event in await follow(watch, task)] == [Kind.TASK]
    async with live.open_watch(bench.db) as watch:
        following = await begin(watch, task)
        watch.stop()
        assert [event.kind for event in await following] == [Kind.TASK]


async def test_many_streams_share_a_few_connections(bench: Bench, watch: Watch) -> None:
    task_ids = [await bench.submit("talk", 2) for _ in range(60)]
    following = [asyncio.create_task(follow(watch, task, lines_after=0)) for task in task_ids for _ in range(2)]
    await asyncio.sleep(0)
    assert watch.streams == 120
    async with bench.working():
        told = await asyncio.gather(*following)
    assert all(lines(events) == ["line 0", "line 1", None] for events in told)


async def test_a_database_that_is_away_for_a_moment_loses_nothing(
    bench: Bench, watch: Watch, server: TestServer
) -> None:
    ada = await person(bench)
    task = await bench.submit("talk", user_id=ada.user_id)
    following = await begin(watch, task)
    (row,) = await bench.db.fetch_alone("SELECT current_database() AS name")
    for _ in range(5):  # as when the server is restarted
        await server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", row["name"])
    async with asyncio.timeout(60):
        while True:  # the pool may still give out connections that are dead
            await asyncio.sleep(0.1)
            with suppress(Exception):
                await cancel(bench, ada, task)
                break
    assert statuses(await following)[-1] == "CANCELED"
