"""What a worker does with ends that another session's open transaction blocks: it stops without losing them, keeps a
limited number of them, and starts everybody else's tasks meanwhile."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from headrace.database_errors import RowsLocked
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.model import Claimed, Ending, Outcome
from headrace.tasks.reaping import Reaper
from headrace.tasks.worker import blocked
from headrace.tasks.worker.blocked import BlockedEnds
from headrace.tasks.worker.store import Identity
from tests.billing import stand
from tests.billing.test_open_transactions import UNITS, Case, case

__all__ = ["case"]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_worker_that_stops_leaves_blocked_ends_to_the_reaper(case: Case) -> None:
    """They were lost: a task that had succeeded in its only attempt ended as interrupted."""
    bench = case.bench
    failing = await bench.submit("render", {"fails": True}, user_id=case.ada)
    unused = await bench.submit("render", {"used": 0}, user_id=case.ada)
    reaper = Reaper(bench.db, bench.registry, bench.followers)
    async with case.importing():
        async with bench.working() as worker:
            await until(lambda: worker.blocked_ends == 2)
        assert worker.blocked_ends == 0
        assert await case.waits(failing)
        assert await case.waits(unused)
        await reaper.run_once()  # it is blocked as well, and leaves them
        assert await case.waits(unused)
    reaped = await reaper.run_once()  # without waiting for the end of the lease
    assert (reaped.workers, reaped.tasks) == (0, 2)  # none died
    for task, status, code in ((failing, "FAILED", "fatal"), (unused, "SUCCEEDED", None)):
        row = await bench.row(task)
        assert (row["status"], row["attempt"], row["error_code"]) == (status, 1, code)
    assert "the picture is broken" in (await bench.row(failing))["error_message"]
    await case.settled_once(failing, "RELEASED", "TASK_FAIL")
    await case.settled_once(unused, "RELEASED", "TASK_COMPLETE")
    [worker_row] = await bench.db.fetch_alone("SELECT ending FROM headrace.workers")
    assert worker_row["ending"] == "STOPPED"
    assert await case.clean()


async def test_an_end_that_was_left_behind_keeps_its_result(case: Case) -> None:
    bench = case.bench
    given = {"text": "ü\N{SNOWMAN}", "list": [1, 2.5, None], "deep": {"a": True}}

    @bench.registry.task("frugal", units=1, max_attempts=1)
    async def frugal(context: TaskContext, payload: Any) -> Any:
        await context.used(0)
        return given

    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    task = await bench.submit("frugal", user_id=case.ada)
    async with case.importing(), bench.working() as worker:
        await until(lambda: worker.blocked_ends == 1)
    await Reaper(bench.db, bench.registry, bench.followers).run_once()
    row = await bench.row(task)
    assert (row["status"], row["result"]) == ("SUCCEEDED", given)


async def test_a_user_with_many_blocked_ends_starts_no_more_tasks_and_others_do(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocked, "MAX_ENDS_OF_USER", 5)
    bench = case.bench
    many = [await bench.submit("render", {"fails": True}, user_id=case.ada) for _ in range(60)]
    claimed = "SELECT count(*) AS many FROM headrace.task_queue WHERE task_id = ANY ($1) AND worker IS NOT NULL"
    async with case.importing() as commit, bench.working(concurrency=3, most_unwritten=2) as worker:
        await until(lambda: worker.blocked_ends >= 5)
        for _ in range(3):
            others = [await bench.submit(name, user_id=case.bob) for name in ("render", "free")]
            await bench.over(*others, seconds=20)
        # Those that ran when it became enough have ended, too; what was taken ahead went back.
        async with asyncio.timeout(60):
            while (held := (await bench.db.fetch_alone(claimed, many))[0]["many"]) != worker.blocked_ends:
                await asyncio.sleep(0.01)
        assert 5 <= held <= 15  # of 60: beside the five, what ran or waited for the writer at that moment
        await commit()
        await bench.over(*many, seconds=60)
    for task in many:
        assert (await bench.row(task))["attempt"] == 1
    assert await stand.left(bench.db, case.quota) == UNITS - 1
    assert await case.clean()


class NeverWrites:
    """A writer whose every write is blocked."""

    async def write(self, *_: object, **__: object) -> int:
        raise RowsLocked


def ends_of(user: str, count: int, *, size: int = 0) -> Sequence[Ending]:
    now = datetime.now(UTC)
    return [
        Ending(
            Claimed(seq, f"tsk_{user}_{seq}", 1, "render", user, None, 0, 1, None, None, now),
            Outcome.FAILED,
            error_message="x" * size,
        )
        for seq in range(count)
    ]


@pytest.fixture
def ends() -> BlockedEnds:
    identity = Identity(1, "wrk_1")
    return BlockedEnds(
        NeverWrites(),  # type: ignore[arg-type]
        worker=lambda: identity,
        wrote=lambda *_: None,
        hand_back=lambda _: None,
    )


async def test_what_is_kept_is_bounded_by_number_and_by_size(
    ends: BlockedEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocked, "MAX_ENDS_OF_USER", 10)
    monkeypatch.setattr(blocked, "MANY_ENDS", 25)
    monkeypatch.setattr(blocked, "MAX_ENDS", 50)
    ends.add(ends_of("ada", 9))
    assert ends.held_users == frozenset()
    ends.add(ends_of("ada", 1))
    assert (ends.held_users, ends.is_held("ada"), ends.is_held("bob")) == ({"ada"}, True, False)
    ends.add(ends_of("bob", 9))
    assert ends.held_users == {"ada"}
    ends.add(ends_of("cy", 6))
    assert (ends.held_users, ends.full) == ({"ada", "bob", "cy"}, False)  # whoever has one
    ends.add(ends_of("di", 25))
    assert ends.full
    assert len(ends.drop()) == 50
    assert (len(ends), ends.held_users, ends.full) == (0, frozenset(), False)

    monkeypatch.setattr(blocked, "MANY_BYTES", 10_000)
    monkeypatch.setattr(blocked, "MAX_BYTES", 40_000)
    ends.add(ends_of("ada", 1, size=12_000))
    assert (ends.is_held("ada"), ends.full) == (True, False)
    ends.add(ends_of("bob", 3, size=12_000))
    assert ends.full


async def test_nobody_elses_start_waits_for_a_handler_that_finishes_in_a_blocked_transaction(
    case: Case, database_url: str
) -> None:
    """The claim stays locked while the handler's own transaction waits for the units."""
    bench = case.bench
    go_on = asyncio.Event()

    @bench.registry.task("finishing", units=1, max_attempts=1)
    async def finishing(context: TaskContext, payload: Any) -> None:
        await context.used(0)
        connection = await asyncpg.connect(database_url)
        try:
            async with connection.transaction():
                await context.finish_in(connection, "done")
        finally:
            await connection.close()

    @bench.registry.task("lasting")
    async def lasting(context: TaskContext, payload: Any) -> None:
        await go_on.wait()

    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    mine = await bench.submit("finishing", user_id=case.ada)
    waiting = "SELECT FROM pg_locks WHERE NOT granted"
    async with case.importing() as commit, bench.working() as worker:
        async with asyncio.timeout(60):
            while not await bench.db.fetch_alone(waiting):
                await asyncio.sleep(0.01)
        theirs = await bench.submit("lasting", user_id=case.bob)
        async with asyncio.timeout(20):  # less than the 30 s that the handler's transaction waits
            while (await bench.row(theirs))["status"] != "RUNNING":
                await asyncio.sleep(0.02)
        assert await case.waits(mine)
        await commit()
        go_on.set()
        ended = await bench.over(mine, theirs)
    assert [row["status"] for row in ended] == ["SUCCEEDED", "SUCCEEDED"]
    assert worker.figures.lost == 0
    await case.settled_once(mine, "RELEASED", "TASK_COMPLETE")
    assert await case.clean()
