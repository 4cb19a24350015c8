"""D-06: one key, one effect, also when the process that was doing it is killed, or hangs, at the worst moment."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from headrace.database import Database
from tests.conftest import TestServer
from tests.edge import stand

ROOT = Path(__file__).parent.parent.parent
HEADERS = {**stand.AUTHORIZED, "Idempotency-Key": "order-4711"}


class Api:
    """A running API process."""

    def __init__(self, process: "asyncio.subprocess.Process", port: int) -> None:
        self.process = process
        self._client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=HEADERS, timeout=60)

    async def order(self) -> httpx2.Response:
        return await self._client.post("/v1/orders", json={"name": "order"})

    async def says(self, word: str) -> None:
        assert self.process.stdout is not None
        assert (await asyncio.wait_for(self.process.stdout.readline(), 60)).decode().strip() == word

    async def close(self) -> None:
        await self._client.aclose()


StartApi = Callable[..., Awaitable[Api]]


@pytest.fixture
async def start_api(database_url: str) -> AsyncIterator[StartApi]:
    started: list[Api] = []

    async def start(*, pause: float = 0.0) -> Api:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.races.api_process",
            database_url,
            str(pause),
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        started.append(Api(process, int(line)))
        return started[-1]

    yield start
    for api in started:
        await api.close()
        if api.process.returncode is None:
            api.process.kill()
        await api.process.wait()


@asynccontextmanager
async def failing(request: "asyncio.Task[httpx2.Response]") -> AsyncIterator[None]:
    """The client of a killed process sees its connection break."""
    yield
    with pytest.raises(httpx2.TransportError):
        await request


async def until_answered(api: Api) -> httpx2.Response:
    """Do as Retry-After says until the first request is out of the way."""
    deadline = time.monotonic() + 20
    while True:
        answer = await api.order()
        if answer.status_code != 409 or time.monotonic() > deadline:
            return answer
        assert answer.json()["code"] == "idempotency_in_progress"
        await asyncio.sleep(0.05)


async def test_a_process_killed_in_the_middle_leaves_nothing_behind(start_api: StartApi, db: Database) -> None:
    doomed, other = await asyncio.gather(start_api(pause=60), start_api())
    first = asyncio.create_task(doomed.order())
    await doomed.says("inside")
    assert (await other.order()).json()["code"] == "idempotency_in_progress"

    async with failing(first):
        doomed.process.kill()
    answer = await until_answered(other)
    assert answer.status_code == 201
    assert "Idempotency-Replayed" not in answer.headers  # the first never happened
    assert await stand.things(db, "order") == 1

    again = await other.order()
    assert again.json() == answer.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert await stand.things(db, "order") == 1


SLOW_COMMIT = """
CREATE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON headrace.idempotency_keys
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.dawdle();
"""


async def test_a_process_killed_while_it_commits_has_done_it_once_or_not_at_all(
    start_api: StartApi, db: Database, database_url: str, server: TestServer
) -> None:
    """The server may finish a commit whose client is gone: then the next one must find it, and not do it again."""
    database = urlsplit(database_url).path.lstrip("/")
    for statement in SLOW_COMMIT.strip().split(";\n"):
        await server.run(statement, database=database)
    doomed, other = await asyncio.gather(start_api(), start_api())
    first = asyncio.create_task(doomed.order())
    await doomed.says("inside")
    await _until_committing(server, database)

    async with failing(first):
        doomed.process.kill()
    answer = await until_answered(other)
    assert answer.status_code == 201
    assert await stand.things(db, "order") == 1
    assert (await other.order()).json() == answer.json()


async def _until_committing(server: TestServer, database: str) -> None:
    # The answer is kept in one message with the COMMIT.
    sleeping = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND wait_event = 'PgSleep' AND query LIKE '%keep_answer%'"
    )
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if await server.run(sleeping, database):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("nobody commits")


async def test_a_process_that_hangs_keeps_its_key_until_it_goes_on(start_api: StartApi, db: Database) -> None:
    hanging, other = await asyncio.gather(start_api(pause=0.3), start_api())
    first = asyncio.create_task(hanging.order())
    await hanging.says("inside")
    hanging.process.send_signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(0.5)
        assert (await other.order()).json()["code"] == "idempotency_in_progress"
    finally:
        hanging.process.send_signal(signal.SIGCONT)
    done = await first
    assert (await until_answered(other)).json() == done.json()
    assert await stand.things(db, "order") == 1


@pytest.mark.long
async def test_fifty_at_two_processes_do_it_once(start_api: StartApi, db: Database) -> None:
    one, other = await asyncio.gather(start_api(pause=0.05), start_api(pause=0.05))
    answers = await asyncio.gather(*((one, other)[number % 2].order() for number in range(50)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    made = {answer.json()["id"] for answer in answers if answer.status_code == 201}
    made.add((await until_answered(one)).json()["id"])
    assert len(made) == 1
    assert await stand.things(db, "order") == 1
