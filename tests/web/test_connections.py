"""Connections over real sockets: every wait for a client ends, and nobody is kept out by those who wait."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from headrace.assembly.serving import _close_overdue
from headrace.web import connections as module
from headrace.web.connections import ConnectionLimits, Connections, Phase, Reason
from headrace.web.protocol import GuardedProtocol

SHORT = timedelta(milliseconds=400)
LONG = timedelta(hours=1)
# Nothing ends by itself; each test shortens what it is about.
PATIENT = ConnectionLimits(head_timeout=LONG, keep_alive=LONG, stalled_for=LONG, closing_for=LONG)
GET = b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n"
HALF = b"GET /readyz HT"
BIG = 8 * 1024 * 1024


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> Any:
        assert self.headers["content-type"] == "application/problem+json", self
        assert self.headers["connection"] == "close"
        return json.loads(self.body)


@dataclass
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> Answer:
        async with asyncio.timeout(30):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
            body = await self.reader.readexactly(int(headers["content-length"]))
            return Answer(int(first.split()[1]), headers, body)

    async def ask(self, data: bytes = GET) -> Answer:
        self.send(data)
        return await self.answer()

    async def closed(self) -> bytes:
        """Wait until the server has closed, and give what it said before."""
        async with asyncio.timeout(30):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


@dataclass
class Stand:
    port: int
    table: Connections
    gate: asyncio.Event
    clients: list[Client] = field(default_factory=list)

    async def connect(self, *, source: str = "127.0.0.1", small_buffers: bool = False) -> Client:
        raw = socket.socket()
        raw.setblocking(False)
        if small_buffers:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=raw, limit=4096)
        self.clients.append(Client(reader, writer))
        return self.clients[-1]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.01)

    async def busy(self, path: str = "/slow", *, source: str = "127.0.0.1") -> Client:
        """A client whose request is under way until the gate is opened."""
        before = self.table.count(Phase.WORK)
        client = await self.connect(source=source)
        client.send(f"GET {path} HTTP/1.1\r\nHost: t\r\n\r\n".encode())
        await self.until(lambda: self.table.count(Phase.WORK) > before)
        return client


@asynccontextmanager
async def serving(limits: ConnectionLimits) -> AsyncIterator[Stand]:
    gate = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            await gate.wait()
        if scope["path"] == "/read":
            while (await receive()).get("more_body"):
                pass
        body = b"x" * (BIG if scope["path"] == "/big" else 2)
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    table = Connections(limits)
    bound = socket.create_server(("127.0.0.1", 0), backlog=512)
    protocol: Any = partial(GuardedProtocol, connections=table)
    server = uvicorn.Server(uvicorn.Config(app, http=protocol, ws="none", log_config=None, lifespan="off"))
    server.config.timeout_keep_alive = 3600
    serving = asyncio.create_task(server._serve(sockets=[bound]))
    closing = asyncio.create_task(_close_overdue(table))
    stand = Stand(bound.getsockname()[1], table, gate)
    await stand.until(lambda: server.started)
    try:
        yield stand
    finally:
        gate.set()
        for client in stand.clients:
            client.writer.transport.abort()
        server.should_exit = True
        async with asyncio.timeout(30):
            await serving
        closing.cancel()
        await asyncio.wait({closing})
        assert len(table) == 0
        assert not table._count_of
        assert not table._waiting_of


# -- time


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with serving(replace(PATIENT, head_timeout=SHORT)) as stand:
        client = await stand.connect()
        assert await client.closed() == b""
        assert stand.table.closed[Reason.HEAD_TIMEOUT] == 1


async def test_half_a_head_is_answered_and_closed() -> None:
    async with serving(replace(PATIENT, head_timeout=SHORT)) as stand:
        client = await stand.connect()
        answer = await client.ask(HALF)
        assert (answer.status, answer.problem["code"]) == (408, "request_too_slow")
        assert await client.closed() == b""


async def test_a_head_that_drips_gets_no_more_time() -> None:
    async with serving(replace(PATIENT, head_timeout=SHORT)) as stand:
        client = await stand.connect()
        client.send(b"GET / HTTP/1.1\r\n")

        async def drip() -> None:
            while True:
                client.send(b"X: y\r\n")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        assert (await client.answer()).status == 408
        dripping.cancel()


async def test_a_kept_connection_ends_and_its_next_head_has_a_time_of_its_own() -> None:
    async with serving(replace(PATIENT, keep_alive=SHORT)) as stand:
        client, slow = await stand.connect(), await stand.connect()
        assert (await client.ask()).status == 200
        assert await client.closed() == b""
        assert stand.table.closed[Reason.IDLE_TIMEOUT] == 1
        assert (await slow.ask()).status == 200
        slow.send(HALF)
        await stand.until(lambda: stand.table.count(Phase.HEAD) == 1)
        await asyncio.sleep(2 * SHORT.total_seconds())
        assert (await slow.ask(b"TP/1.1\r\nHost: t\r\n\r\n")).status == 200


async def test_the_rest_of_a_body_that_nobody_wants_keeps_nothing_open() -> None:
    async with serving(replace(PATIENT, keep_alive=SHORT)) as stand:
        client = await stand.connect()
        answer = await client.ask(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n")
        assert answer.status == 200

        async def drip() -> None:
            while True:
                client.send(b"x")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        await client.closed()
        dripping.cancel()


async def test_a_client_that_does_not_read_is_given_up() -> None:
    async with serving(replace(PATIENT, stalled_for=SHORT)) as stand:
        client = await stand.connect(small_buffers=True)
        client.send(b"GET /big HTTP/1.1\r\nHost: t\r\n\r\n")
        await stand.until(lambda: stand.table.closed[Reason.NOT_READING] == 1)
        await stand.until(lambda: len(stand.table) == 0)


async def test_a_request_may_take_as_long_as_it_takes() -> None:
    brief = ConnectionLimits(head_timeout=SHORT, keep_alive=SHORT, stalled_for=SHORT, closing_for=SHORT)
    async with serving(brief) as stand:
        client = await stand.busy()
        await asyncio.sleep(3 * SHORT.total_seconds())
        stand.gate.set()
        assert (await client.answer()).status == 200


async def test_a_refused_client_that_does_not_hang_up_is_cut_off() -> None:
    async with serving(replace(PATIENT, closing_for=SHORT)) as stand:
        client = await stand.connect()
        assert (await client.ask(b"\x16\x03\x01\r\n\r\n")).status == 400
        await stand.until(lambda: stand.table.closed[Reason.NOT_CLOSING] == 1)
        await stand.until(lambda: len(stand.table) == 0)


# -- room


async def test_of_one_address_the_oldest_quiet_connection_makes_way() -> None:
    async with serving(replace(PATIENT, per_address=3)) as stand:
        clients = [await stand.connect() for _ in range(3)]
        for client in clients:
            client.send(HALF)
        elsewhere = await stand.connect(source="127.0.0.2")
        new = await stand.connect()
        assert (await new.ask()).status == 200
        assert await clients[0].closed() == b""
        assert len(stand.table) == 4
        assert stand.table.closed == {Reason.MADE_ROOM: 1}
        assert (await elsewhere.ask()).status == 200
        assert (await clients[1].ask(b"TP/1.1\r\nHost: t\r\n\r\n")).status == 200


async def test_slow_bodies_of_one_address_make_way_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MIN_WAIT_S", 0.0)
    async with serving(replace(PATIENT, per_address=3)) as stand:
        for _ in range(3):
            client = await stand.connect()
            client.send(b"POST /read HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nx")
        await stand.until(lambda: stand.table.count(Phase.BODY) == 3)
        assert (await (await stand.connect()).ask()).status == 200
        assert await stand.clients[0].closed() == b""


async def test_an_address_whose_connections_are_all_at_work_is_told_to_wait() -> None:
    async with serving(replace(PATIENT, per_address=2)) as stand:
        busy = [await stand.busy() for _ in range(2)]
        for _ in range(3):
            refused = await stand.connect()
            answer = await refused.answer()
            assert (answer.status, answer.problem["code"]) == (429, "too_many_connections")
            assert answer.headers["retry-after"] == "1"
        assert (await (await stand.connect(source="127.0.0.2")).ask()).status == 200
        stand.gate.set()
        assert [(await client.answer()).status for client in busy] == [200, 200]


async def test_a_trusted_proxy_brings_as_many_as_it_likes() -> None:
    trusting = replace(PATIENT, per_address=2, trusted_proxies=(ip_network("127.0.0.2/32"),))
    async with serving(trusting) as stand:
        clients = [await stand.connect(source="127.0.0.2") for _ in range(6)]
        assert [(await client.ask()).status for client in clients] == [200] * 6
        assert not stand.table.closed


@pytest.mark.parametrize(
    ("peer", "bucket"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("10.1.2.3", None),
        (None, None),
    ],
)
def test_one_customer_is_one_address(peer: str | None, bucket: str | None) -> None:
    assert Connections(ConnectionLimits(trusted_proxies=(ip_network("10.0.0.0/8"),))).bucket_of(peer) == bucket


async def test_when_all_is_full_whoever_was_quiet_for_longest_makes_way() -> None:
    async with serving(replace(PATIENT, connections=16)) as stand:
        kept = await stand.connect()
        assert (await kept.ask()).status == 200
        for number in range(15):
            (await stand.connect(source=f"127.0.0.{number + 2}")).send(HALF)
        await stand.until(lambda: len(stand.table) == 16)
        assert (await (await stand.connect()).ask()).status == 200
        assert await kept.closed() == b""
        assert len(stand.table) == 16


async def test_requests_are_limited_and_probes_have_room() -> None:
    async with serving(replace(PATIENT, connections=16, requests=3)) as stand:
        quiet = [await stand.connect() for _ in range(8)]
        busy = [await stand.busy() for _ in range(3)]
        answer = await (await stand.connect()).ask(b"GET /v1/tasks HTTP/1.1\r\nHost: t\r\n\r\n")
        assert (answer.status, answer.problem["code"]) == (503, "server_busy")
        assert answer.headers["retry-after"] == "1"
        for path in (b"/healthz", b"/readyz"):
            assert (await quiet[0].ask(b"GET " + path + b" HTTP/1.1\r\nHost: t\r\n\r\n")).status == 200
        stand.gate.set()
        assert [(await client.answer()).status for client in busy] == [200] * 3
        assert (await quiet[1].ask(b"GET /v1/tasks HTTP/1.1\r\nHost: t\r\n\r\n")).status == 200


async def test_a_request_that_waits_for_its_body_makes_way_for_one_that_is_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(replace(PATIENT, requests=2)) as stand:
        slow = [await stand.connect() for _ in range(2)]
        for client in slow:
            client.send(b"POST /read HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nx")
        await stand.until(lambda: stand.table.count(Phase.BODY) == 2)
        monkeypatch.setattr(module, "_MIN_WAIT_S", 3600.0)
        assert (await (await stand.connect()).ask(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n")).status == 503
        monkeypatch.setattr(module, "_MIN_WAIT_S", 0.0)
        assert (await (await stand.connect()).ask(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n")).status == 200
        assert await slow[0].closed() == b""
        assert (await slow[1].ask(b"xxxx")).status == 200


async def test_out_of_descriptors_quiet_connections_give_theirs_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(replace(PATIENT, connections=100)) as stand:
        busy = await stand.busy()
        for _ in range(39):
            await stand.connect()
        await stand.until(lambda: len(stand.table) == 40)
        monkeypatch.setattr(module, "descriptors_left", lambda _: False)
        stand.table.tick()
        assert len(stand.table) <= 32
        monkeypatch.undo()
        assert stand.table.closed[Reason.OUT_OF_FILES] >= 8
        stand.gate.set()
        assert (await busy.answer()).status == 200
        for _ in range(10):
            stand.table.tick()
        assert stand.table._room == 100


# -- what is no request


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/9.9\r\nHost: t\r\n\r\n", 505),
        (b"GET / HTTP/2.0\r\nHost: t\r\n\r\n", 505),
        (b"GET / HTTP/1.1\nHost: t\n\n", 400),
        (b"GET / HTTP/1.1\r\nHost: t\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: t\r\n\n", 400),
        (b"GET / HTTP/1.1\nHost: t", 400),
        (b"\nGET / HTTP/1.1\r\nHost: t\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: t\rX: y\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: t\r\ntransfer-encoding: chunked\r\nCONTENT-LENGTH: 0\r\n\r\n", 400),
        (b"POST / HTTP/1.0\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: t\r\nX: " + b"y" * 70_000, 431),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ],
)
async def test_what_is_no_request_is_refused_with_a_problem_and_closed(head: bytes, status: int) -> None:
    async with serving(PATIENT) as stand:
        client = await stand.connect()
        answer = await client.ask(head + GET)
        assert (answer.status, answer.problem["status"]) == (status, status)
        assert await client.closed() == b""  # what follows it is not looked at


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_what_is_a_request_is_taken_in_whatever_pieces_it_comes(size: int) -> None:
    body = b"a\nb\n\nc\r\n\r\n"
    post = b"POST /read HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    chunked = b"POST /read HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n0\r\n\r\n"
    sent = post + GET + chunked + GET
    async with serving(PATIENT) as stand:
        client = await stand.connect()
        for start in range(0, len(sent), size):
            client.send(sent[start : start + size])
            await asyncio.sleep(0)
        assert [(await client.answer()).status for _ in range(4)] == [200] * 4


async def test_a_body_that_breaks_off_in_nonsense_is_refused_once() -> None:
    async with serving(PATIENT) as stand:
        client = await stand.connect()
        client.send(b"POST /read HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
        await stand.until(lambda: stand.table.count(Phase.BODY) == 1)
        answer = await client.ask(b"nonsense\r\n")
        assert answer.status == 400
        assert await client.closed() == b""


@dataclass(eq=False)
class Stub:
    """A connection of which only the table knows."""

    address: str | None = "127.0.0.1"
    phase: Phase = Phase.HEAD
    since: float = 0.0
    dropped: bool = False

    def expire(self) -> None: ...

    def drop(self) -> None:
        self.dropped = True


def test_of_a_full_address_an_idle_connection_makes_way_before_an_upload() -> None:
    table = Connections(replace(PATIENT, per_address=2))
    upload, idle, newcomer = Stub(), Stub(), Stub()
    for each, phase in ((upload, Phase.BODY), (idle, Phase.IDLE)):
        assert table.open(each) is None
        table.enter(each, phase)
    assert table.open(newcomer) is None
    assert (upload.dropped, idle.dropped) == (False, True)
