"""What metering costs: creating and draining tasks that are paid for, a quota that many want at once, and reading the
whole ledger. See README.md."""

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import asyncpg
import uvloop
from starlette.requests import Request

from benchmarks.ours import as_app
from benchmarks.report import Run, Targets, console, print_json, print_targets
from benchmarks.scratch import scratch_server
from headrace import ids
from headrace.access import Caller, Role
from headrace.assembly.followers import followers
from headrace.audit import ActorType, Principal, PrincipalType, Who
from headrace.billing import verifying
from headrace.database import Database
from headrace.edge.facts import Facts, attach
from headrace.edge.idempotency import Once
from headrace.edge.services import Services
from headrace.outbox import interests
from headrace.outbox.interests import Interest
from headrace.tasks.catalog import RegistryCatalog, declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.routes import changes
from headrace.tasks.schemas import SubmitIn
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker

CLIENTS = 32
ENTRIES = 2_000_000
TARGETS: Targets = {
    "billing_ratio": ("tasks created a second with a hold against without", 0.75),
    "drain_ratio": ("metered tasks drained a second against the same for nothing", 0.6),
    "hot_tps": ("metered tasks created a second by 32 clients of one user", 300),
    "hot_p99_ms": ("of these, milliseconds of the slowest hundredth", -250),
    "verify_2m_s": ("seconds to verify 2,000,000 entries", -10),
}


@dataclass(frozen=True)
class Sizes:
    blocks: int
    drained: int
    rounds: int
    storm: float
    users: int
    entries: int


FULL = Sizes(40, 20_000, 3, 10.0, 1000, ENTRIES)
QUICK = Sizes(8, 4_000, 1, 2.0, 200, 100_000)


def _registry() -> Registry:
    registry = Registry()

    async def nothing(_context: TaskContext, payload: object) -> None: ...

    registry.task("free", submit="users")(nothing)
    registry.task("metered", units=1, submit="users")(nothing)
    return registry


class Site:
    """Users with quota, and the route that creates tasks for them."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.registry = _registry()
        self.followers = followers()
        catalog = RegistryCatalog(self.registry)
        self.submitter = Submitter(catalog, self.followers)
        self._tasks = Tasks(self.submitter, catalog, self.followers)
        self._served = SimpleNamespace(state=SimpleNamespace(services=Services(db, _nobody, secret=bytes(32))))
        self.users: list[str] = []

    async def prepare(self, users: int) -> None:
        async with self.db.transaction() as tx:  # both types have their events: somebody wants them
            await interests.declare(tx, "benchmark", "", [Interest("task.*")])
        async with self.db.transaction() as tx:
            await declare_types(tx, self.registry)
            await tx.execute(
                "INSERT INTO headrace.plans (id, name, price_cents, monthly_quota) VALUES ('p', 'p', 0, 0)"
            )
            for number in range(users):
                self.users.append(await add_user(tx.execute, f"user-{number}"))

    async def create(self, type_name: str, user_id: str) -> None:
        """As the client does: the route, with an Idempotency-Key. One transaction: the key, the task, its place in the
        queue, its event, its audit event, the hold, the answer."""
        who = Who(Principal(user_id, "bench", PrincipalType.USER), ActorType.USER, request_id=ids.new("req"))
        caller = Caller(who, user_id, Role.USER)
        facts = Facts("POST", "/v1/tasks", who.request_id or "", caller=caller)
        body = SubmitIn(type=type_name, title="Report for March", payload={"n": 1})

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": body.model_dump_json().encode()}

        scope = {"type": "http", "method": "POST", "path": facts.path, "query_string": b"", "app": self._served}
        attach(scope, facts)
        once = Once(Request(scope, receive), "tasks.create", ids.new("key"), secret=False)
        await changes.submit_task(body, caller, self.db, self._tasks, once)


async def _nobody(*_: object) -> Caller:
    raise AssertionError("who calls is given")


QUOTA = 1_000_000_000


async def add_user(execute: Callable[..., Awaitable[object]], name: str) -> str:
    user_id, entitlement, entry = ids.new("u"), ids.new("ent"), ids.new("led")
    now = datetime.now(UTC)
    await execute("INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, $2, '!')", user_id, name)
    await execute(
        "INSERT INTO headrace.entitlements "
        "(id, user_id, plan_id, quota_total, quota_left, period_start, period_end, status) "
        "VALUES ($1, $2, 'p', $3, $3, $4, $5, 'ACTIVE')",
        entitlement, user_id, QUOTA, now - timedelta(days=1), now + timedelta(days=30),
    )  # fmt: skip
    month = now.date().replace(day=1)
    await execute(
        "INSERT INTO headrace.usage_ledger "
        "(id, period, user_id, entitlement_id, consume_unit, direction, status, source, idempotency_key) "
        "VALUES ($1, $2, $3, $4, $5, 'CREDIT', 'COMMITTED', 'SUBSCRIPTION_GRANT', $6)",
        entry, month, user_id, entitlement, QUOTA, f"{month:%Y%m}:grant:{entitlement}",
    )  # fmt: skip
    return user_id


async def creating(run: Run[Sizes], site: Site) -> None:
    """Eight clients create tasks for different users; blocks of both kinds in turns, so that what disturbs one disturbs
    the other."""

    async def block(type_name: str) -> float:
        async def client(number: int) -> None:
            for each in range(25):
                await site.create(type_name, site.users[(number * 25 + each) % len(site.users)])

        started = time.perf_counter()
        await asyncio.gather(*(client(number) for number in range(8)))
        return 200 / (time.perf_counter() - started)

    pairs = [(await block("free"), await block("metered")) for _ in range(run.sizes.blocks + 1)][1:]
    run.note("create_free_tps", statistics.median(free for free, _ in pairs))
    run.note("create_metered_tps", statistics.median(metered for _, metered in pairs))
    run.note("billing_ratio", statistics.median(metered / free for free, metered in pairs))


async def draining(run: Run[Sizes], site: Site) -> None:
    """One worker runs what waits: the same type with its events, for nothing and for a unit."""
    rates: dict[str, list[float]] = {"free": [], "metered": []}
    for _ in range(run.sizes.rounds):
        for type_name, found in rates.items():
            await _clear(run.url)
            await _fill(site, type_name, run.sizes.drained)
            await _settle_down(run.url)
            found.append(run.sizes.drained / await _drain(site))
    for type_name, found in rates.items():
        run.note(f"drain_{type_name}_tps", statistics.median(found))
    ratios = [mine / theirs for mine, theirs in zip(rates["metered"], rates["free"], strict=True)]
    run.note("drain_ratio", statistics.median(ratios))


async def _fill(site: Site, type_name: str, count: int) -> None:
    for start in range(0, count, 1000):
        user_id = site.users[start // 1000 % len(site.users)]
        async with site.db.transaction() as tx:
            specs = [TaskSpec(type_name, {"n": n}) for n in range(min(1000, count - start))]
            await site.submitter.submit_many(tx, specs, user_id=user_id)


async def _drain(site: Site) -> float:
    stop = asyncio.Event()
    with TemporaryDirectory(prefix="headrace-bench-") as scratch:
        config = WorkerConfig(concurrency=100, scratch=Path(scratch))
        worker = Worker(site.db, site.registry, site.followers, config)
        started = time.perf_counter()
        running = asyncio.create_task(worker.run(stop))
        while (await site.db.fetch_alone("SELECT EXISTS (SELECT FROM headrace.task_queue)"))[0][0]:
            await asyncio.sleep(0.01)
        took = time.perf_counter() - started
        stop.set()
        await running
    return took


async def wanting(run: Run[Sizes], site: Site) -> None:
    """So many clients at once: all of one user, whose entitlement is one row, and of a thousand."""
    rate, times = await _storm(run, site, site.users[:1])
    run.note("hot_tps", rate)
    run.note("hot_p99_ms", 1000 * sorted(times)[int(len(times) * 0.99)])
    rate, times = await _storm(run, site, site.users)
    run.note("spread_tps", rate)
    run.note("spread_p99_ms", 1000 * sorted(times)[int(len(times) * 0.99)])


async def _storm(run: Run[Sizes], site: Site, users: Sequence[str]) -> tuple[float, list[float]]:
    times: list[float] = []
    end = time.perf_counter() + run.sizes.storm

    async def client() -> None:
        while (began := time.perf_counter()) < end:
            await site.create("metered", random.choice(users))
            times.append(time.perf_counter() - began)

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return len(times) / (time.perf_counter() - started), times


# Holds of six months and what settled them: nine of ten committed, one released.
FILL = """
INSERT INTO headrace.usage_ledger
  (id, period, user_id, task_id, entitlement_id, hold_id, consume_unit, direction, status, source, idempotency_key,
   created_at)
SELECT entry.id, headrace.typeid_month(hold.id), owner.user_id, 'tsk_' || n, owner.id, entry.hold_id, 1,
       entry.direction, entry.status, entry.source,
       to_char(headrace.typeid_month(hold.id), 'YYYYMM') || ':' || entry.id, made.at
FROM generate_series($1::integer, $2::integer) AS n
CROSS JOIN LATERAL (SELECT now() - (n % 6) * interval '30 days' - n * interval '1 ms' AS at) AS made
CROSS JOIN LATERAL (
  SELECT 'led_' || headrace.letters_of_millis((extract(epoch FROM made.at) * 1000)::bigint)
         || left(md5(n::text), 16) AS id
) AS hold
CROSS JOIN LATERAL (
  SELECT ($3::varchar[])[1 + n % cardinality($3)] AS id, ($4::varchar[])[1 + n % cardinality($4)] AS user_id
) AS owner
CROSS JOIN LATERAL (
  VALUES (hold.id, NULL, 'DEBIT', 'HELD', 'TASK_CREATE'),
         (headrace.settlement_id(hold.id, CASE WHEN n % 10 = 0 THEN 'RELEASED' ELSE 'COMMITTED' END), hold.id,
          CASE WHEN n % 10 = 0 THEN 'CREDIT' ELSE 'DEBIT' END,
          CASE WHEN n % 10 = 0 THEN 'RELEASED' ELSE 'COMMITTED' END,
          CASE WHEN n % 10 = 0 THEN 'TASK_FAIL' ELSE 'TASK_COMPLETE' END)
) AS entry (id, hold_id, direction, status, source)
"""
CHARGE = """
UPDATE headrace.entitlements AS entitlement SET quota_left = quota_total - charged.units
FROM (SELECT entitlement_id, sum(consume_unit) AS units FROM headrace.usage_ledger
      WHERE status = 'COMMITTED' AND hold_id IS NOT NULL GROUP BY entitlement_id) AS charged
WHERE charged.entitlement_id = entitlement.id
"""


async def verifying_all(run: Run[Sizes], site: Site) -> None:
    await _clear(run.url)
    owners = await site.db.fetch_alone("SELECT id, user_id FROM headrace.entitlements ORDER BY id")
    holds = run.sizes.entries // 2
    connection = await asyncpg.connect(run.url)
    try:
        # Foreign keys are not looked up a million times for what is made up here.
        await connection.execute("SET session_replication_role = replica")
        for first in range(1, holds + 1, 50_000):
            last = min(first + 49_999, holds)
            names, users = [row["id"] for row in owners], [row["user_id"] for row in owners]
            await connection.execute(FILL, first, last, names, users)
        await connection.execute(CHARGE)
    finally:
        await connection.close()
    await _settle_down(run.url)
    found = await verifying.verify(site.db, Who.system())
    if not found.is_clean:
        raise AssertionError(f"what was made up does not add up: {found.faults[:3]}")
    seconds = (found.finished_at - found.started_at).total_seconds()
    run.note("verified_entries", found.entries)
    run.note("verify_2m_s", seconds * ENTRIES / found.entries)


CLEAR = """
SET session_replication_role = replica;
TRUNCATE headrace.tasks, headrace.task_queue, headrace.task_logs, headrace.workers, headrace.outbox_events CASCADE;
DELETE FROM headrace.usage_ledger WHERE hold_id IS NOT NULL OR status = 'HELD';
UPDATE headrace.entitlements SET quota_left = quota_total;
SET session_replication_role = origin;
"""


async def _clear(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(CLEAR)
    finally:
        await connection.close()


async def _settle_down(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for table in ("tasks", "task_queue", "entitlements", "usage_ledger"):
            await connection.execute(f"VACUUM ANALYZE headrace.{table}")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


PARTS = {"create": creating, "clients": wanting, "drain": draining, "verify": verifying_all}


async def measure(run: Run[Sizes], parts: Sequence[str]) -> None:
    config = replace(as_app(run.url), pool_max=CLIENTS + 4)
    async with await Database.connect(config) as db:
        site = Site(db)
        await site.prepare(run.sizes.users)
        for part in parts:
            console.print(part)
            await PARTS[part](run, site)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="smaller sizes, under a minute")
    arguments.add_argument("--json", action="store_true", help="print the figures as JSON, last on standard output")
    arguments.add_argument("--part", choices=PARTS, help="only this")
    chosen = arguments.parse_args()
    with scratch_server() as url:
        run = Run(url, QUICK if chosen.quick else FULL, digits=2)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as every process of ours
            runner.run(measure(run, [chosen.part] if chosen.part else list(PARTS)))
    print_targets(run.medians(), TARGETS)
    if chosen.json:
        print_json(run.medians())


if __name__ == "__main__":
    main()
