"""How many tasks a user has open is counted now and then, and always close to the cap."""

from typing import Any

import pytest

from headrace.access import Caller, Role
from headrace.audit import Who
from headrace.tasks.errors import TooManyOpenTasks
from headrace.tasks.open_tasks import OpenTasks

ADA = Caller(Who.system(), "u_ada", Role.USER)


class Counted:
    """A transaction in which this user has so many."""

    def __init__(self, waiting: int) -> None:
        self.waiting, self.times = waiting, 0

    async def fetchval(self, *_: object) -> int:
        self.times += 1
        return self.waiting


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def submit(open_tasks: OpenTasks, tx: Any, count: int, *, cap: int = 10_000) -> None:
    for _ in range(count):
        await open_tasks.check(tx, ADA, cap, 1)
        tx.waiting += 1


async def test_far_from_the_cap_few_counts_are_made() -> None:
    tx = Counted(0)
    await submit(OpenTasks(), tx, 5_000)
    assert tx.times < 10


async def test_ten_processes_at_once_get_nobody_over_the_cap() -> None:
    tx = Counted(0)
    processes = [OpenTasks() for _ in range(10)]
    with pytest.raises(TooManyOpenTasks):
        for turn in range(20_000):
            await submit(processes[turn % 10], tx, 1, cap=1_000)
    assert tx.waiting == 1_000


async def test_after_a_while_it_is_counted_again() -> None:
    clock, tx = Clock(), Counted(0)
    open_tasks = OpenTasks(clock=clock)
    await submit(open_tasks, tx, 2)
    clock.now += 60
    tx.waiting = 10_000  # through others
    with pytest.raises(TooManyOpenTasks):
        await submit(open_tasks, tx, 1)
