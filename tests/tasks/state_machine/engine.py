"""The engine on a database of its own: each verb as workers, reapers and people call it, every row beside the model."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace import ids
from headrace.access import Role
from headrace.database import Database
from headrace.tasks.catalog import RegistryCatalog, declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import LeaseLost, TaskChanged, TaskNotOver, TaskOver, WorkerGone
from headrace.tasks.events import OutboxFollower
from headrace.tasks.followers import Followers
from headrace.tasks.model import Claimed, Ending, TaskSpec
from headrace.tasks.reaping import Reaper
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks
from headrace.tasks.submit import Submitter
from headrace.tasks.worker.claiming import Claimer, Room
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.endings import Writer
from headrace.tasks.worker.feeding import _claimed
from headrace.tasks.worker.reporting import LeaseReporter
from headrace.tasks.worker.store import Identity
from tests.open_types import OpenRegistry
from tests.outbox.hearing import want
from tests.tasks.people import caller_of, enter
from tests.tasks.state_machine.model import KEY_LIMIT, OVER, Mismatch, Model, Task

FAR = timedelta(hours=1)
ADMIN = caller_of(ids.SYSTEM_USER, role=Role.ADMIN)


def make_registry() -> Registry:
    registry = OpenRegistry()

    async def nothing(context: TaskContext, payload: Any) -> None: ...

    registry.task("plain")(nothing)
    registry.task("once", max_attempts=1)(nothing)
    registry.task("quiet", events=False, queue="side")(nothing)
    registry.task("limited", max_running_per_key=KEY_LIMIT, limit_key="payload.key")(nothing)
    return registry


TASKS = """
SELECT task.id, task.status, task.attempt, task.retries, task.version, task.worker_id, task.queue_seq,
       task.cancel_requested_at IS NOT NULL AS asked, (task.finished_at IS NOT NULL) AS finished,
       array(SELECT log.attempt || ' ' || log.status FROM headrace.task_logs AS log
             WHERE log.task_id = task.id AND log.status <> 'LOG' ORDER BY log.id) AS logs,
       array(SELECT event_type::text FROM headrace.outbox_events WHERE aggregate_id = task.id ORDER BY id) AS events
FROM headrace.tasks AS task
"""
QUEUE = """
SELECT task_id, seq, worker, attempt, cancel_requested, limited, run_at <= now() AS due FROM headrace.task_queue
"""
WORKERS = "SELECT number, ending FROM headrace.workers"
TIME_PASSES = "UPDATE headrace.task_queue SET run_at = run_at - interval '2 hours' WHERE run_at > now()"
LAPSE = "UPDATE headrace.workers SET heartbeat_at = now() - interval '1 day' WHERE number = $1 AND ended_at IS NULL"
CLEAN = """
DELETE FROM headrace.task_queue; DELETE FROM headrace.task_logs; DELETE FROM headrace.outbox_events;
DELETE FROM headrace.idempotency_keys; DELETE FROM headrace.tasks; DELETE FROM headrace.workers;
DELETE FROM headrace.queues;
"""


@dataclass
class Op:
    """Something done: ``act`` does it to the database, ``fits`` to a model, given what came out; it may object.

    In a race it may come out in other ways, too.
    """

    act: Callable[[], Awaitable[Any]]
    fits: Callable[[Model, Any], None]
    name: str
    other_ways: Sequence[Callable[[Model, Any], None]] = ()


class Engine:
    """The real thing, on a database of its own; lives as long as the test."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.registry = make_registry()
        self.registry.freeze()
        self.followers = Followers({"outbox": OutboxFollower()})
        self.catalog = RegistryCatalog(self.registry)
        self.submitter = Submitter(self.catalog, self.followers)
        self.tasks = Tasks(self.submitter, self.catalog, self.followers)
        self.writer = Writer(db, self.registry, self.followers)
        self.reaper = Reaper(db, self.registry, self.followers)
        self.identities: dict[int, Identity] = {}
        self.reporters: dict[int, LeaseReporter] = {}

    async def prepare(self) -> None:
        async with self.db.transaction() as tx:
            await declare_types(tx, self.registry)
        await want(self.db)

    async def clean(self) -> None:
        async with self.db.transaction() as tx:
            await tx.execute(CLEAN)
        self.identities.clear()
        self.reporters.clear()

    async def submit(self, specs: Sequence[TaskSpec]) -> list[str]:
        async with self.db.transaction() as tx:
            return await self.submitter.submit_many(tx, specs, user_id=ids.SYSTEM_USER)

    async def seqs(self) -> dict[str, int]:
        rows = await self.db.fetch_alone("SELECT task_id, seq FROM headrace.task_queue")
        return {row["task_id"]: row["seq"] for row in rows}

    async def hire(self) -> int:
        async with self.db.transaction() as tx:
            worker = await enter(tx, self.registry.names, lease=FAR)
        self.identities[worker.number] = worker
        self.reporters[worker.number] = LeaseReporter(
            self.db, worker, self.registry, self.followers, self.writer, WorkerConfig()
        )
        return worker.number

    async def take(self, worker: int, most: int, *, once: bool) -> list[Claimed] | str:
        """Take what there is; ``once`` only of the first priority, for that is one transaction and the rest others."""
        claimer = Claimer(self.db, queues=None, types={"async": self.registry.names}, labels={})
        if once:
            await claimer._survey(frozenset({"async"}))
            claimer._lanes = [lane for lane in claimer._lanes if lane.precedence == claimer._lanes[0].precedence]
        try:
            rows = await claimer.claim(self.identities[worker], {"async": Room(most, most)})
        except WorkerGone:
            return "gone"
        return [_claimed(row) for row in rows]

    async def end(self, worker: int, endings: Sequence[Ending]) -> int:
        return await self.writer.write(self.identities[worker], endings)

    async def finish_in(self, worker: int, claim: Claimed, *, roll_back: bool) -> str:
        try:
            async with self.db.transaction() as tx:
                await self.reporters[worker].finish_in(claim, tx, {"by": worker})
                if roll_back:
                    raise _Undo
        except LeaseLost:
            return "lost"
        except _Undo:
            return "undone"
        return "done"

    async def report(self, worker: int, claim: Claimed, verb: str) -> str:
        reporter = self.reporters[worker]
        try:
            if verb == "progress":
                await reporter.progress(claim, 50, None)
            else:
                await reporter.log(claim, "half way")
        except LeaseLost:
            return "lost"
        return "done"

    async def by_hand(self, verb: Callable[..., Awaitable[Any]], task_id: str) -> str:
        try:
            async with self.db.transaction() as tx:
                return str((await verb(tx, self.tasks, ADMIN, task_id)).status)
        except (TaskOver, TaskNotOver, TaskChanged) as exc:
            return type(exc).__name__

    async def look(self) -> tuple[dict[str, Any], dict[str, Any], dict[int, str | None]]:
        async with self.db.transaction(isolation="repeatable_read", readonly=True) as tx:
            tasks = {row["id"]: dict(row) for row in await tx.fetch(TASKS)}
            queue: dict[str, Any] = {}
            for row in await tx.fetch(QUEUE):
                assert row["task_id"] not in queue, "two rows in the queue for one task"
                queue[row["task_id"]] = dict(row)
            workers = {row["number"]: row["ending"] for row in await tx.fetch(WORKERS)}
        return tasks, queue, workers

    async def check(self, model: Model) -> None:
        """Compare everything; ``Mismatch`` says what differs."""
        tasks, queue, workers = await self.look()
        expected = {task_id: self._row(task) for task_id, task in model.tasks.items()}
        found = {task_id: _found(row) for task_id, row in tasks.items()}
        waiting = {task_id: _place(task) for task_id, task in model.tasks.items() if task.seq is not None}
        places = {task_id: {name: row[name] for name in _PLACE} for task_id, row in queue.items()}
        endings = {number: None if state in ("alive", "lapsed") else state for number, state in model.workers.items()}
        compare("task", expected, found)
        compare("place", waiting, places)
        compare("worker", endings, workers)

    def _row(self, task: Task) -> dict[str, Any]:
        return {
            "status": task.status,
            "attempt": task.shown_attempt,
            "retries": task.retries,
            "version": task.version,
            "worker_id": None if task.shown_worker is None else self.identities[task.shown_worker].id,
            "queue_seq": task.seq,
            "finished": task.status in OVER,
            "logs": [f"{attempt} {word}" for attempt, word in task.logs],
            "events": [f"task.{event}" for event in task.events],
        }


def compare(word: str, ours: Mapping[Any, Any], theirs: Mapping[Any, Any]) -> None:
    for key in ours.keys() | theirs.keys():
        one, other = ours.get(key, "nothing"), theirs.get(key, "nothing")
        if one != other:
            raise Mismatch(f"{word} {key}:\n  model    {one}\n  database {other}")


class _Undo(Exception):
    pass


_PLACE = ("seq", "worker", "attempt", "cancel_requested", "limited", "due")


def _found(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in row if name not in ("id", "asked")}


def _place(task: Task) -> dict[str, Any]:
    return {
        "seq": task.seq,
        "worker": task.holder,
        "attempt": task.attempt,
        "cancel_requested": task.cancel_requested,
        "limited": task.holder is not None and task.type == "limited",
        "due": task.due,
    }
