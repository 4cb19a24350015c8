"""Turns at a shared child pool: one user's many requests do not delay another's one."""

import asyncio
from datetime import timedelta

import pytest

from headrace.assets.fair_queue import MAX_WAITING_PER_USER, FairQueue
from headrace.assets.inspection.errors import InspectionBusy


class Stand:
    """Records who has a turn; each ends when it is let."""

    def __init__(self, slots: int, *, max_wait: float = 60) -> None:
        self.queue = FairQueue(slots, max_wait=timedelta(seconds=max_wait), busy=InspectionBusy)
        self.served: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    async def use(self, owner: str, name: str) -> None:
        gate = self.gates.setdefault(name, asyncio.Event())
        async with self.queue.turn(owner):
            self.served.append(name)
            await gate.wait()

    async def begin(self, owner: str, *names: str) -> list[asyncio.Task[None]]:
        begun = [asyncio.create_task(self.use(owner, name)) for name in names]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return begun

    async def end(self, name: str) -> None:
        self.gates[name].set()
        for _ in range(5):
            await asyncio.sleep(0)


async def test_one_user_has_one_turn_at_a_time_and_users_are_served_in_rotation() -> None:
    stand = Stand(2)
    tasks = await stand.begin("eve", "e1", "e2", "e3")
    assert stand.served == ["e1"], "two requests of one account held both inspectors"
    tasks += await stand.begin("ada", "a1")
    assert stand.served == ["e1", "a1"]
    tasks += await stand.begin("bob", "b1")
    await stand.end("e1")
    assert stand.served == ["e1", "a1", "e2"]
    await stand.end("a1")
    assert stand.served[3:] == ["b1"]
    for name in ("e2", "e3", "b1"):
        await stand.end(name)
    await asyncio.gather(*tasks)


async def test_a_user_who_waits_is_served_before_anothers_second_request() -> None:
    stand = Stand(1)
    tasks = await stand.begin("eve", *(f"e{number}" for number in range(10)))
    tasks += await stand.begin("ada", "a1")
    await stand.end("e0")
    await stand.end("e1")
    assert stand.served == ["e0", "e1", "a1"]
    for name in list(stand.gates):
        await stand.end(name)
    await asyncio.gather(*tasks)


async def test_nobody_waits_longer_than_the_limit() -> None:
    stand = Stand(1, max_wait=0.05)
    (first,) = await stand.begin("eve", "e1")
    with pytest.raises(InspectionBusy):
        await stand.use("ada", "a1")
    await stand.end("e1")
    await first
    stand.gates["a1"].set()
    await stand.use("ada", "a1")  # what gave up has left nothing behind
    assert stand.served == ["e1", "a1"]


async def test_too_many_waiting_requests_of_one_user_are_refused_at_once() -> None:
    stand = Stand(1)
    tasks = await stand.begin("eve", *(f"e{number}" for number in range(MAX_WAITING_PER_USER + 1)))
    with pytest.raises(InspectionBusy):
        await stand.use("eve", "more")
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    (last,) = await stand.begin("ada", "a1")
    assert stand.served[-1] == "a1", "canceled requests keep no turn"
    await stand.end("a1")
    await last
