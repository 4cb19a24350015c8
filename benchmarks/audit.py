"""What the audit trail costs, and how fast it is searched, sealed and verified. See README.md."""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from unittest import mock

import asyncpg
import uvloop
from starlette.requests import Request

from benchmarks.ours import as_app
from benchmarks.report import Run, Targets, console, print_json, print_targets
from benchmarks.scratch import scratch_server
from headrace import audit, ids
from headrace.access import Caller, Role
from headrace.accounts import administration
from headrace.archive.retiring import retire_month
from headrace.audit import Action, ActorType, Principal, PrincipalType, Resource, ResourceType, Who, verifying
from headrace.audit.events import Event, EventFilter, list_events
from headrace.audit.sealing import Sealer
from headrace.database import Database, DatabaseConfig, Tx, connect_alone
from headrace.edge.facts import Facts, attach
from headrace.edge.idempotency import Once
from headrace.edge.services import Services
from headrace.storage import Storage, StorageConfig
from headrace.tasks.catalog import RegistryCatalog
from headrace.tasks.context import TaskContext
from headrace.tasks.events import OutboxFollower
from headrace.tasks.followers import Followers
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.routes import changes
from headrace.tasks.schemas import SubmitIn
from headrace.tasks.service import Tasks, submit_task
from headrace.tasks.submit import Submitter

MONTHS = 6
TARGETS: Targets = {
    "record_cost": ("a change with its event against one without", -1.25),
    "filter_p95_ms": ("first page of the slowest filter, p95", -50),
    "deep_page": ("a page half-way down against the first", -1.5),
    "verify_per_s": ("events verified a second", 200_000),
    "retire_lock_ms": ("longest lock on the table while a month is retired", -100),
}


@dataclass(frozen=True)
class Sizes:
    events: int
    changes: int
    looks: int


FULL = Sizes(5_000_000, 2_000, 40)
QUICK = Sizes(200_000, 600, 20)


# -- what one event costs


Change = Callable[[int], Awaitable[object]]


async def cost_of_recording(run: Run[Sizes], db: Database) -> None:
    """What a deployment changes most often: a task submitted by our client, whose every request has an Idempotency-Key.
    The route itself is called, and makes one transaction: the key claimed, the task, its place in the queue, its event
    in the outbox, the answer kept. Beside it the same without a key and a route, and the smallest change there is, a
    user's row updated. Each with its audit event, and with nothing in its place."""
    who = Who(
        Principal(ids.new("u"), "root", PrincipalType.USER),
        ActorType.ADMIN,
        client_ip="192.0.2.7",
        user_agent="Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)",
        request_method="POST",
        request_id=ids.new("req"),
    )
    run.note("record_cost", await _ratio(run, _submitting(db, who)))
    run.note("record_cost_of_a_bare_submit", await _ratio(run, _submitting_bare(db, who)))
    run.note("record_cost_of_an_update", await _ratio(run, await _updating(db, who)))


def _submitting(db: Database, who: Who) -> Change:
    caller, tasks = Caller(who, ids.SYSTEM_USER, Role.ADMIN), _tasks()
    served = SimpleNamespace(state=SimpleNamespace(services=Services(db, _nobody, secret=bytes(32))))
    facts = Facts("POST", "/v1/tasks", who.request_id or "", caller=caller)

    async def submit(number: int) -> object:
        body = SubmitIn(type="bench", title="Report for March", payload={"n": number})

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": body.model_dump_json().encode()}

        scope = {"type": "http", "method": "POST", "path": facts.path, "query_string": b"", "app": served}
        attach(scope, facts)
        once = Once(Request(scope, receive), "tasks.create", ids.new("key"), secret=False)
        return await changes.submit_task(body, caller, db, tasks, once)

    return submit


def _submitting_bare(db: Database, who: Who) -> Change:
    caller, tasks = Caller(who, ids.SYSTEM_USER, Role.ADMIN), _tasks()

    async def submit(number: int) -> object:
        async with db.transaction() as tx:
            return await submit_task(tx, tasks, caller, TaskSpec("bench", {"n": number}, title="Report for March"))

    return submit


async def _updating(db: Database, who: Who) -> Change:
    user_id = ids.new("u")
    async with db.transaction() as tx:
        await tx.execute("INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, 'bench', '!')", user_id)

    async def update(number: int) -> object:
        verb = administration.suspend if number % 2 == 0 else administration.reinstate
        async with db.transaction() as tx:
            return await verb(tx, who, user_id)

    return update


def _tasks() -> Tasks:
    registry = Registry()

    @registry.task("bench")
    async def bench(_context: TaskContext, payload: object) -> None: ...

    catalog, followers = RegistryCatalog(registry), Followers({"outbox": OutboxFollower()})
    return Tasks(Submitter(catalog, followers), catalog, followers)


async def _nobody(*_: object) -> Caller:
    raise AssertionError("who calls is given")


async def _ratio(run: Run[Sizes], change: Change) -> float:
    """Blocks of both, in turns: what disturbs one disturbs the other."""

    async def timed(number: int) -> float:
        started = time.perf_counter()
        await change(number)
        return time.perf_counter() - started

    async def nothing(*_: object, **__: object) -> str:
        return ""

    ratios = []
    for block in range(run.sizes.changes // 50):
        with_event = [await timed(n) for n in range(50)]
        with mock.patch.object(audit, "record", nothing):
            without = [await timed(n) for n in range(50)]
        if block:  # the first block prepares statements
            ratios.append(statistics.median(with_event) / statistics.median(without))
    return statistics.median(ratios)


# -- many events


def months() -> list[date]:
    first = datetime.now(UTC).date().replace(day=1)
    found = [first]
    while len(found) < MONTHS:
        found.append((found[-1] - timedelta(days=1)).replace(day=1))
    return found[::-1]


# Two thousand users, one address each; a type is used once in two hundred events, and one only in the first month.
FILL = """
INSERT INTO headrace.audit_events (id, "timestamp", created_at, action, resource_type, resource, "user", diff_object,
                                   client_ip, user_agent, request_method, request_id, actor_type)
SELECT 'aud_' || letters || lpad(to_hex(n), 16, '0'), millis, headrace.instant_of_millis(millis), action, type,
       jsonb_build_object('type', type, 'identifier', 'thing_' || n / 20, 'data', jsonb_build_object('name', 'n' || n)),
       jsonb_build_object('uid', 'u_' || n % 2000, 'username', 'user-' || n % 2000, 'type', 'user'),
       jsonb_build_object('old_object', '{"id":"thing_' || n || '","status":"ACTIVE","version":1}',
                          'new_object', '{"id":"thing_' || n || '","status":"SUSPENDED","version":2}',
                          'old_object_truncated', false, 'new_object_truncated', false),
       '10.0.' || n % 2000 / 250 || '.' || n % 250, 'Mozilla/5.0 (X11; Linux x86_64)', 'POST', 'req_' || n / 3, 'USER'
FROM generate_series($1::bigint, $2::bigint - 1) AS n,
     cast($3::bigint + (n - $5) * $4::float8 AS bigint) AS millis,
     LATERAL (SELECT (ARRAY['created', 'updated', 'updated', 'deleted', 'login'])[n % 5 + 1] AS action,
                     CASE WHEN n % 200 = 7 THEN 'plan' WHEN n < 1000 THEN 'subscription'
                          ELSE (ARRAY['task', 'task', 'asset', 'session'])[n % 4 + 1] END AS type,
                     headrace.letters_of_millis(millis) AS letters) AS made
"""
_BATCH = 10_000


async def fill(run: Run[Sizes], db: Database) -> None:
    owner = await asyncpg.connect(run.url)
    await owner.execute(
        "SELECT headrace.create_month_partitions('headrace.audit_events', $1, $2)", months()[0], months()[-1]
    )
    await owner.close()
    start = datetime.combine(months()[0], datetime.min.time(), UTC)
    length = datetime.now(UTC) - start
    step = length / timedelta(milliseconds=1) / run.sizes.events
    first = int(start.timestamp() * 1000)
    batches = iter(range(0, run.sizes.events, _BATCH))

    async def write() -> None:
        for at in batches:
            async with db.transaction() as tx:
                await tx.execute("SET LOCAL ROLE NONE")  # only the owner writes events of another time
                await tx.execute(FILL, at, at + _BATCH, first, step, 0)

    started = time.perf_counter()
    await asyncio.gather(write(), write())
    run.note("insert_per_s", run.sizes.events / (time.perf_counter() - started))
    owner = await asyncpg.connect(run.url)
    await owner.execute("VACUUM ANALYZE headrace.audit_events", timeout=600)
    await owner.close()


# -- searching


def filters(events: int) -> dict[str, Callable[[], EventFilter]]:
    choose = random.Random(7)
    now = datetime.now(UTC)
    return {
        "none": EventFilter,
        "action": lambda: EventFilter(action=choose.choice([Action.CREATED, Action.UPDATED, Action.LOGIN])),
        "type": lambda: EventFilter(resource_type=choose.choice([ResourceType.TASK, ResourceType.ASSET])),
        "rare_type": lambda: EventFilter(resource_type=ResourceType.PLAN),
        "old_type": lambda: EventFilter(resource_type=ResourceType.SUBSCRIPTION),
        "absent_type": lambda: EventFilter(resource_type=ResourceType.LEDGER),
        "type_action": lambda: EventFilter(resource_type=ResourceType.TASK, action=Action.DELETED),
        "resource": lambda: EventFilter(resource_id=f"thing_{choose.randrange(events // 20)}"),
        "user": lambda: EventFilter(user_id=f"u_{choose.randrange(2000)}"),
        "user_action": lambda: EventFilter(user_id=f"u_{choose.randrange(2000)}", action=Action.DELETED),
        "address": lambda: EventFilter(client_ip=f"10.0.{choose.randrange(8)}.{choose.randrange(250)}"),
        "request": lambda: EventFilter(request_id=f"req_{choose.randrange(events // 3)}"),
        "time": lambda: EventFilter(until=now - timedelta(days=choose.randrange(1, 150))),
        "time_action": lambda: EventFilter(action=Action.LOGIN, until=now - timedelta(days=choose.randrange(1, 150))),
        "text": lambda: EventFilter(text=choose.choice(["user-17", "u_99", "thing_5", "req_77", "10.0.3.7"])),
    }


async def search(run: Run[Sizes], db: Database) -> None:
    slowest = 0.0
    for name, make in filters(run.sizes.events).items():
        times = []
        for _ in range(run.sizes.looks):
            wanted = make()
            times.append(await _timed(db, lambda tx, wanted=wanted: list_events(tx, wanted, limit=21)))
        p95 = sorted(times)[int(len(times) * 0.95)] * 1000
        run.note(f"p95_ms_{name}", p95)
        slowest = max(slowest, p95)
    run.note("filter_p95_ms", slowest)


async def page_deep(run: Run[Sizes], db: Database) -> None:
    """Half of all events lie before the deep page; the mark comes from there."""
    ratios = []
    for wanted in (EventFilter(), EventFilter(action=Action.LOGIN), EventFilter(user_id="u_7")):
        middle = datetime.now(UTC) - timedelta(days=75)
        async with db.transaction(readonly=True) as tx:
            (there,) = await list_events(tx, wanted, older_than=(middle, "aud_"), limit=1)
        first = [await _page(db, wanted, None) for _ in range(run.sizes.looks)]
        deep = [await _page(db, wanted, there) for _ in range(run.sizes.looks)]
        ratios.append(statistics.median(deep) / statistics.median(first))
    run.note("deep_page", max(ratios))


async def _page(db: Database, wanted: EventFilter, after: Event | None) -> float:
    mark = after.mark if after else None
    return await _timed(db, lambda tx: list_events(tx, wanted, older_than=mark, limit=21))


async def _timed(db: Database, look: Callable[[Tx], Awaitable[object]]) -> float:
    async with db.transaction(readonly=True) as tx:
        started = time.perf_counter()
        await look(tx)
        return time.perf_counter() - started


# -- proof


async def seal_and_verify(run: Run[Sizes], db: Database) -> None:
    started = time.perf_counter()
    done = await Sealer(db).run_once()
    run.note("seal_per_s", done.events / (time.perf_counter() - started))
    started = time.perf_counter()
    found = await verifying.verify(db)
    run.note("verify_per_s", found.events / (time.perf_counter() - started))
    assert found.finding is None, found.finding
    assert found.unsealed == 0


# -- a month leaves


async def retire(run: Run[Sizes], db: Database) -> None:
    """The oldest month goes to an archive while somebody keeps writing to the newest."""
    waits: list[float] = []
    over = asyncio.Event()

    async def write() -> None:
        while not over.is_set():
            started = time.perf_counter()
            async with db.transaction() as tx:
                await audit.record(tx, Who.system(), Action.READ, Resource(ResourceType.AUDIT_TRAIL, "*"))
            waits.append(time.perf_counter() - started)
            await asyncio.sleep(0.002)

    async with connect_alone(DatabaseConfig(run.url)) as connection:
        await connection.execute("UPDATE headrace.retention_minimums SET keep = '0'")
    writer = asyncio.create_task(write())
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        storage = Storage(StorageConfig(f"file://{folder}"))
        started = time.perf_counter()
        gone = await retire_month(DatabaseConfig(run.url), storage, "audit_events", months()[0], who=Who.system())
        run.note("retire_per_s", run.sizes.events / MONTHS / (time.perf_counter() - started))
    over.set()
    await writer
    # The longest step that locks the table, with its waiting; it includes dropping what has been detached, which nobody
    # waits for. A writer's longest wait holds besides what the disk and this very process, which archives, make of it.
    run.note("retire_lock_ms", gone.locked.total_seconds() * 1000)
    run.note("retire_writer_wait_ms", max(waits) * 1000)


async def measure(run: Run[Sizes]) -> None:
    async with await Database.connect(as_app(run.url)) as db:
        for part in (cost_of_recording, fill, search, page_deep, seal_and_verify, retire):
            console.print(part.__name__.replace("_", " "))
            await part(run, db)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="smaller sizes, under a minute")
    arguments.add_argument("--events", type=int, help="another number of events")
    arguments.add_argument("--json", action="store_true", help="print the figures as JSON, last on standard output")
    chosen = arguments.parse_args()
    sizes = QUICK if chosen.quick else FULL
    if chosen.events:
        sizes = Sizes(chosen.events, sizes.changes, sizes.looks)
    with scratch_server() as url:
        run = Run(url, sizes, digits=2)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as every process of ours
            runner.run(measure(run))
    print_targets(run.medians(), TARGETS)
    if chosen.json:
        print_json(run.medians())


if __name__ == "__main__":
    main()
