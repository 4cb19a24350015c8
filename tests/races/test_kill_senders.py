"""Relays and senders that are killed, frozen and cut off, a PostgreSQL that dies under them, and a receiver that fails:
nothing is lost. W-12, W-13."""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from headrace import outbox
from headrace.access import Caller
from headrace.database import Database, DatabaseConfig
from headrace.errors import HeadraceError
from headrace.outbox import Event
from tests.attack.webhook_invariants import WEBHOOKS
from tests.conftest import ROOT
from tests.races.engine_stand import Mortal, mortal_server
from tests.races.sender_program import READY
from tests.webhooks import stand
from tests.webhooks.receiver import Receiver, Request, receiving, says

pytestmark = pytest.mark.long

CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name ~ '^headrace (relay|listener)'
"""
WAITING = "SELECT FROM headrace.outbox_events WHERE status IN ('PENDING', 'FAILED') LIMIT 1"


class Flaky:
    """Answers badly three times in ten, and not at all one time in twenty; keeps what it has accepted, in order."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.accepted: dict[str, list[int]] = defaultdict(list)  # by aggregate: numbers when they were first accepted
        self.arrived: Counter[str] = Counter()

    async def answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.arrived[request.headers["webhook-id"]] += 1
        fate = self._chance.random()
        if fate < 0.05:
            await asyncio.sleep(3600)
        if fate < 0.35:
            await says(503)(request, writer)
            return
        said = json.loads(request.body)
        numbers = self.accepted[said["aggregate"]["id"]]
        if said["data"]["number"] not in numbers:
            numbers.append(said["data"]["number"])
        await says(204)(request, writer)


class Herd:
    """Processes of which those that are killed are followed by others. One that ends by itself is a failure."""

    def __init__(self, url: str, count: int, log: Path) -> None:
        self._url = url
        self._log = log
        self._count = count
        self.processes: list[asyncio.subprocess.Process] = []

    async def start(self) -> None:
        while len(self.processes) < self._count:
            with self._log.open("ab") as log:
                self.processes.append(
                    await asyncio.create_subprocess_exec(
                        *(sys.executable, "-m", "tests.races.sender_program", self._url),
                        cwd=ROOT,
                        stderr=log,
                        stdout=log,
                    )
                )

    def check(self) -> None:
        fallen = [process.returncode for process in self.processes if process.returncode is not None]
        assert not fallen, f"ended by themselves with {fallen}:\n{self._log.read_text()[-8000:]}"

    async def kill(self, process: asyncio.subprocess.Process) -> None:
        process.kill()
        await process.wait()
        self.processes.remove(process)
        await self.start()

    async def freeze(self, process: asyncio.subprocess.Process, seconds: float) -> None:
        os.kill(process.pid, signal.SIGSTOP)
        await asyncio.sleep(seconds)
        os.kill(process.pid, signal.SIGCONT)

    async def stop(self) -> None:
        """In good order."""
        # One that has only just replaced another may not listen to signals yet.
        async with asyncio.timeout(120):
            while not all(READY.format(process.pid) in self._log.read_text() for process in self.processes):
                self.check()
                await asyncio.sleep(0.05)
        self.check()
        for process in self.processes:
            process.terminate()
        codes = await asyncio.gather(*(process.wait() for process in self.processes))
        assert not any(codes), self._log.read_text()[-8000:]

    async def end(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


@pytest.fixture(scope="module")
def mortal() -> Iterator[Mortal]:
    with mortal_server() as server:
        yield server


async def harm(herd: Herd, mortal: Mortal, chance: random.Random) -> None:
    """Do one bad thing to one of them, or to what all of them need."""
    victim = chance.choice(herd.processes)
    match chance.choices(["kill", "freeze", "cut", "postgres"], [3, 3, 3, 1])[0]:
        case "kill":
            await herd.kill(victim)
        case "freeze":
            await herd.freeze(victim, chance.choice([0.2, 5.0]))  # also for longer than its lease
        case "cut":
            with suppress(OSError, asyncpg.PostgresError):  # it is just being started
                await mortal.run(CUT)
        case "postgres":
            with suppress(AssertionError, ProcessLookupError):
                mortal.kill(chance.choice([signal.SIGINT, signal.SIGKILL]))


@pytest.mark.parametrize(
    ("events", "seconds"), [(60, 4), pytest.param(2000, 90, marks=pytest.mark.slow)], ids=["short", "long"]
)
@pytest.mark.timeout(900)
async def test_nothing_is_lost_and_order_is_kept(mortal: Mortal, tmp_path: Path, events: int, seconds: float) -> None:
    seed = int(os.environ.get("HEADRACE_TEST_SEED", "7"))
    chance = random.Random(seed)
    loose, ordered = Flaky(seed), Flaky(seed + 1)
    herd = Herd(mortal.url, 3, tmp_path / "log")
    async with (
        await Database.connect(DatabaseConfig(mortal.url)) as db,
        receiving(loose.answer) as first,
        receiving(ordered.answer) as second,
    ):
        ada = await stand.make_user(db, f"ada_{events}")
        await stand.make_endpoint(db, ada, first.url, timeout_ms=1000, max_retries=10)
        await stand.make_endpoint(db, ada, second.url, timeout_ms=1000, max_retries=10, ordered=True)
        try:
            await herd.start()
            writing = asyncio.create_task(_write(db, ada, events, over=seconds))
            ends_at = time.monotonic() + seconds
            while time.monotonic() < ends_at:
                await asyncio.sleep(chance.uniform(0.3, 1.2))
                herd.check()
                await harm(herd, mortal, chance)
            ids = await writing
            await stand.until(lambda: _at_rest(db), limit=600 if events > 100 else 120)
            await herd.stop()
        finally:
            await herd.end()
        for receiver, flaky in ((first, loose), (second, ordered)):
            await _check(db, receiver, flaky, ids)
    for aggregate, numbers in ordered.accepted.items():
        assert numbers == sorted(numbers), f"{aggregate}, seed {seed}"


async def _write(db: Database, ada: Caller, count: int, *, over: float) -> list[str]:
    ids: list[str] = []
    for number in range(count):
        event = Event("task.progressed", "task", f"tsk_{number % 7}", {"number": number}, user_id=ada.user_id)
        await _append_surely(db, event)
        ids.append(event.id)
        await asyncio.sleep(over / count)
    return ids


async def _append_surely(db: Database, event: Event) -> None:
    """As long as it takes PostgreSQL to come back. One whose answer was lost may be there."""
    async with asyncio.timeout(60):
        while True:
            try:
                async with db.transaction() as tx:
                    return await outbox.append(tx, [event])
            except asyncpg.UniqueViolationError:
                return None
            except HeadraceError:
                await asyncio.sleep(0.05)


async def _at_rest(db: Database) -> bool:
    try:
        return await stand.is_empty(db) and not await db.fetch_alone(WAITING)
    except HeadraceError:
        return False


async def _check(db: Database, receiver: Receiver, flaky: Flaky, ids: list[str]) -> None:
    rows = await db.fetch_alone(
        "SELECT attempt.event_id, count(*) AS attempts, array_agg(attempt.status ORDER BY attempt.attempt) AS statuses "
        "FROM headrace.webhook_deliveries AS attempt "
        "JOIN headrace.webhook_endpoints AS endpoint ON endpoint.id = attempt.endpoint_id "
        "WHERE endpoint.url = $1 GROUP BY attempt.event_id",
        receiver.url,
    )
    known = {row["event_id"]: row for row in rows}
    assert set(known) == set(ids)
    for event_id in ids:
        row = known[event_id]
        assert flaky.arrived[event_id] >= 1
        assert flaky.arrived[event_id] <= row["attempts"], "an attempt is missing from the record"
        assert row["statuses"][-1] == "SUCCESS"
        assert set(row["statuses"][:-1]) <= {"DEAD"}
    for invariant in WEBHOOKS:
        assert await db.fetch_alone(invariant.sql) == [], invariant.holds
