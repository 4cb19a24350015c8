"""Webhooks: deliveries a second beside the raw limit, latency from commit to receiver, and what dead endpoints cost.

The receiver is a process of its own that answers at once; each endpoint has an address of its own (127.0.1.1 …), so a
connection of its own. The raw limit is the same HTTP client posting the same signed bodies, with no database.
"""

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized

import orjson
import uvloop

from benchmarks.scratch import scratch_server
from headrace import ids, outbox
from headrace.access import Caller, Role
from headrace.audit import Who
from headrace.database import Database, DatabaseConfig
from headrace.outbox import Event
from headrace.outbox.loop import RelayLoop
from headrace.outbox.relay import Relay, RelayConfig
from headrace.webhooks import service
from headrace.webhooks.consumer import WebhookConsumer
from headrace.webhooks.http.addresses import AddressPolicy
from headrace.webhooks.http.client import HttpClient, HttpConfig
from headrace.webhooks.http.targets import parse_target
from headrace.webhooks.model import EndpointConfig, EndpointSpec
from headrace.webhooks.secrets import keyring_of, make_secret
from headrace.webhooks.sending import Sender
from headrace.webhooks.service import Webhooks
from headrace.webhooks.signing import Signer

LOCAL = AddressPolicy(local=True)
HOOKS = Webhooks(keyring_of(b"k" * 32), LOCAL, EndpointConfig(most=1000))
OK = b"HTTP/1.1 204 No Content\r\n\r\n"
MANY = 200
DEAD = 20
RAW_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Sizes:
    one: int  # events to one endpoint
    many: int  # events to each of many
    latency: int


QUICK, FULL = Sizes(2_000, 20, 100), Sizes(20_000, 100, 1_000)


# -- the receiver


class _Answering(asyncio.Protocol):
    """Counts requests by their ends of heads; the bodies that we send hold none."""

    count: "Synchronized[int]"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._rest = b""
        self._wanted = 0

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while True:
            head, end, body = self._rest.partition(b"\r\n\r\n")
            if not end:
                return
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            if len(body) < length:
                return
            self._rest = body[length:]
            if b"/hang" in head[:100]:
                continue
            with self.count.get_lock():
                self.count.value += 1
            self._transport.write(OK)  # type: ignore[attr-defined]


def _receive(told: Connection, count: "Synchronized[int]") -> None:
    async def serve() -> None:
        _Answering.count = count
        server = await asyncio.get_running_loop().create_server(_Answering, "0.0.0.0", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())


class Receiver:
    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._count: Synchronized[int] = context.Value("q", 0)
        self._process = context.Process(target=_receive, args=(theirs, self._count), daemon=True)
        self._process.start()
        self.port: int = ours.recv()

    @property
    def received(self) -> int:
        return self._count.value

    def url(self, number: int, path: str = "") -> str:
        return f"http://127.0.{1 + number // 250}.{1 + number % 250}:{self.port}/{path}"

    async def until(self, count: int) -> None:
        async with asyncio.timeout(600):
            while self.received < count:
                await asyncio.sleep(0.002)

    def close(self) -> None:
        self._process.kill()
        self._process.join()


# -- the raw limit


async def raw_rate(receiver: Receiver, hosts: int, requests: int) -> float:
    """The same client, the same bodies, nothing else."""
    http = HttpClient(HttpConfig(policy=LOCAL))
    targets = [parse_target(receiver.url(number), LOCAL) for number in range(hosts)]
    signer = Signer([make_secret()])
    body = orjson.dumps(_payload(0)).decode()
    numbers = iter(range(requests))
    timeout = timedelta(seconds=30)

    async def post() -> None:
        for number in numbers:
            headers = signer.headers(ids.new("evt"), body)
            target = targets[number % hosts]
            reply = await http.post(target, body.encode(), headers, timeout=timeout, endpoint_id=str(number % hosts))
            assert reply.is_success, reply

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(16 if hosts == 1 else RAW_AT_ONCE):
            group.create_task(post())
    rate = requests / (time.perf_counter() - started)
    await http.close()
    return rate


# -- ours


def _payload(number: int) -> dict[str, object]:
    return {"task_id": ids.new("tsk"), "type": "bench", "status": "SUCCEEDED", "number": number, "note": "x" * 200}


async def _user(db: Database) -> Caller:
    user_id = ids.new("u")
    await db.fetch_alone("INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, $1, '!')", user_id)
    return Caller(Who.system(), user_id, Role.USER)


async def _endpoints(db: Database, caller: Caller, urls: Sequence[str]) -> None:
    async with db.transaction() as tx:
        for url in urls:
            await service.create_endpoint(tx, HOOKS, caller, EndpointSpec("bench", url, ("*",), timeout_ms=5000))


async def _write(db: Database, caller: Caller, count: int) -> None:
    for start in range(0, count, 1000):
        batch = [
            Event("task.succeeded", "task", ids.new("tsk"), _payload(number), user_id=caller.user_id)
            for number in range(start, min(start + 1000, count))
        ]
        async with db.transaction() as tx:
            await outbox.append(tx, batch)


@asynccontextmanager
async def relaying(db: Database) -> AsyncIterator[None]:
    """One relay with its sender, as `headrace relay` has them."""
    http = HttpClient(HttpConfig(policy=LOCAL))
    consumers = [WebhookConsumer()]
    relay = RelayLoop(db, Relay(db, consumers, RelayConfig(batch=200)), consumers, [Sender(db, http, HOOKS.keyring)])
    stop = asyncio.Event()
    running = asyncio.create_task(relay.run(stop))
    try:
        yield
    finally:
        stop.set()
        await running
        await http.close()


async def drain_rate(db: Database, receiver: Receiver, *, endpoints: int, events: int, dead: int = 0) -> float:
    """Deliveries a second to healthy endpoints: from the first claim of the relay to the last request that arrives."""
    caller = await _user(db)
    healthy = endpoints - dead
    urls = [receiver.url(number) for number in range(healthy)]
    urls += [receiver.url(number, "hang") for number in range(healthy, endpoints)]
    await _endpoints(db, caller, urls)
    await _write(db, caller, events)
    wanted = receiver.received + healthy * events
    started = time.perf_counter()
    async with relaying(db):
        await receiver.until(wanted)
        rate = healthy * events / (time.perf_counter() - started)
    await db.fetch_alone("UPDATE headrace.webhook_endpoints SET status = 'DISABLED' WHERE user_id = $1", caller.user_id)
    await db.fetch_alone("DELETE FROM headrace.webhook_queue")
    return rate


async def latencies(db: Database, count: int) -> list[float]:
    """Milliseconds from the commit of an event to its arrival, one at a time, with everything idle."""
    arrived = asyncio.Event()

    class Noting(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self._transport = transport

        def data_received(self, data: bytes) -> None:  # noqa: ARG002
            arrived.set()
            self._transport.write(OK)  # type: ignore[attr-defined]

    server = await asyncio.get_running_loop().create_server(Noting, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    caller = await _user(db)
    await _endpoints(db, caller, [f"http://127.0.0.1:{port}/"])
    found = []
    async with relaying(db):
        await asyncio.sleep(1)
        for number in range(count + 10):
            arrived.clear()
            event = Event("task.succeeded", "task", ids.new("tsk"), _payload(number), user_id=caller.user_id)
            async with db.transaction() as tx:
                await outbox.append(tx, [event])
                started = time.perf_counter()
            async with asyncio.timeout(30):
                await arrived.wait()
            if number >= 10:  # connections and plans are there
                found.append((time.perf_counter() - started) * 1000)
            await asyncio.sleep(0.03)
    server.close()
    return found


async def measure(quick: bool) -> dict[str, float]:
    """Every figure of deliveries, on a database of its own."""
    sizes = QUICK if quick else FULL
    with ExitStack() as stack:
        url = await asyncio.to_thread(stack.enter_context, scratch_server())
        receiver = Receiver()
        stack.callback(receiver.close)
        async with await Database.connect(DatabaseConfig(url, role="bench", pool_max=10)) as db:
            return await _measure(db, receiver, sizes)


async def _measure(db: Database, receiver: Receiver, sizes: Sizes) -> dict[str, float]:
    raw_one = await raw_rate(receiver, 1, sizes.one)
    one = await drain_rate(db, receiver, endpoints=1, events=sizes.one)
    raw_many = await raw_rate(receiver, MANY, sizes.many * MANY)
    many = await drain_rate(db, receiver, endpoints=MANY, events=sizes.many)
    healthy = await drain_rate(db, receiver, endpoints=MANY - DEAD, events=sizes.many)
    beside_dead = await drain_rate(db, receiver, endpoints=MANY, events=sizes.many, dead=DEAD)
    waits = sorted(await latencies(db, sizes.latency))
    return {
        "deliveries_1": one,
        "deliveries_1_raw_limit": raw_one,
        "deliveries_200": many,
        "deliveries_200_raw_limit": raw_many,
        "deliveries_raw": min(one / raw_one, many / raw_many),
        "healthy_ratio": beside_dead / healthy,
        "p50_ms": statistics.median(waits),
        "p99_ms": waits[int(len(waits) * 0.99)],
    }


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller size, in under a minute")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    figures = uvloop.run(measure(chosen.quick))
    if chosen.json:
        print(orjson.dumps(figures).decode())
        return
    for name, value in figures.items():
        print(f"{name:28} {value:12,.2f}")


if __name__ == "__main__":
    main()
