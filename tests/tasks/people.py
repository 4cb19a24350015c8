"""People who do things with tasks, and workers that are made to hold them without running them."""

from collections.abc import Sequence
from typing import Any

from headrace import ids
from headrace.access import Caller, Role
from headrace.audit import ActorType, Principal, PrincipalType, Who
from headrace.database import Database, Row, Tx
from headrace.tasks.catalog import Catalog, RegistryCatalog
from headrace.tasks.model import Claimed
from headrace.tasks.service import Tasks
from headrace.tasks.worker import store
from headrace.tasks.worker.claiming import Claimer, Room
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.feeding import _claimed
from headrace.tasks.worker.store import Identity
from tests.open_types import UNCAPPED
from tests.tasks.conftest import Bench

# Sessions of this database that wait for a lock.
WAITING_SESSIONS = """
SELECT DISTINCT waits.pid
FROM pg_locks AS waits
JOIN pg_locks AS has ON has.pid = waits.pid
JOIN pg_database AS here ON here.oid = has.database AND here.datname = current_database()
WHERE NOT waits.granted
"""


def caller_of(user_id: str, *, role: Role = Role.USER) -> Caller:
    who = Who(Principal(user_id, "tester", PrincipalType.USER), ActorType(role), client_ip="192.0.2.7")
    return Caller(who, user_id, role)


async def person(bench: Bench, name: str = "ada", *, role: Role = Role.USER) -> Caller:
    return caller_of(await bench.user(name), role=role)


def tasks_of(bench: Bench, catalog: Catalog | None = None) -> Tasks:
    """What the verbs work with, on this bench."""
    return Tasks(bench.submitter, catalog or RegistryCatalog(bench.registry), bench.followers, UNCAPPED)


async def trail(db: Database, action: str | None = None) -> list[Row]:
    """The audit trail, oldest first."""
    async with db.transaction() as tx:
        return await tx.fetch(
            "SELECT * FROM headrace.audit_events WHERE $1::text IS NULL OR action = $1 ORDER BY seq", action
        )


async def told(db: Database, task_id: str) -> list[str]:
    """The names of a task's events in the outbox, in order."""
    rows = await db.fetch_alone(
        "SELECT event_type FROM headrace.outbox_events WHERE aggregate_id = $1 ORDER BY id", task_id
    )
    return [row["event_type"].removeprefix("task.") for row in rows]


async def enter(tx: Tx, types: Sequence[str], *, concurrency: int = 10, **changes: Any) -> Identity:
    """A worker in the books that does nothing by itself."""
    facts: dict[str, Any] = {
        "host": "here",
        "pid": 1,
        "queues": None,
        "labels": {},
        "slots": [("async", concurrency, types)],
        "lease": WorkerConfig().lease,
    }
    return await store.register(tx, ids.new("wrk"), **facts | changes)


async def hire(bench: Bench, **changes: Any) -> Identity:
    """The same for the types of a bench."""
    async with bench.db.transaction() as tx:
        return await enter(tx, **{"types": bench.registry.names, **changes})


async def have_labels(db: Database, **labels: str) -> None:
    """A worker that has ended had these labels, so that users may name them."""
    async with db.transaction() as tx:
        worker = await enter(tx, [], labels=labels)
        await tx.execute(
            "UPDATE headrace.workers SET ended_at = now(), ending = 'STOPPED' WHERE number = $1", worker.number
        )


async def take(bench: Bench, worker: Identity, *, most: int = 100) -> list[Claimed]:
    """Let a worker claim what it can; nothing runs."""
    claimer = Claimer(bench.db, queues=None, types={"async": bench.registry.names}, labels={})
    return [_claimed(row) for row in await claimer.claim(worker, {"async": Room(most, most)})]


async def places(db: Database, task_id: str) -> list[Row]:
    """A task's rows in the queue: one while it waits or runs, none otherwise."""
    return await db.fetch_alone("SELECT * FROM headrace.task_queue WHERE task_id = $1", task_id)
