"""What a schedule says of its runs: their grace, how much longer they may ask to run, and whose they are."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from headrace.database import Tx
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import ExtensionRefused
from headrace.tasks.followers import Followers
from headrace.tasks.model import Change, Transition
from tests.tasks.conftest import Bench

SECOND = timedelta(seconds=1)


class Notes:
    """A follower that writes down what it is told."""

    def __init__(self) -> None:
        self.seen: list[Transition] = []

    async def follow(self, _: Tx, transitions: Sequence[Transition]) -> None:
        self.seen += transitions


@pytest.fixture
def notes(bench: Bench) -> Notes:
    noted = Notes()
    bench.followers = Followers({"schedules": noted})
    return noted


async def test_what_a_schedule_fired_is_followed_whatever_its_type_says(bench: Bench, notes: Notes) -> None:
    @bench.registry.task("plain", events=False)
    async def plain(_: TaskContext, __: Any) -> int:
        return 1

    async with bench.working():
        mine = await bench.submit("plain", schedule_uid="sch_1")
        other = await bench.submit("plain")
        await bench.over(mine, other)
    assert [(each.change, each.task_id, each.schedule_uid) for each in notes.seen] == [
        (Change.CREATED, mine, "sch_1"),
        (Change.STARTED, mine, "sch_1"),
        (Change.SUCCEEDED, mine, "sch_1"),
    ]
    assert notes.seen[1].started_at is not None


async def test_progress_and_extensions_are_told_to_the_schedule(bench: Bench, notes: Notes) -> None:
    @bench.registry.task("long")
    async def long(context: TaskContext, _: Any) -> str:
        await context.progress(40)
        await context.extend(2)
        with pytest.raises(ExtensionRefused):
            await context.extend(2)  # of three seconds one is left
        await asyncio.sleep(1.3)
        return "in time"

    async with bench.working():
        task = await bench.submit("long", schedule_uid="sch_1", timeout=SECOND, extension=3 * SECOND)
        (row,) = await bench.over(task)
    assert row["status"] == "SUCCEEDED"
    told = [each for each in notes.seen if each.change in (Change.PROGRESSED, Change.EXTENDED)]
    assert [(each.change, each.progress, each.extended_seconds) for each in told] == [
        (Change.PROGRESSED, 40, None),
        (Change.EXTENDED, None, 2),
    ]


async def test_an_extension_that_could_not_be_written_may_be_asked_for_again(
    bench: Bench, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    @bench.registry.task("long")
    async def long(context: TaskContext, _: Any) -> None:
        with monkeypatch.context() as broken, pytest.raises(AttributeError):
            broken.delattr(Notes, "follow")
            await context.extend(3)
        await context.extend(3)

    async with bench.working():
        task = await bench.submit("long", schedule_uid="sch_1", timeout=SECOND, extension=3 * SECOND)
        (row,) = await bench.over(task)
    assert row["status"] == "SUCCEEDED"
    assert [each.extended_seconds for each in notes.seen if each.change is Change.EXTENDED] == [3]


async def test_a_tasks_own_grace_goes_before_its_types(bench: Bench) -> None:
    let_go = asyncio.Event()

    @bench.registry.task("deaf", max_attempts=1, grace=timedelta(minutes=5))
    async def deaf(_: TaskContext, __: Any) -> None:
        with suppress(asyncio.CancelledError):
            await let_go.wait()
        await let_go.wait()

    async with bench.working():
        task = await bench.submit("deaf", timeout=SECOND, grace=timedelta(0))
        (row,) = await bench.over(task)
        let_go.set()
    assert (row["status"], row["error_code"]) == ("FAILED", "timeout")
