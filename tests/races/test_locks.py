"""Many processes contend for one lock while they are killed and paused: never two holders, and all of it is kept. S-13.

Two tables are written. One is guarded by the fence alone, as a system elsewhere would be; a holder that was paused and
woke up too late is refused there. The other is guarded by ``confirm`` in the transaction of the write.
"""

import asyncio
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.database import Database, DatabaseConfig, Row
from headrace.locks import store
from headrace.locks.model import LockState
from headrace.locks.store import Filter
from tests.conftest import ROOT, MakeDatabase, TestServer
from tests.races.locks_program import KEY

TTL = timedelta(milliseconds=400)

BOOKS = """
CREATE SCHEMA books;
CREATE TABLE books.guard (fence bigint, writes integer);
INSERT INTO books.guard VALUES (0, 0);
CREATE TABLE books.fenced (id bigserial, fence bigint, pid integer, accepted boolean);
CREATE TABLE books.confirmed (id bigserial, fence bigint, pid integer, at timestamptz DEFAULT clock_timestamp());
GRANT USAGE ON SCHEMA books TO headrace_app;
GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA books TO headrace_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA books TO headrace_app;
"""


class Crowd:
    """The contenders, and who harms them."""

    def __init__(self, spawner: "subprocess.Popen[str]") -> None:
        self._spawner = spawner
        self.pids: list[int] = []
        self.killed = self.paused = 0

    def grow(self) -> None:
        assert self._spawner.stdin is not None
        assert self._spawner.stdout is not None
        self._spawner.stdin.write("\n")
        self._spawner.stdin.flush()
        self.pids.append(int(self._spawner.stdout.readline()))

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        self.pids.remove(pid)
        self.killed += 1
        self.grow()

    async def pause(self, pid: int, seconds: float) -> None:
        os.kill(pid, signal.SIGSTOP)
        self.paused += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._spawner.terminate()


@asynccontextmanager
async def contending(database_url: str, processes: int, log: Path) -> AsyncIterator[Crowd]:
    words = [sys.executable, "-m", "tests.races.locks_program", database_url, str(int(TTL.total_seconds() * 1000))]
    pipe = subprocess.PIPE
    with (
        log.open("wb") as errors,
        subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=errors, text=True) as spawner,
    ):
        crowd = Crowd(spawner)
        try:
            for _ in range(processes):
                crowd.grow()
            yield crowd
        finally:
            crowd.end()
    assert log.read_text() == ""


async def holder(db: Database) -> int | None:
    """The process that has the lock now, as far as anyone can tell."""
    async with db.transaction(readonly=True) as tx:
        held = await store.list_locks(tx, Filter(None, KEY, state=LockState.ACTIVE), limit=1)
    return int(held[0].holder_id.rpartition(":")[2]) if held else None


async def harm(crowd: Crowd, db: Database, *, seconds: float, every: float) -> None:
    """Kill and pause, mostly whoever has the lock: the others have little to lose."""
    ends = time.monotonic() + seconds
    pauses: list[asyncio.Task[None]] = []
    for number in range(1_000_000):
        await asyncio.sleep(random.uniform(0.5, 1.5) * every)
        if time.monotonic() > ends:
            break
        victim = await holder(db)
        if victim not in crowd.pids or number % 4 == 3:
            victim = random.choice(crowd.pids)
        assert victim is not None
        if number % 2:
            crowd.kill(victim)
        else:
            pauses.append(asyncio.create_task(crowd.pause(victim, TTL.total_seconds() * random.uniform(1.1, 2))))
    await asyncio.gather(*pauses)


async def storm(
    server: TestServer, template: str, make_database: MakeDatabase, log: Path, *, processes: int, seconds: float
) -> None:
    name = await make_database(template)
    for statement in BOOKS.strip().split(";\n"):
        await server.run(statement, database=name)
    url = server.url(name, role="headrace_app")
    async with await Database.connect(DatabaseConfig(url, role="test")) as db:
        async with contending(url, processes, log) as crowd:
            async with asyncio.timeout(60):
                while not await db.fetch_alone("SELECT FROM books.confirmed"):
                    await asyncio.sleep(0.02)
            await harm(crowd, db, seconds=seconds, every=TTL.total_seconds() * 0.75)
            written = await db.fetch_alone("SELECT max(id) AS last FROM books.confirmed")
            async with asyncio.timeout(60):  # it goes on after the last blow
                while await db.fetch_alone("SELECT max(id) AS last FROM books.confirmed") == written:
                    await asyncio.sleep(0.02)
        assert crowd.killed > 0
        assert crowd.paused > 0
        await check(db, killed=crowd.killed)


async def check(db: Database, *, killed: int) -> None:
    fenced = await db.fetch_alone("SELECT * FROM books.fenced ORDER BY id")
    confirmed = await db.fetch_alone("SELECT * FROM books.confirmed ORDER BY id")
    history = await db.fetch_alone("SELECT * FROM headrace.task_locks WHERE lock_key = $1 ORDER BY fence", KEY)
    accepted = [row for row in fenced if row["accepted"]]
    assert len({row["fence"] for row in confirmed}) > killed

    in_order(accepted)
    in_order(confirmed)
    one_holder_each([*fenced, *confirmed], history)

    # Complete: every number that was given out is there, with its holder and its end.
    last = await db.fetch_alone("SELECT fence FROM headrace.lock_fences WHERE lock_key = $1", KEY)
    assert [row["fence"] for row in history] == list(range(1, last[0]["fence"] + 1))
    assert [row["state"] for row in history[:-1] if row["state"] == "active"] == []
    assert [row for row in history if row["state"] == "expired"]
    # One after the other, by the database's clock.
    for before, after in itertools.pairwise(history):
        assert (before["released_at"] or before["expires_at"]) <= after["acquired_at"], (before, after)
    # What was confirmed happened while it was held.
    times = {row["fence"]: (row["acquired_at"], row["released_at"]) for row in history}
    for row in confirmed:
        began, ended = times[row["fence"]]
        assert began <= row["at"]
        assert ended is None or row["at"] <= ended


def in_order(rows: Sequence[Row]) -> None:
    """Whoever has written with a number, nobody writes with a smaller one afterwards: that would be two holders."""
    fences = [row["fence"] for row in rows]
    assert fences == sorted(fences)


def one_holder_each(rows: Sequence[Row], history: Sequence[Row]) -> None:
    holders = {row["fence"]: int(row["holder_id"].rpartition(":")[2]) for row in history}
    for row in rows:
        assert holders[row["fence"]] == row["pid"]


@pytest.mark.long
async def test_six_processes_one_lock(
    server: TestServer, template: str, make_database: MakeDatabase, tmp_path: Path
) -> None:
    await storm(server, template, make_database, tmp_path / "log", processes=6, seconds=2.5)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_twenty_processes_one_lock_for_half_a_minute(
    server: TestServer, template: str, make_database: MakeDatabase, tmp_path: Path
) -> None:
    await storm(server, template, make_database, tmp_path / "log", processes=20, seconds=30)
