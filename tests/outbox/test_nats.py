"""Events reach a real NATS server: each once in the stream, in order, through its death and the sender's. W-12."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import nats
import orjson
import pytest

from headrace.database import Database
from headrace.outbox.loop import LoopConfig, RelayLoop
from headrace.outbox.nats import store
from headrace.outbox.nats.config import NatsConfig
from headrace.outbox.nats.consumer import NatsConsumer
from headrace.outbox.nats.sending import NatsSender
from headrace.outbox.relay import Relay
from tests.outbox.recording import write


class Broker:
    """A nats-server on a port of its own choice that it keeps; ``kill`` and ``start`` as often as one likes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._port = -1

    def start(self) -> None:
        binary = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or "nats-server"
        ports = self._folder / "ports"
        ports.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [
                binary, "-a", "127.0.0.1", "-p", str(self._port), "-js", "-sd", str(self._folder / "js"),
                "--ports_file_dir", str(ports),
            ],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    async def wait(self) -> None:
        async with asyncio.timeout(60):
            while True:
                for file in (self._folder / "ports").glob("*.ports"):
                    if (text := file.read_bytes()).endswith(b"}"):
                        self._port = int(orjson.loads(text)["nats"][0].rpartition(":")[2])
                try:
                    client = await nats.connect(self.url, allow_reconnect=False, connect_timeout=1)
                except Exception:  # noqa: BLE001 - it is not there yet
                    await asyncio.sleep(0.05)
                else:
                    return await client.close()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    server = Broker(tmp_path)
    server.start()
    yield server
    server.kill()


@asynccontextmanager
async def publishing(db: Database, url: str, **config: Any) -> AsyncIterator[NatsSender]:
    chosen = NatsConfig(url, poll_every=timedelta(milliseconds=50), **config)
    consumer, sender, stop = NatsConsumer(chosen), NatsSender(db, chosen), asyncio.Event()
    loop = RelayLoop(db, Relay(db, [consumer]), [consumer], [sender], LoopConfig(poll_every=timedelta(milliseconds=50)))
    running = asyncio.create_task(loop.run(stop))
    try:
        yield sender
    finally:
        stop.set()
        async with asyncio.timeout(60):
            await running


async def messages(url: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Subject, id and body of everything in the stream."""
    client = await nats.connect(url)
    try:
        broker = client.jetstream()
        count = (await broker.stream_info("HEADRACE")).state.messages
        found = [await broker.get_msg("HEADRACE", seq) for seq in range(1, count + 1)]
    finally:
        await client.close()
    return [(str(each.subject), (each.headers or {})["Nats-Msg-Id"], orjson.loads(each.data or b"")) for each in found]


async def until(db: Database, fits: Callable[[int], bool]) -> None:
    """Until so many messages wait for the broker, and no event for the relay."""
    left = """
    SELECT (SELECT count(*) FROM headrace.broker_messages)
         + (SELECT count(*) FROM headrace.outbox_events WHERE status <> 'PUBLISHED')
    """
    async with asyncio.timeout(60):
        while not fits((await db.fetch_alone(left))[0][0]):
            await asyncio.sleep(0.02)


async def test_events_are_published_by_type_with_their_id_and_in_order(db: Database, broker: Broker) -> None:
    await broker.wait()
    async with publishing(db, broker.url, events=("thing.*",)) as sender:
        await write(db, "x", type="other.moved")
        events = await write(db, *(f"t{n % 3}" for n in range(30)))
        await until(db, lambda left: left == 0)
    found = await messages(broker.url)
    assert {subject for subject, _, _ in found} == {"headrace.thing.moved"}
    assert sorted(name for _, name, _ in found) == sorted(event.id for event in events)
    for aggregate in ("t0", "t1", "t2"):
        ours = [body["id"] for _, _, body in found if body["aggregate"] == {"type": "thing", "id": aggregate}]
        assert ours == [event.id for event in events if event.aggregate_id == aggregate]
    assert sender.published == 30


async def test_a_broker_that_is_killed_and_comes_back_has_everything_once(db: Database, broker: Broker) -> None:
    await broker.wait()
    async with publishing(db, broker.url, lease=timedelta(seconds=1), ack_within=timedelta(seconds=1)):
        events = await write(db, *(f"t{n % 5}" for n in range(50)))
        await until(db, lambda left: left < 100)
        broker.kill()
        events += await write(db, *(f"t{n % 5}" for n in range(50)))
        await asyncio.sleep(0.3)
        broker.start()
        await broker.wait()
        await until(db, lambda left: left == 0)
    assert sorted(name for _, name, _ in await messages(broker.url)) == sorted(event.id for event in events)


async def test_a_sender_that_died_after_publishing_leaves_no_second_message(db: Database, broker: Broker) -> None:
    await broker.wait()
    async with publishing(db, broker.url):
        [event] = await write(db, "a")
        await until(db, lambda left: left == 0)
    rows = await db.fetch_alone("SELECT id FROM headrace.outbox_events")
    async with db.transaction() as tx:  # as if its confirmation had been lost
        await store.add(tx, [row["id"] for row in rows])
    async with publishing(db, broker.url):
        await until(db, lambda left: left == 0)
    assert [name for _, name, _ in await messages(broker.url)] == [event.id]


async def test_one_sender_at_a_time_and_a_late_one_changes_nothing(db: Database) -> None:
    async with db.transaction() as tx:
        from headrace import outbox
        from headrace.outbox import Event

        await outbox.append(tx, [Event("thing.moved", "thing", "a", {})])
        await store.add(tx, [row["id"] for row in await tx.fetch("SELECT id FROM headrace.outbox_events")])
    first = await store.claim(db, limit=10, lease=timedelta(0))
    second = await store.claim(db, limit=10, lease=timedelta(minutes=1))
    assert len(first.messages) == len(second.messages) == 1
    assert await store.claim(db, limit=10, lease=timedelta(minutes=1)) == store.Batch()
    await store.settle(db, first, confirmed=[first.messages[0].id], refused=[], max_tries=1)
    assert len(await db.fetch_alone("SELECT FROM headrace.broker_messages")) == 1
    await store.settle(db, second, confirmed=[], refused=[second.messages[0].id], max_tries=1)
    assert await store.claim(db, limit=10, lease=timedelta(minutes=1)) == store.Batch()  # given up
