"""Servers that are busy, broken or behind something strange: what is sent again, and what is not."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx2
import pytest

from headrace import errors as kinds
from headrace import ids
from headrace.client import Client, RetryPolicy, Unreachable, errors
from headrace.client.retrying import retry_after
from headrace.client.streaming import read_events
from tests.client.conftest import IMPATIENT, Script, served

TASK_ID = ids.new("tsk")
QUICK = RetryPolicy(retries=3, first=timedelta(milliseconds=10))
JSON = {"Content-Type": "application/json"}


def task(**changes: object) -> bytes:
    facts = {"id": TASK_ID, "type": "a", "status": "QUEUED", "user_id": "u_1", "title": "a", "queue": "default"}
    return json.dumps({**facts, **changes}).encode()


def problem(code: str) -> bytes:
    return json.dumps({"code": code, "detail": f"It is {code}."}).encode()


async def test_a_busy_server_is_asked_again_with_the_same_key() -> None:
    script = Script((503, {}, problem("unavailable")), (429, {}, problem("rate_limited")), (201, JSON, task()))
    async with served(script) as url, Client(url, "secret", retry=QUICK) as client:
        assert (await client.submit("a", {"n": 1})).id == TASK_ID
    assert len(script.asked) == 3
    keys = {headers["idempotency-key"] for _, _, headers, _ in script.asked}
    assert len(keys) == 1
    assert len({body for *_, body in script.asked}) == 1
    assert {headers["authorization"] for _, _, headers, _ in script.asked} == {"Bearer secret"}


async def test_the_server_says_when_to_come_back() -> None:
    script = Script((429, {"Retry-After": "1"}, problem("rate_limited")), (200, JSON, task()))
    async with served(script) as url, Client(url, "secret", retry=QUICK) as client:
        began = time.monotonic()
        await client.get(TASK_ID)
        assert time.monotonic() - began >= 1


async def test_nobody_waits_longer_than_their_patience() -> None:
    script = Script((429, {"Retry-After": "3600"}, problem("rate_limited")))
    async with served(script) as url, Client(url, "secret", retry=QUICK) as client:
        with pytest.raises(errors.RateLimited) as refused:
            await client.get(TASK_ID)
    assert len(script.asked) == 1
    assert refused.value.retry_after == timedelta(hours=1)
    assert isinstance(refused.value, kinds.Exhausted)


async def test_it_gives_up_after_a_while_and_says_why() -> None:
    script = Script((503, {}, problem("database_unavailable")))
    async with served(script) as url, Client(url, "secret", retry=QUICK) as client:
        with pytest.raises(kinds.Unavailable) as refused:
            await client.get(TASK_ID)
    assert len(script.asked) == 4
    assert refused.value.code == "database_unavailable"


async def test_a_first_request_that_is_still_running_is_waited_for() -> None:
    script = Script((409, {}, problem("idempotency_in_progress")), (201, JSON, task()))
    async with served(script) as url, Client(url, "secret", retry=QUICK) as client:
        assert (await client.submit("a")).id == TASK_ID


async def test_refusals_are_not_sent_again() -> None:
    script = Script((409, {}, problem("task_over")))
    async with served(script) as url, Client(url, "secret", retry=QUICK) as client:
        with pytest.raises(errors.TaskOver):
            await client.cancel(TASK_ID)
    assert len(script.asked) == 1


async def test_a_lost_answer_is_repeated_only_where_that_is_harmless() -> None:
    for verb, times in (("cancel", 4), ("retry", 1)):
        script = Script((502, {"Content-Type": "text/html"}, b"<h1>Bad gateway</h1>"))
        async with served(script) as url, Client(url, "secret", retry=QUICK) as client:
            with pytest.raises(kinds.Unavailable, match="answered 502"):
                await getattr(client, verb)(TASK_ID)
        assert len(script.asked) == times


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, kinds.Invalid),
        (404, kinds.NotFound),
        (403, kinds.Denied),
        (418, kinds.Invalid),
        (500, kinds.HeadraceError),
    ],
)
async def test_an_unknown_code_becomes_its_statuss_kind(status: int, kind: type[kinds.HeadraceError]) -> None:
    async with served(Script((status, {}, problem("brand_new")))) as url, Client(url, "k", retry=IMPATIENT) as client:
        with pytest.raises(kind) as refused:
            await client.get(TASK_ID)
    assert (refused.value.code, refused.value.message) == ("brand_new", "It is brand_new.")


async def test_nobody_there_is_said_in_a_line_without_the_key() -> None:
    async with Client("http://127.0.0.1:1", "top-secret", retry=QUICK) as client:
        with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:1 cannot be reached") as refused:
            await client.get(TASK_ID)
    assert "top-secret" not in str(refused.value)


async def test_a_connection_that_breaks_is_made_anew() -> None:
    """A raw server: the first connection is cut in the middle of the answer."""
    asked = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.readuntil(b"\r\n\r\n")
        body = task()
        cut = 10 if asked == 1 else None
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:cut])
        await writer.drain()
        writer.close()

    async with raw(answer) as url, Client(url, "k", retry=QUICK) as client:
        assert (await client.get(TASK_ID)).id == TASK_ID
    assert asked == 2


# -- following


async def test_where_streams_do_not_come_through_it_asks_again_and_again() -> None:
    page = (200, {"Content-Type": "text/html"}, b"<h1>Log in</h1>")
    states = [(200, JSON, task(version=n, progress=n * 10)) for n in (1, 1, 2)]
    end = (200, JSON, task(version=3, status="SUCCEEDED", result=7))
    async with served(Script(page, *states, end)) as url, Client(url, "k", retry=IMPATIENT) as client:
        seen = [(each.status, each.progress, each.result) async for each in client.follow(TASK_ID)]
    assert seen == [("QUEUED", 10, None), ("QUEUED", 20, None), ("SUCCEEDED", 0, 7)]


async def test_a_task_that_is_over_ends_the_wait_at_once() -> None:
    async with served(Script((204, {}, b""), (200, JSON, task(status="FAILED")))) as url, Client(url, "k") as client:
        assert (await client.wait(TASK_ID)).status == "FAILED"


async def test_a_missing_task_cannot_be_waited_for() -> None:
    async with served(Script((404, {}, problem("task_not_found")))) as url, Client(url, "k") as client:
        with pytest.raises(errors.TaskNotFound):
            await client.wait(TASK_ID)


async def test_a_stream_that_breaks_goes_on_behind_the_last_event() -> None:
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(request)
        head = "HTTP/1.1 200 OK\r\nConnection: close\r\n"
        if "/events" not in request:
            over = len(asked) > 3
            body = task(status="SUCCEEDED" if over else "RUNNING", result="done" if over else None)
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        elif len(asked) == 1:
            event = b"id: 1.1.0\nevent: task\ndata: " + task(status="RUNNING", progress=10) + b"\n\n"
            writer.write(f"{head}Content-Type: text/event-stream\r\n\r\n".encode() + b"retry: 1000\n\n" + event)
        else:
            event = b'id: 2.1.0\nevent: end\ndata: {"status": "SUCCEEDED"}\n\n'
            writer.write(f"{head}Content-Type: text/event-stream\r\n\r\n".encode() + b": still here\n\n" + event)
        await writer.drain()
        writer.close()

    async with raw(answer) as url, Client(url, "k", retry=QUICK) as client:
        seen = [(each.status, each.progress, each.result) async for each in client.follow(TASK_ID)]
    assert seen == [("RUNNING", 10, None), ("SUCCEEDED", 0, "done")]
    streams = [request for request in asked if "/events" in request]
    assert "last-event-id: 1.1.0" in streams[1].lower()


async def test_events_come_whole_however_they_are_cut() -> None:
    wire = ": hi\r\n\r\nid: 1\nevent: log\ndata: a\u2028b\x85c\ndata:d\n\ndata: x\n\nevent: lost\n\n".encode()
    for size in (1, 3, 1000):

        async def chunks(size: int = size) -> AsyncIterator[bytes]:
            for start in range(0, len(wire), size):
                yield wire[start : start + size]

        events = [(event.kind, event.data, event.id) async for event in read_events(chunks())]
        assert events == [("log", "a\u2028b\x85c\nd", "1"), ("message", "x", "1")]


# -- pauses


def test_pauses_grow_within_bounds_and_differ() -> None:
    policy = RetryPolicy(retries=40, first=timedelta(seconds=1), cap=timedelta(seconds=8))
    for attempt, most in ((0, 1), (1, 2), (2, 4), (3, 8), (39, 8)):
        pauses = {policy.pause(attempt, None) for _ in range(50)}
        assert len(pauses) > 10
        assert all(pause is not None and most / 2 <= pause <= most for pause in pauses)
    assert policy.pause(40, None) is None
    assert policy.pause(0, timedelta(seconds=5)) == 5


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("soon", None)])
def test_retry_after_is_read_in_both_forms(header: str, seconds: int | None) -> None:
    found = retry_after(httpx2.Response(503, headers={"Retry-After": header}))
    assert found == (None if seconds is None else timedelta(seconds=seconds))


@asynccontextmanager
async def raw(answer: object) -> AsyncIterator[str]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)  # type: ignore[arg-type]
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
