"""What all live streams have in common: they go on while the database is away, and end when the process does."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from headrace.database_errors import DatabaseUnavailable
from headrace.edge.streams import Heartbeat, StreamLimits, Streams, TooManyStreams


@dataclass(eq=False)
class Subscriber:
    user_id: str = "u_1"
    woken: asyncio.Event = field(default_factory=asyncio.Event)


@pytest.mark.parametrize("failure", [DatabaseUnavailable(), OSError("the server closed the connection")])
async def test_a_stream_that_cannot_read_beats_on_and_reads_later(failure: Exception) -> None:
    """The inbox stream raised where those of tasks and changes went on."""
    answers: list[Exception | list[int]] = [failure, failure, [1, 2]]
    streams: Streams[Subscriber] = Streams("test", StreamLimits(heartbeat=timedelta(0)))

    async def read() -> Sequence[int]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with streams.opened(Subscriber()) as mine:
        async with aclosing(streams.news(mine, read, may_see=None)) as news:
            came = [await anext(news) for _ in range(4)]
    assert came == [Heartbeat(), Heartbeat(), 1, 2]


async def test_looking_goes_on_after_a_failure_and_rests_without_streams() -> None:
    streams: Streams[Subscriber] = Streams("test", StreamLimits())
    looks, rests, enough = 0, 0, asyncio.Event()

    async def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            enough.set()
        raise DatabaseUnavailable

    def rest() -> None:
        nonlocal rests
        rests += 1

    looking = asyncio.create_task(streams.look_while_open(look, every=timedelta(0), idle=rest))
    await asyncio.sleep(0)
    assert (looks, rests) == (0, 1)
    with streams.opened(Subscriber()):
        async with asyncio.timeout(60):
            await enough.wait()
    looking.cancel()
    await asyncio.wait({looking})
    assert looking.cancelled()


async def test_a_process_that_stops_ends_its_streams() -> None:
    streams: Streams[Subscriber] = Streams("test", StreamLimits(heartbeat=timedelta(hours=1), most_per_user=1))

    async def read() -> Sequence[int]:
        asyncio.get_running_loop().call_soon(streams.stop)
        return [1]

    with streams.opened(Subscriber()) as mine:
        with pytest.raises(TooManyStreams):
            streams.check_room("u_1")
        async with asyncio.timeout(60):
            assert [each async for each in streams.news(mine, read, may_see=None)] == [1]
    assert len(streams) == 0
    streams.check_room("u_1")
