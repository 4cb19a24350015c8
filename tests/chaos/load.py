"""Those who use the site while it is harmed, and what they were promised.

A client does as clients should: it sends again, with the same Idempotency-Key, until it has an answer. ``Promises``
notes what was answered; at the end each promise must have been kept, once.
"""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import asyncpg
import httpx2

from headrace import ids
from headrace.database import Database, DatabaseConfig
from headrace.errors import Unavailable
from tests.chaos.world import World
from tests.races.engine_stand import submit

# What a site in trouble may answer; anything else that is no success is an offence, a 500 first of all.
TROUBLE = {429, 502, 503, 504}
REFUSALS = {404, 409, 412}
OF_QUOTA = {402}
REQUEST_ID = re.compile(r'"request_id":"[^"]*",?')
# What a program with a connection of its own sees of it.
AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


@dataclass
class Promises:
    """What callers were told, and what they were told that cannot be."""

    tasks: dict[str, str] = field(default_factory=dict)  # by the key under which it was asked for
    counted: int = 0
    files: dict[str, str] = field(default_factory=dict)  # sha256 by id, of those that nobody deleted
    removals: dict[str, str] = field(default_factory=dict)  # the medium, by task
    orders: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    offences: Counter[str] = field(default_factory=Counter)

    def keep(self, key: str, task_id: str) -> None:
        if self.tasks.setdefault(key, task_id) != task_id:
            self.offences[f"one key, two tasks: {key} gave {self.tasks[key]} and {task_id}"] += 1


class Target(Protocol):
    """What load is sent to: the site that chaos harms, or the one that the soak watches."""

    def apis(self) -> Mapping[str, object]: ...

    def spring(self, step: str, url: str) -> None: ...

    def databases(self) -> Sequence[str]: ...


class Client:
    """One user of the API, who takes whichever process answers."""

    def __init__(self, site: Target, promises: Promises, choice: random.Random, token: str) -> None:
        self._site = site
        self._promises = promises
        self._choice = choice
        self._http = httpx2.AsyncClient(timeout=20, headers={"Authorization": f"Bearer {token}"})

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        step: str = "",
        refusals: AbstractSet[int] = frozenset(),
    ) -> httpx2.Response | None:
        """One attempt; None for no answer, or one that says that the site is in trouble."""
        urls = list(self._site.apis())
        if not urls:
            await asyncio.sleep(0.3)
            return None
        url = self._choice.choice(urls)
        headers = {"Idempotency-Key": key} if key else {}
        sent: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
        self._site.spring(step, url)
        try:
            answer = await self._http.request(method, url + path, headers=headers, **sent)
        except httpx2.TransportError:
            return None
        if answer.status_code in TROUBLE or (answer.status_code == 409 and "in_progress" in answer.text):
            return None
        if not answer.is_success and answer.status_code not in REFUSALS | refusals:
            told = REQUEST_ID.sub("", answer.text)[:300]
            self._promises.offences[f"{method} {path.split('?')[0][:12]}… answered {answer.status_code}: {told}"] += 1
        return answer

    async def insist(self, method: str, path: str, body: Any = None, **how: Any) -> httpx2.Response:
        """Send it until it is answered."""
        while (answer := await self.send(method, path, body, **how)) is None:
            await asyncio.sleep(0.2)
        return answer


@dataclass
class Load:
    site: Target
    promises: Promises
    world: World
    calm: asyncio.Event  # set when it is time to come to an end

    def client(self, choice: random.Random, token: str | None = None) -> Client:
        return Client(self.site, self.promises, choice, token or self.world.token)

    def known(self, choice: random.Random) -> str | None:
        tasks = self.promises.tasks
        return choice.choice(list(tasks.values())) if tasks else None


Use = Callable[[Load, random.Random], Awaitable[None]]
USES: dict[str, Use] = {}


def use(name: str) -> Callable[[Use], Use]:
    """One who does this over and over."""

    def note(act: Use) -> Use:
        USES[name] = act
        return act

    return note


async def keep_using(load: Load, name: str, number: int, seed: int) -> None:
    choice = random.Random(f"{seed} {number} {name}")
    while not load.calm.is_set():
        await USES[name](load, choice)
        load.promises.done[name] += 1
        await asyncio.sleep(choice.uniform(0.05, 0.4))


TYPES = ["quick", "quick", "steps", "flaky", "isolated", "slow", "slow"]


@use("submit over REST")
async def submit_one(load: Load, choice: random.Random) -> None:
    key, kind = ids.new("req"), choice.choice([*TYPES, "once"])
    body: dict[str, Any] = {"type": kind, "payload": {"number": choice.randrange(1000)}}
    if choice.random() < 0.3:
        body["run_at"] = (datetime.now(UTC) + timedelta(seconds=choice.uniform(1, 8))).isoformat()
    clients = [load.client(choice) for _ in range(choice.choice([1, 1, 1, 3]))]  # some send the same at once
    for answer in await asyncio.gather(*(each.insist("POST", "/v1/tasks", body, key=key) for each in clients)):
        if answer.status_code == 201:
            load.promises.keep(f"{kind} {key}", answer.json()["id"])


@use("submit a batch over REST")
async def submit_batch(load: Load, choice: random.Random) -> None:
    key = ids.new("req")
    tasks = [{"type": choice.choice(TYPES)} for _ in range(choice.randrange(2, 30))]
    answer = await load.client(choice).insist("POST", "/v1/tasks/batch", {"tasks": tasks}, key=key)
    if answer.status_code == 201:
        for number, task_id in enumerate(answer.json()["ids"]):
            load.promises.keep(f"batch {key} {number}", task_id)


@use("submit in SQL")
async def order(load: Load, choice: random.Random) -> None:
    """A row of the program's own and its task are one commit; some change their mind."""
    try:
        connection = await asyncpg.connect(choice.choice(load.site.databases()), timeout=5)
    except AWAY:
        return
    try:
        async with connection.transaction():
            task_id = await connection.fetchval("SELECT headrace.submit('ordered')")
            await connection.execute("INSERT INTO books.orders VALUES ($1, $2)", ids.new("req"), task_id)
            if choice.random() < 0.2:
                raise _ChangedMind
    except (*AWAY, _ChangedMind):
        pass
    finally:
        connection.terminate()


class _ChangedMind(Exception):
    pass


@use("submit as a library")
async def count(load: Load, choice: random.Random) -> None:
    try:
        async with await Database.connect(DatabaseConfig(load.site.databases()[0], role="chaos", pool_max=2)) as db:
            made = await submit(db, "count", [{}] * choice.randrange(1, 20), batch=10, counters=True)
    except Unavailable:  # not even the first connection: nothing was asked for
        return
    load.promises.counted += len(made)


@use("retry what failed")
async def retry(load: Load, choice: random.Random) -> None:
    client = load.client(choice)
    found = await client.send("GET", f"/v1/tasks?status={choice.choice(['FAILED', 'CANCELED'])}&limit=20")
    # What may run once is not tried again, or nobody could tell whether the engine did.
    failed = (
        [each["id"] for each in found.json()["items"] if each["type"] != "once"] if found and found.is_success else []
    )
    if failed:
        answer = await client.send("POST", f"/v1/tasks/{choice.choice(failed)}/retry")
        if answer is not None and answer.is_success:
            load.promises.done["tasks tried again by hand"] += 1


@use("cancel and delete")
async def meddle(load: Load, choice: random.Random) -> None:
    keys = [key for key in load.promises.tasks if not key.startswith("once")]
    if not keys:
        return
    method, path = choice.choice([("POST", "/cancel"), ("POST", "/cancel"), ("DELETE", "")])
    recent = keys[-12:] if path == "/cancel" else keys[-60:]
    task_id = load.promises.tasks[choice.choice(recent)]
    answer = await load.client(choice).send(method, f"/v1/tasks/{task_id}{path}")
    if answer is not None and answer.is_success:
        load.promises.done["tasks canceled" if path else "tasks deleted"] += 1


@use("change schedules")
async def schedule(load: Load, choice: random.Random) -> None:
    client = load.client(choice)
    found = await client.send("GET", "/v1/schedules?limit=50")
    if found is None or not found.is_success:
        return
    uids = [each["id"] for each in found.json()["items"]]
    if len(uids) < 8:
        body = {
            "name": f"tick {choice.randrange(10**9)}", "type": "tick", "interval": choice.randrange(1, 4),
            "max_concurrent": choice.randrange(1, 4), "max_retries": 20,
            "overlap_policy": choice.choice(["queue_all", "queue_one", "skip", "cancel_running"]),
        }  # fmt: skip
        await client.insist("POST", "/v1/schedules", body, key=ids.new("req"))
        return
    verb = choice.choice([*["/run"] * 3, "/disable", "/disable?cancel_pending=true", *["/enable"] * 3, "DELETE"])
    if verb == "DELETE":
        await client.send("DELETE", f"/v1/schedules/{choice.choice(uids)}")
    else:
        await client.send("POST", f"/v1/schedules/{choice.choice(uids)}{verb}")


@use("take locks")
async def lock(load: Load, choice: random.Random) -> None:
    client, key = load.client(choice), f"door {choice.randrange(3)}"
    taken = await client.send("POST", "/v1/locks", {"key": key, "ttl_seconds": choice.choice([1, 5])})
    if taken is None or taken.status_code != 201:
        return
    await asyncio.sleep(choice.uniform(0, 1.5))
    held = {"key": key, "token": taken.json()["token"]}
    if choice.random() < 0.3:
        await client.send("POST", "/v1/locks/renew", held)
    if choice.random() < 0.8:
        await client.send("POST", "/v1/locks/release", held)


READS = ["/v1/tasks", "/v1/executions", "/v1/queues", "/v1/audit/events", "/v1/me", "/readyz"]


@use("read")
async def read(load: Load, choice: random.Random) -> None:
    task_id = load.known(choice)
    paths = [
        *READS,
        *([f"/v1/tasks/{task_id}", f"/v1/tasks/{task_id}/logs", f"/v1/tasks/{task_id}/why"] if task_id else []),
    ]
    await load.client(choice).send("GET", choice.choice(paths))
