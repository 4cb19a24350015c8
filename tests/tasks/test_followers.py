"""Whoever moves with a task: in which order they are called, and what happens where one is missing."""

import asyncio
from collections.abc import Sequence

import pytest

from headrace.database import Tx
from headrace.tasks.catalog import KnownType
from headrace.tasks.errors import FollowerMissing
from headrace.tasks.followers import Followers
from headrace.tasks.model import Change, Transition
from headrace.tasks.worker import writing
from tests.tasks.conftest import Bench


class Noting:
    """Writes down that it was called, and with which tasks."""

    def __init__(self, name: str, calls: list[tuple[str, list[str]]]) -> None:
        self._name = name
        self._calls = calls

    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:  # noqa: ARG002
        self._calls.append((self._name, [each.task_id for each in transitions]))


def known(*followers: str) -> KnownType:
    return KnownType("report", "default", 0, 3, None, False, lambda payload: payload, followers=followers)


def moved(task_id: str) -> Transition:
    return Transition(Change.SUCCEEDED, task_id, "report", "u_1", attempt=1)


async def test_they_are_called_in_the_order_of_registration_whatever_the_batch_holds(tx: Tx) -> None:
    calls: list[tuple[str, list[str]]] = []
    followers = Followers({name: Noting(name, calls) for name in ("first", "second", "third")})
    await followers.follow(tx, [(known("third"), moved("a")), (known("second", "first"), moved("b"))])
    assert calls == [("first", ["b"]), ("second", ["b"]), ("third", ["a"])]


class Locking:
    """Locks a row of its own, as the ledger and the counts of schedules do."""

    def __init__(self, key: int) -> None:
        self._key = key

    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:  # noqa: ARG002
        await tx.execute("SELECT pg_advisory_xact_lock($1)", self._key)
        await asyncio.sleep(0.02)


async def test_two_batches_that_begin_with_different_types_do_not_deadlock(bench: Bench) -> None:
    followers = Followers({"ledger": Locking(1), "counts": Locking(2)})
    one, other = (known("ledger"), moved("a")), (known("counts"), moved("b"))

    async def move(moves: list[tuple[KnownType, Transition]]) -> None:
        async with bench.db.transaction() as tx:
            await followers.follow(tx, moves)

    await asyncio.gather(*(move(moves) for _ in range(5) for moves in ([one, other], [other, one])))


async def test_a_worker_that_lacks_a_follower_of_its_types_does_not_start(bench: Bench) -> None:
    @bench.registry.task("report", followers=("ledger",))
    async def report(_context: object, _payload: object) -> None: ...

    with pytest.raises(FollowerMissing, match=r"report is followed by ledger.*it has none"):
        bench.worker()


async def test_a_move_that_nobody_here_can_follow_is_refused_before_anything_is_written(tx: Tx) -> None:
    calls: list[tuple[str, list[str]]] = []
    followers = Followers({"counts": Noting("counts", calls)})
    with pytest.raises(FollowerMissing, match="ledger"):
        await followers.follow(tx, [(known("counts"), moved("a")), (known("ledger"), moved("b"))])
    assert calls == []


class Picky:
    """Refuses the first ends that it is told of."""

    def __init__(self, refusals: int) -> None:
        self._left = refusals

    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:  # noqa: ARG002
        if self._left and any(each.change is Change.SUCCEEDED for each in transitions):
            self._left -= 1
            raise RuntimeError("the books are closed")


async def test_the_last_attempt_is_not_run_again_because_its_end_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it did outside is done: its end is offered again until it is taken."""
    monkeypatch.setattr(writing, "_WRITE_AGAIN_S", 0.05)
    bench.followers = Followers({"ledger": Picky(3)})
    ran: list[int] = []

    @bench.registry.task("pay", max_attempts=1, followers=("ledger",))
    async def pay(_context: object, _payload: object) -> None:
        ran.append(1)

    task = await bench.submit("pay")
    async with bench.working():
        (row,) = await bench.over(task, seconds=60)
    assert (row["status"], row["attempt"], ran) == ("SUCCEEDED", 1, [1])
