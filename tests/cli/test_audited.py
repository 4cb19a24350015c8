"""A-04: every command that changes something leaves an event. A new one that nobody has written down here fails."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
import typer
from typer.core import TyperGroup

from headrace.cli.app import app
from headrace.cli.later import Later
from headrace.database import Database, DatabaseConfig
from headrace.tasks.catalog import declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.registry import Registry
from tests.cli.conftest import Call, Place

# Commands that change nothing that the trail tells of.
READS = """
doctor, stats, docs, settings show, workers, queues list, locks list, tasks list, tasks show, tasks logs, tasks why,
schedules list, schedules show, schedules next, schedules statistics, executions list, executions show, executions why,
plans list, plans show, cron, configs keys, configs list, configs show, risks list, risks show, risks board,
outbox status, outbox list, outbox show, outbox types, partitions list, archive list, archive verify, archive query,
webhooks list, webhooks show, webhooks stats, webhooks deliveries, webhooks delivery,
tasks steps, tasks types, audit list, audit show, audit export, audit verify, audit proof, audit roots, audit key
"""
NOT_CHANGES = {
    **dict.fromkeys(
        ("files put", "files get", "files list", "files show", "files link", "files delete"),
        "over the API, which audits it: tests/web/test_everything_is_audited.py",
    ),
    "up": "a process: what it does is done by the parts that it runs",
    "api": "a process",
    "relay": "a process: what becomes of events is in outbox_events",
    "scheduler": "a process: what it fires are tasks and executions",
    "worker": "a process: its tasks' progress is in task_logs",
    "migrate": "the schema has books of its own, and may not have a trail yet",
    "locks renew": "the lock is held as before; its history has its end",
    "webhooks listen": "a process that receives",
    "locks run": "a process; who held the lock is in task_locks",
    "detect": "looks at a file, without a database",
    "remove": "makes a file beside another, without a database",
    "subscriptions check": "asks WeChat Pay: tests/cli/test_billing.py",
    "subscriptions refund": "asks WeChat Pay: tests/cli/test_billing.py",
    "init": "writes files, without a database",
    "database url": "reads the settings",
    "database psql": "a program of PostgreSQL's, as the user that the settings name",
    "database dump": "reads the database, as the user that the settings name",
    "backup": "reads the database, as the user that the settings name",
    "restore": "what it restores has its trail: tests/cli/test_backup.py",
    "database schema": "leaves an event, and a role of the whole server: tests/cli/test_databases.py removes it again",
    "usage return": "leaves an event, of a charged removal: tests/removal/test_returning.py",
    "audit seal": "binds events to each other; there is nothing new to know",
} | {name.strip(): "reads" for name in READS.split(",")}


class World:
    def __init__(self, call: Call, place: Place) -> None:
        self._call = call
        self._names = 0
        self.place = place
        self.more: dict[str, str] = {}  # settings of the next call

    def call(self, *words: str, stdin: str = "") -> str:
        done = self._call(*words, settings={**self.place.settings, **self.more}, stdin=stdin)
        self.more = {}
        assert done.code == 0, f"{words}: {done.err}"
        return done.out

    def run(self, sql: str) -> list[Any]:
        async def fetch() -> list[Any]:
            connection = await asyncpg.connect(self.place.owner_url)
            try:
                return await connection.fetch(sql)
            finally:
                await connection.close()

        return asyncio.run(fetch())

    def name(self, noun: str) -> str:
        self._names += 1
        return f"{noun} {self._names}"

    def task(self) -> str:
        found: str = json.loads(self.call("submit", "anything", "--json"))["id"]
        return found


def _canceled(world: World) -> list[str]:
    task = world.task()
    world.call("tasks", "cancel", task)
    return [task]


def _paused(world: World) -> list[str]:
    world.call("queues", "pause", "resting", "--create")
    return ["resting"]


def _dead(world: World) -> list[str]:
    world.run(
        "INSERT INTO headrace.outbox_events (event_id, event_type, event_version, aggregate_type, aggregate_id, "
        "payload_json, status) VALUES ('evt_dead', 'task.created', 1, 'task', 'tsk_1', '{}', 'DEAD')"
    )
    return ["evt_dead"]


def _withdrawn(world: World) -> list[str]:
    world.run("INSERT INTO headrace.event_interests (consumer, pattern) VALUES ('nats', '*')")
    return ["nats"]


def _held(world: World) -> list[str]:
    return ["held", "--token", world.call("locks", "acquire", "held").strip()]


def _taken(world: World) -> list[str]:
    world.call("locks", "acquire", "taken")
    return ["taken"]


def _endpoint(world: World) -> list[str]:
    number = len(world.run("SELECT FROM headrace.webhook_endpoints"))
    made = json.loads(world.call("webhooks", "create", f"https://example.com/{number}", "--json"))
    return [made["id"]]


def _paused_endpoint(world: World) -> list[str]:
    endpoint = _endpoint(world)
    world.call("webhooks", "pause", *endpoint)
    return endpoint


def _failed_delivery(world: World) -> list[str]:
    delivery: str = json.loads(world.call("webhooks", "test", *_endpoint(world), "--json"))["id"]
    world.run("DELETE FROM headrace.webhook_queue")
    world.run("UPDATE headrace.webhook_deliveries SET status = 'DEAD' WHERE status = 'PENDING'")
    return [delivery]


def _failing_endpoint(world: World) -> list[str]:
    (delivery,) = _failed_delivery(world)
    return [json.loads(world.call("webhooks", "delivery", delivery, "--json"))["endpoint_id"]]


def _old_key(world: World) -> list[str]:
    """A secret under a key that is not the present one; those before it are under the deployment's own."""
    world.run("UPDATE headrace.webhook_endpoints SET deleted_at = now(), secret_ciphertext = ''")
    world.more = {"HEADRACE_WEBHOOK_KEY": "o" * 40}
    world.call("webhooks", "create", "https://example.com/rotated")
    world.more = {"HEADRACE_WEBHOOK_KEY": "n" * 40, "HEADRACE_WEBHOOK_OLD_KEYS": "o" * 40}
    return []


def _legacy(world: World) -> list[str]:
    world.run(
        "CREATE TABLE public.audit_logs AS SELECT 1 AS id, now() AS created_at, 'create'::text AS action, "
        "'cluster'::text AS resource_type"
    )
    return ["--from", world.place.owner_url]


def _schedule(world: World, *options: str) -> list[str]:
    name = f"schedule {len(world.run('SELECT FROM headrace.scheduled_tasks'))}"
    made = json.loads(world.call("schedules", "create", name, "anything", "--interval", "3600", "--json"))
    return [made["id"], *options]


def _disabled(world: World) -> list[str]:
    (uid,) = _schedule(world)
    world.call("schedules", "disable", uid)
    return [uid]


def _run(world: World) -> list[str]:
    return [json.loads(world.call("schedules", "run", *_schedule(world), "--json"))["id"]]


def _key(world: World) -> list[str]:
    (key,) = json.loads(world.call("keys", "list", "--user", "ada", "--json"))
    return [key["id"], "--user", "ada"]


def _user(world: World, *options: str) -> list[str]:
    world.call("admin", "create", "eve")
    return ["eve", *options]


def _deleted(world: World) -> list[str]:
    world.call("admin", "create", "kay")
    world.call("admin", "delete", "kay", "--yes")
    return ["kay"]


def _config(world: World) -> list[str]:
    world.call("configs", "set", "features", '{"beta": true}')
    return ["features"]


def _switched_off(world: World) -> list[str]:
    world.call("configs", "disable", *_config(world))
    return ["features"]


RISK = ["--category", "cost", "--severity", "high", "--trigger", "t", "--plan", "p", "--owner", "ada"]


def _risk(world: World, *options: str) -> list[str]:
    risk: str = json.loads(world.call("risks", "add", *RISK, "--json"))["risk_id"]
    return [risk, *options]


def _behind(world: World) -> list[str]:
    world.run(f"DROP TABLE headrace.audit_events{datetime.now(UTC) + timedelta(days=32):_y%Ym%m}")
    return []


def _old(month: str) -> Callable[[World], list[str]]:
    def make(world: World) -> list[str]:
        world.run(f"SELECT headrace.create_month_partitions('headrace.audit_events', '{month}-01', '{month}-01')")
        return ["audit_events", month]

    return make


def _archived(world: World) -> list[str]:
    world.call("partitions", "retire", *_old("2025-03")(world))
    return ["audit_events_y2025m03"]


def _plan(world: World, *more: str) -> list[str]:
    plan = json.loads(world.call("plans", "add", world.name("plan"), "--price-cents", "100", "--units", "5", "--json"))
    return [plan["id"], *more]


def _subscription(world: World) -> list[str]:
    """Of somebody who has paid."""
    (plan,) = _plan(world)
    sub = plan.replace("pln", "sub")
    world.run(
        f"INSERT INTO headrace.users (id, username, password_hash) VALUES ('{plan.replace('pln', 'u')}', '{sub}', '!')"
    )
    world.run(
        "INSERT INTO headrace.subscriptions (id, user_id, plan_id, status, channel)"
        f" VALUES ('{sub}', '{plan.replace('pln', 'u')}', '{plan}', 'ACTIVE', 'WECHAT_PAY')"
    )
    return [sub]


def _canceled_subscription(world: World) -> list[str]:
    words = _subscription(world)
    world.call("subscriptions", "cancel", *words)
    return words


def _order(world: World) -> list[str]:
    """With something amiss, that somebody has looked at."""
    (sub,) = _subscription(world)
    order, user, plan = (sub.replace("sub", prefix) for prefix in ("ord", "u", "pln"))
    world.run(
        "INSERT INTO headrace.payment_orders (id, user_id, plan_id, subscription_id, kind, method, status, description,"
        " amount_cents, currency, units, features_json, problem, expires_at)"
        f" VALUES ('{order}', '{user}', '{plan}', '{sub}', 'PURCHASE', 'NATIVE', 'CLOSED', 'Pro', 100, 'CNY', 5, '[]',"
        " 'wrong_amount', now())"
    )
    return [order, "--reason", "paid back by hand"]


def _entitlement(world: World) -> list[str]:
    (row,) = world.run("SELECT id FROM headrace.entitlements LIMIT 1")  # of somebody whom admin create made
    return [row["id"], "--units", "5", "--reason", "as agreed"]


def _with_second_factor(world: World) -> list[str]:
    world.run("UPDATE headrace.users SET second_factor_at = now() WHERE username = 'ada'")
    return ["ada"]


RECIPES: dict[str, Callable[[World], list[str]]] = {
    "outbox revive": _dead,
    "outbox withdraw": _withdrawn,
    "submit": lambda _: ["anything"],
    "tasks cancel": lambda world: [world.task()],
    "tasks retry": _canceled,
    "tasks delete": lambda world: [*_canceled(world), "--yes"],
    "database indexes": lambda _: ["--full"],
    "queues pause": lambda _: ["default"],
    "queues resume": _paused,
    "queues limit": lambda _: ["default", "3"],
    "locks acquire": lambda _: ["free"],
    "webhooks create": lambda _: ["https://example.com/new"],
    "webhooks pause": _endpoint,
    "webhooks resume": _paused_endpoint,
    "webhooks delete": lambda world: [*_endpoint(world), "--yes"],
    "webhooks rotate-secret": _endpoint,
    "webhooks test": _endpoint,
    "webhooks resend": _failed_delivery,
    "webhooks resend-failed": _failing_endpoint,
    "webhooks rotate-keys": _old_key,
    "locks release": _held,
    "locks force-release": _taken,
    "admin create": lambda _: ["ada"],
    "admin reset-password": lambda _: ["ada"],
    "admin disable-second-factor": _with_second_factor,
    "users list": lambda _: [],  # looking at other people is on record
    "users show": lambda _: ["ada"],
    "users create": lambda _: ["guy"],
    "users suspend": lambda _: ["guy"],
    "users reinstate": lambda _: ["guy"],
    "users role": lambda _: ["guy", "admin"],
    "keys list": lambda _: ["--user", "ada"],
    "keys create": lambda _: ["ci", "--user", "ada", "--scope", "tasks:read"],
    "keys revoke": _key,
    "schedules create": lambda _: ["nightly", "anything", "--interval", "3600"],
    "schedules update": lambda world: _schedule(world, "--priority", "3"),
    "schedules disable": _schedule,
    "schedules enable": _disabled,
    "schedules run": _schedule,
    "schedules delete": lambda world: _schedule(world, "--yes"),
    "executions cancel": _run,
    "admin delete": lambda world: _user(world, "--yes"),
    "admin keep": _deleted,
    "admin deletions": lambda _: [],  # looking at them is on record
    "configs set": lambda _: ["announcement", '{"text": "soon"}'],
    "configs disable": _config,
    "configs enable": _switched_off,
    "configs unset": _config,
    "risks add": lambda _: RISK,
    "risks change": lambda world: _risk(world, "--owner", "bob"),
    "risks remove": _risk,
    "risks traces": _risk,  # looking into the trail is on record
    "plans add": lambda _: ["Pro", "--price-cents", "2900", "--units", "500"],
    "plans change": lambda world: _plan(world, "--price-cents", "1900"),
    "plans remove": _plan,
    "subscriptions list": lambda _: [],  # looking at other people's is on record
    "subscriptions show": _subscription,
    "subscriptions cancel": _subscription,
    "subscriptions resume": _canceled_subscription,
    "subscriptions orders": lambda _: [],
    "subscriptions resolve": _order,
    "ledger list": lambda _: [],
    "ledger entitlements": lambda _: [],
    "ledger adjust": _entitlement,
    "ledger verify": lambda _: [],
    "usage list": lambda _: ["ada"],
    "usage days": lambda _: ["ada"],
    "usage balance": lambda _: ["ada"],
    "usage export": lambda _: ["ada"],
    "audit import": _legacy,
    "partitions ahead": _behind,
    "partitions retire": _old("2025-01"),
    "partitions expire": lambda world: _old("2025-02")(world)[:1],
    "archive restore": _archived,
    "archive discard": lambda _: ["audit_events_y2025m03"],
}


def commands(group: Any, *before: str) -> Iterator[str]:
    for name, command in group.commands.items():
        loaded = command.loaded if isinstance(command, Later) else command
        if isinstance(loaded, TyperGroup):
            yield from commands(loaded, *before, name)
        else:
            yield " ".join((*before, name))


@pytest.mark.long
def test_every_command_that_changes_something_leaves_an_event(call: Call, migrated: Place) -> None:
    asyncio.run(_declare(migrated))
    there = list(commands(typer.main.get_group(app)))
    unknown = set(there) - RECIPES.keys() - NOT_CHANGES.keys()
    assert not unknown, f"write down here how to call {unknown}, so that they are seen to be audited"
    assert not (RECIPES.keys() | NOT_CHANGES.keys()) - set(there), "these are gone"
    world = World(call, migrated)
    silent = []
    for name, prepare in RECIPES.items():
        words = prepare(world)
        (before,) = world.run("SELECT count(*) FROM headrace.audit_events")
        world.call(*name.split(), *words)
        if world.run("SELECT count(*) FROM headrace.audit_events") == [before]:
            silent.append(name)
    assert not silent, "these left no event"


async def _declare(place: Place) -> None:
    registry = Registry()

    @registry.task("anything")
    async def anything(context: TaskContext, payload: Any) -> None: ...

    async with await Database.connect(DatabaseConfig(place.app_url)) as db, db.transaction() as tx:
        await declare_types(tx, registry)
