"""Must be seen, with the real program: one key makes one thing whatever is killed, and guessing passwords is slow."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headrace.database import Database
from tests.e2e.program import CHEAP, SECRET_KEY, Program, run_program

pytestmark = pytest.mark.long

NAME = "ada"
# The limit on requests is not what is tried here.
UNLIMITED = {"HEADRACE_API_RATE_LIMIT": "1000000", "HEADRACE_API_RATE_BURST": "1000000"}
# Pauses short enough to wait for, and long enough that two hundred attempts take less than a few of them.
THROTTLE = {
    "HEADRACE_LOGIN_FREE_FAILURES": "5",
    "HEADRACE_LOGIN_BLOCK_FIRST": "2s",
    "HEADRACE_LOGIN_BLOCK_MAX": "3s",
}

Start = Callable[[], Program]


@pytest.fixture
def settings(database_url: str) -> dict[str, str]:
    return {**CHEAP, **SECRET_KEY, **UNLIMITED, **THROTTLE, "HEADRACE_DATABASE_URL": database_url}


@pytest.fixture
def start_api(settings: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Starts `headrace api`, and ends those that are left."""
    started: list[Program] = []

    def start() -> Program:
        started.append(Program("api", folder=tmp_path, settings=settings))
        return started[-1]

    yield start
    for program in started:
        program.close()


@pytest.fixture
def password(settings: dict[str, str], tmp_path: Path) -> str:
    done = run_program("admin", "create", NAME, "--json", folder=tmp_path, settings=settings)
    assert done.code == 0, done.err
    return str(json.loads(done.out)["password"])


@asynccontextmanager
async def client_of(api: Program, token: str | None = None) -> AsyncIterator[httpx2.AsyncClient]:
    """A client without a limit of its own on what it sends at once."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    limits = httpx2.Limits(max_connections=200)
    await asyncio.to_thread(api.until_ready)
    async with httpx2.AsyncClient(base_url=api.url(), headers=headers, timeout=60, limits=limits) as client:
        yield client


async def log_in(client: httpx2.AsyncClient, password: str) -> httpx2.Response:
    return await client.post("/v1/auth/login", json={"username": NAME, "password": password})


async def session_of(api: Program, password: str) -> str:
    async with client_of(api) as client:
        answer = await log_in(client, password)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["token"])


async def make_key(client: httpx2.AsyncClient, name: str) -> httpx2.Response:
    """One request that creates something; its name is also its Idempotency-Key."""
    body = {"name": name, "scopes": ["tasks:read"]}
    return await client.post("/v1/api-keys", json=body, headers={"Idempotency-Key": name})


async def until_answered(client: httpx2.AsyncClient, name: str) -> httpx2.Response:
    """Do as Retry-After says while the first request is still at work, in a process that is gone perhaps."""
    deadline = time.monotonic() + 30
    while (answer := await make_key(client, name)).status_code == 409 and time.monotonic() < deadline:
        assert answer.json()["code"] == "idempotency_in_progress"
        await asyncio.sleep(0.05)
    return answer


async def made(db: Database) -> dict[str, int]:
    """How many keys there are of each name, revoked or not."""
    async with db.transaction() as tx:
        rows = await tx.fetch("SELECT name, count(*) AS number FROM headrace.api_keys GROUP BY name")
    return {row["name"]: row["number"] for row in rows}


async def created_events(db: Database) -> int:
    async with db.transaction() as tx:
        return int(
            await tx.fetchval(
                "SELECT count(*) FROM headrace.audit_events WHERE action = 'created' AND resource_type = 'apiKey'"
            )
        )


@pytest.mark.slow
async def test_fifty_requests_with_one_key_make_one_thing(
    start_api: Start, password: str, db: Database
) -> None:  # D-06
    api = start_api()
    token = await session_of(api, password)
    async with client_of(api, token) as client:
        answers = await asyncio.gather(*(make_key(client, "once") for _ in range(50)))
        answers.append(await until_answered(client, "once"))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"idempotency_in_progress"}
    bodies = [answer.json() for answer in answers if answer.status_code == 201]
    assert all(body == bodies[0] for body in bodies)
    firsts = [a for a in answers if a.status_code == 201 and "Idempotency-Replayed" not in a.headers]
    assert len(firsts) == 1
    assert await made(db) == {"once": 1}
    assert await created_events(db) == 1


async def _burst(client: httpx2.AsyncClient, names: Sequence[str], kill: Callable[[int], None]) -> list[Any]:
    """Send ten requests for each name at once, and call ``kill`` with how many were answered whenever one is."""
    answered = 0

    async def one(name: str) -> httpx2.Response:
        nonlocal answered
        answer = await make_key(client, name)
        answered += 1
        kill(answered)
        return answer

    kill(0)
    requests = [one(name) for _ in range(10) for name in names]
    return await asyncio.gather(*requests, return_exceptions=True)


async def _kill_in_a_burst(start_api: Start, token: str, names: Sequence[str], *, after: int) -> Counter[str]:
    """Kill the API once so many are answered, start another, send all again; gives what became of the burst."""
    doomed = start_api()

    def kill(answered: int) -> None:
        if answered == after:
            doomed.process.kill()

    async with client_of(doomed, token) as client:
        first = await _burst(client, names, kill)
    doomed.kill()
    for broken in first:
        assert isinstance(broken, httpx2.Response | httpx2.TransportError), broken
    answers = [answer for answer in first if isinstance(answer, httpx2.Response)]
    assert {answer.status_code for answer in answers} <= {201, 409}

    survivor = start_api()
    async with client_of(survivor, token) as client:
        finals = {name: await until_answered(client, name) for name in names}
    survivor.kill()  # ports are not without end
    assert {answer.status_code for answer in finals.values()} == {201}
    for answer in answers:  # what a client was told before the kill still holds after it
        if answer.status_code == 201:
            assert finals[answer.json()["name"]].json() == answer.json()
    replayed = sum("Idempotency-Replayed" in answer.headers for answer in finals.values())
    return Counter(broken=len(first) - len(answers), done_before=replayed, done_after=len(names) - replayed)


@pytest.mark.parametrize("rounds", [(1,), pytest.param((0, 1, 2, 3, 5, 8, 13, 21, 34) * 2, marks=pytest.mark.slow)])
@pytest.mark.timeout(600)
async def test_a_killed_api_has_made_each_thing_once_or_not_at_all(
    start_api: Start, password: str, db: Database, rounds: tuple[int, ...]
) -> None:  # D-06
    token = await session_of(start_api(), password)
    seen: Counter[str] = Counter()
    for number, after in enumerate(rounds):
        names = [f"round-{number}-{letter}" for letter in "abcdefghij"]
        seen += await _kill_in_a_burst(start_api, token, names, after=after)
        assert {name: count for name, count in (await made(db)).items() if name in names} == dict.fromkeys(names, 1)
    assert seen["broken"] > 0, "the kill came too late to be one"
    assert await created_events(db) == 10 * len(rounds)


async def test_two_hundred_wrong_passwords_are_slowed_down_and_on_record(
    start_api: Start, password: str, db: Database
) -> None:
    api = start_api()
    answers: list[httpx2.Response] = []
    async with client_of(api) as client:
        began = time.monotonic()
        for _ in range(10):  # as fast as twenty guessers at a time can
            answers += await asyncio.gather(*(log_in(client, "a guess at it") for _ in range(20)))
        seconds = time.monotonic() - began
        told = Counter(answer.status_code for answer in answers)
        assert told.keys() == {401, 429}, told
        # Five are free; then each pause lets one through, and the pauses are no shorter than two seconds.
        assert told[401] <= 5 + 1 + seconds / 2, f"{told} in {seconds:.1f} s"
        for answer in answers:
            if answer.status_code == 429:
                assert answer.json()["code"] == "login_paused"
                assert 1 <= int(answer.headers["Retry-After"]) <= 3

        # Not even the right one while it is paused, or a guesser would know it from the answer.
        paused = await log_in(client, "a guess at it")
        if paused.status_code == 401:  # the pause had just ended, and this began the next
            paused = await log_in(client, "a guess at it")
        assert paused.status_code == 429
        refused = await log_in(client, password)
        assert refused.status_code == 429
        await asyncio.sleep(int(refused.headers["Retry-After"]))
        entered = await log_in(client, password)
        assert entered.status_code == 200, entered.text

    async with db.transaction() as tx:
        events = await tx.fetch("SELECT data, client_ip FROM headrace.audit_events WHERE action = 'login' ORDER BY seq")
    outcomes = [event["data"]["outcome"] for event in events]
    failures = [event["data"] for event in events if event["data"]["outcome"] == "failure"]
    assert outcomes[-1] == "success"
    assert outcomes.count("success") == 1
    assert told[401] <= len(failures) <= told[401] + 1, "each password that was checked is on record"
    assert {data["reason"] for data in failures} == {"wrong_password"}
    assert any("paused_seconds" in data for data in failures), "the record says that a pause began"
    assert {event["client_ip"] for event in events} == {"127.0.0.1"}
    assert "a guess at it" not in str([dict(event) for event in events])
    assert "a guess at it" not in api.err
