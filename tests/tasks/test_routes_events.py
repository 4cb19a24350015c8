"""Server-sent events from a real server over a real socket."""

import asyncio
import socket
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx2
import orjson
import pytest
import uvicorn
from starlette.requests import ClientDisconnect

from headrace.access import Caller, Role
from headrace.audit import Who
from headrace.edge.streams import event_stream
from headrace.tasks import live
from headrace.tasks.catalog import RegistryCatalog
from headrace.tasks.context import TaskContext
from headrace.tasks.live import Watch, WatchConfig
from headrace.tasks.routes import create_router
from headrace.tasks.routes.events import _written
from headrace.tasks.service import Tasks
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand
from tests.tasks.conftest import Bench

CONFIG = WatchConfig(
    every=timedelta(milliseconds=20), heartbeat=timedelta(milliseconds=200), most_per_user=3, longest=timedelta(hours=1)
)


NOBODY = Caller(Who.system(), "u_1", Role.USER)


@pytest.fixture
def bench(bench: Bench) -> Bench:
    @bench.registry.task("break", max_attempts=1)
    async def break_(context: TaskContext, _: Any) -> None:
        raise LookupError("no such shelf")

    @bench.registry.task("talk")
    async def talk(context: TaskContext, lines: Any) -> None:
        for number in range(lines or 0):
            async with context.step(f"part-{number}"):
                await context.log(f"line {number}\nand another")

    return bench


@dataclass
class Served:
    client: httpx2.AsyncClient
    watch: Watch


@pytest.fixture
async def served(bench: Bench) -> AsyncIterator[Served]:
    bound = socket.create_server(("127.0.0.1", 0))
    async with live.open_watch(bench.db, CONFIG) as watch:
        router = create_router(Tasks(bench.submitter, RegistryCatalog(bench.registry), bench.followers), watch)
        app = create_app(stand.services(bench.db), WebConfig(), routers=[router])
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        base = f"http://127.0.0.1:{bound.getsockname()[1]}"
        async with httpx2.AsyncClient(base_url=base, headers=stand.AUTHORIZED, timeout=20) as client:
            yield Served(client, watch)
        watch.stop()  # or the server would wait for the streams
        server.should_exit = True
        async with asyncio.timeout(60):
            await serving


@dataclass
class Message:
    id: str = ""
    event: str = ""
    data: dict[str, Any] = field(default_factory=dict)


async def messages(response: httpx2.Response) -> AsyncIterator[Message]:
    """Parse a stream as a browser does; comments have no event."""
    message = Message()
    async for line in response.aiter_lines():
        if not line:
            yield message
            message = Message()
        elif line.startswith("id: "):
            message.id = line[4:]
        elif line.startswith("event: "):
            message.event = line[7:]
        elif line.startswith("data: "):
            message.data = orjson.loads(line[6:])


@asynccontextmanager
async def events_of(
    served: Served, task_id: str, *, last: str | None = None, **params: Any
) -> AsyncIterator[AsyncIterator[Message]]:
    headers = {} if last is None else {"Last-Event-ID": last}
    async with served.client.stream("GET", f"/v1/tasks/{task_id}/events", headers=headers, params=params) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-store"
        yield messages(response)


async def test_a_client_sees_everything_and_the_stream_ends(bench: Bench, served: Served) -> None:
    task = await bench.submit("talk", 3)
    told: list[Message] = []
    async with asyncio.timeout(60), events_of(served, task) as events:
        async for message in events:
            told.append(message)
            if message.event == "task" and len(told) <= 2:
                working = asyncio.create_task(work(bench, task))
        await working
    told = [message for message in told if message.event]
    assert (told[0].event, told[0].data["status"]) == ("task", "QUEUED")
    assert "payload" not in told[0].data
    assert [message.data["message"] for message in told if message.event == "log"] == [
        *(f"line {number}\nand another" for number in range(3)),
        None,
    ]
    assert (told[-1].event, told[-1].data) == ("end", {"status": "SUCCEEDED"})

    reply = await served.client.get(f"/v1/tasks/{task}/events", headers={"Last-Event-ID": told[-1].id})
    assert reply.status_code == 204


async def work(bench: Bench, task: str) -> None:
    async with bench.working():
        await bench.over(task)


async def test_a_user_sees_the_frames_of_the_handler_and_an_administrator_all(bench: Bench, served: Served) -> None:
    task = await bench.submit("break")
    await work(bench, task)
    told: dict[str, list[str]] = {}
    for who in (stand.USER, f"{stand.USER},ADMIN"):
        served.client.headers["Authorization"] = f"Bearer {who}"
        async with events_of(served, task, after_log=0) as events:
            data = [message.data async for message in events if message.event in ("task", "log")]
        told[who] = [each.get("error_message") or each["message"] for each in data]
    for text in told[stand.USER]:
        assert 'File "test_routes_events.py"' in text
        assert text.endswith("LookupError: no such shelf")
        assert "/" not in text
    assert all(f'File "{__file__}"' in text for text in told[f"{stand.USER},ADMIN"])


async def test_a_client_that_comes_back_goes_on_where_it_was(bench: Bench, served: Served) -> None:
    task = await bench.submit("talk", 4)
    async with bench.working():
        await bench.over(task)
    async with events_of(served, task, after_log=0) as events:
        first = [message async for message in events if message.event]
    for position in range(1, len(first)):
        async with events_of(served, task, last=first[position - 1].id) as events:
            rest = [message async for message in events if message.event]
        assert rest == first[position:]
        if len(rest) == 2:
            break  # the end itself has the id of the line before it


async def test_a_client_that_goes_away_is_noticed(bench: Bench, served: Served) -> None:
    task = await bench.submit("talk")
    async with events_of(served, task) as events:
        kinds = [(await anext(events)).event for _ in range(4)]
        assert kinds == ["", "task", "", ""]  # how soon to come back, the snapshot, and heartbeats
        assert served.watch.streams == 1
    async with asyncio.timeout(60):
        while served.watch.streams:
            await asyncio.sleep(0.02)


async def test_a_client_that_goes_away_while_it_is_written_to_counts_no_longer(bench: Bench, served: Served) -> None:
    task = await bench.submit("talk")
    news = served.watch.follow(task, user_id="u_1")
    stream = event_stream(_written(NOBODY, news), come_back_after=timedelta(seconds=1))

    async def receive() -> dict[str, Any]:
        raise AssertionError("nobody asks")

    async def send(message: MutableMapping[str, Any]) -> None:
        if message.get("body", b"").startswith(b"id: "):
            assert served.watch.streams == 1
            raise OSError

    with pytest.raises(ClientDisconnect):
        await stream({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)
    assert served.watch.streams == 0


async def test_head_opens_no_stream(bench: Bench, served: Served) -> None:
    task = await bench.submit("talk")
    async with asyncio.timeout(60):
        reply = await served.client.head(f"/v1/tasks/{task}/events")
        assert (reply.status_code, reply.content) == (200, b"")
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        while served.watch.streams:
            await asyncio.sleep(0.02)
        assert (await served.client.get(f"/v1/tasks/{task}")).status_code == 200  # over the same connection


async def test_too_many_streams_are_refused_with_an_answer(bench: Bench, served: Served) -> None:
    task = await bench.submit("talk")
    async with events_of(served, task) as one, events_of(served, task) as two, events_of(served, task) as three:
        for events in (one, two, three):
            await anext(events)
            await anext(events)
        reply = await served.client.get(f"/v1/tasks/{task}/events")
    assert (reply.status_code, reply.json()["code"]) == (429, "too_many_streams")
    assert reply.headers["Retry-After"] == "1"


async def test_an_id_that_is_not_ours_is_refused(bench: Bench, served: Served) -> None:
    task = await bench.submit("talk")
    for last in ("", "7", "a.b.c", "1.2.3.4", "1.1." + "9" * 19):
        reply = await served.client.get(f"/v1/tasks/{task}/events", headers={"Last-Event-ID": last})
        assert (reply.status_code, reply.json()["code"]) == (422, "validation_failed"), last


async def test_a_server_that_stops_ends_its_streams(bench: Bench, served: Served) -> None:
    task = await bench.submit("talk")
    async with asyncio.timeout(60), events_of(served, task) as events:
        await anext(events)
        await anext(events)
        served.watch.stop()
        assert [message async for message in events if message.event] == []
