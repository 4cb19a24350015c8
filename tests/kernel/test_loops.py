"""What wakes the loops of a process, and how they go on after a failure."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from headrace.database_errors import DatabaseUnavailable
from headrace.loops import FailuresLogged, Waker, pause, persist

LONG_S = 3600.0


class Notifying:
    """Stands for a database."""

    async def listen(self, *channels: str) -> AsyncGenerator[object, None]:
        yield channels
        await asyncio.Event().wait()


async def test_a_loop_is_woken_by_a_notification() -> None:
    waker = Waker()
    listening = asyncio.create_task(waker.listen(Notifying(), "things"))
    async with asyncio.timeout(60):
        assert await waker.wait(LONG_S)
    waker.clear()
    assert not await waker.wait(0)
    listening.cancel()


async def test_a_wake_up_during_a_look_is_not_lost() -> None:
    waker = Waker()
    waker.clear()
    waker.wake()  # while the loop looks
    async with asyncio.timeout(60):
        assert await waker.wait(LONG_S)


async def test_a_stop_ends_a_sleep_and_is_no_wake_up() -> None:
    waker, stop = Waker(), asyncio.Event()
    asyncio.get_running_loop().call_soon(stop.set)
    async with asyncio.timeout(60):
        assert not await waker.wait(LONG_S, stop=stop)
        await pause(LONG_S, stop=stop)


@pytest.mark.parametrize("failure", [DatabaseUnavailable(), ValueError("a mistake of ours")])
async def test_what_fails_is_logged_and_begun_again(failure: Exception) -> None:
    left = [failure, failure]

    async def act() -> None:
        if left:
            raise left.pop()

    with capture_logs() as logged:
        await persist(act, failed="thing.failed", pause=timedelta(0))
    assert [(line["event"], "error" in line or "exc_info" in line) for line in logged] == [("thing.failed", True)] * 2


async def test_a_cancellation_is_no_failure() -> None:
    with pytest.raises(asyncio.CancelledError), FailuresLogged("thing.failed"):
        raise asyncio.CancelledError
