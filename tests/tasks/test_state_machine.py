"""Everything that can be done to tasks, in any order and two at a time, against the database and against a plain model.

Each step does something for real, through the functions that workers, reapers and people use, and then all rows are
compared with the model. Claims are never forgotten: any later step may be that of a worker which lost its lease long
ago. In a race both ways round are allowed, and nothing else.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from headrace import ids
from headrace.audit import ActorType, Principal, PrincipalType, Who
from headrace.database import Database, DatabaseConfig
from headrace.edge import Caller, Role
from headrace.tasks.catalog import RegistryCatalog, declare_types
from headrace.tasks.context import TaskContext
from headrace.tasks.errors import LeaseLost, TaskChanged, TaskNotOver, TaskOver, WorkerGone
from headrace.tasks.events import OutboxFollower
from headrace.tasks.followers import Followers
from headrace.tasks.model import Claimed, Ending, ErrorCode, Outcome, TaskSpec
from headrace.tasks.queues import pause_queue, resume_queue
from headrace.tasks.reaping import Reaper
from headrace.tasks.registry import Registry
from headrace.tasks.service import Tasks, cancel_task, retry_task
from headrace.tasks.submit import Submitter
from headrace.tasks.worker import store
from headrace.tasks.worker.endings import Writer
from headrace.tasks.worker.feeding import _claimed
from headrace.tasks.worker.reporting import LeaseReporter
from headrace.tasks.worker.store import Identity
from headrace.tasks.worker.sweep import Sweep

FAR = timedelta(hours=1)
KEY_LIMIT = 2
ADMIN = Caller(
    Who(Principal(ids.SYSTEM_USER, "tester", PrincipalType.USER), ActorType.ADMIN, client_ip="192.0.2.7"),
    ids.SYSTEM_USER,
    Role.ADMIN,
)
OVER = {"SUCCEEDED", "FAILED", "CANCELED"}
BACK = {Outcome.RETRIED, Outcome.SNOOZED, Outcome.INTERRUPTED}
EVENT = {
    Outcome.SUCCEEDED: "succeeded",
    Outcome.FAILED: "failed",
    Outcome.CANCELED: "canceled",
    Outcome.RETRIED: "retried",
    Outcome.SNOOZED: "retried",
    Outcome.INTERRUPTED: "retried",
}


def make_registry() -> Registry:
    registry = Registry()

    async def nothing(context: TaskContext, payload: Any) -> None: ...

    registry.task("plain")(nothing)
    registry.task("once", max_attempts=1)(nothing)
    registry.task("quiet", events=False, queue="side")(nothing)
    registry.task("limited", max_running_per_key=KEY_LIMIT, limit_key="payload.key")(nothing)
    return registry


# -- the model


@dataclass
class Task:
    """A task as it must be."""

    type: str
    priority: int
    max_attempts: int
    key: str
    due: bool
    seq: int | None  # of its row in the queue, while it has one
    status: str = "QUEUED"
    attempt: int = 0  # of the queue's row
    shown_attempt: int = 0  # of its own row
    retries: int = 0
    version: int = 0
    holder: int | None = None
    shown_worker: int | None = None
    cancel_requested: bool = False
    logs: list[tuple[int, str]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    @property
    def queue(self) -> str:
        return "side" if self.type == "quiet" else "default"

    def tell(self, event: str) -> None:
        if self.type != "quiet":
            self.events.append(event)


class Mismatch(AssertionError):
    """The database did what the model does not allow."""


@dataclass
class Model:
    tasks: dict[str, Task] = field(default_factory=dict)
    workers: dict[int, str] = field(default_factory=dict)  # number → alive, lapsed, DEAD, STOPPED
    paused: set[str] = field(default_factory=set)

    def holds(self, worker: int, claim: Claimed) -> bool:
        task = self.tasks[claim.task_id]
        return (task.seq, task.holder, task.attempt) == (claim.seq, worker, claim.attempt)

    def held_by(self, worker: int) -> list[str]:
        return [task_id for task_id, task in self.tasks.items() if task.holder == worker]

    def running(self, key: str) -> int:
        return sum(
            task.holder is not None for task in self.tasks.values() if task.type == "limited" and task.key == key
        )

    def takeable(self, task: Task) -> bool:
        waits = task.seq is not None and task.holder is None and task.due and task.queue not in self.paused
        return waits and (task.type != "limited" or self.running(task.key) < KEY_LIMIT)

    def take(self, worker: int, claims: Sequence[Claimed]) -> None:
        for claim in claims:
            task = self.tasks[claim.task_id]
            if not self.takeable(task):
                raise Mismatch(f"{claim.task_id} was taken, but it is {task}")
            task.holder, task.attempt = worker, task.attempt + 1
            if (task.seq, task.attempt, task.retries) != (claim.seq, claim.attempt, claim.retries):
                raise Mismatch(f"{claim} was taken, but the task is {task}")

    def show(self, worker: int, claim: Claimed) -> None:
        task = self.tasks[claim.task_id]
        if self.holds(worker, claim) and task.status == "QUEUED":
            task.status, task.shown_attempt, task.shown_worker = "RUNNING", task.attempt, worker
            task.version += 1
            task.tell("started")

    def end(self, worker: int, claim: Claimed, outcome: Outcome, *, spends: bool, far: bool) -> bool:
        """An attempt ends; gives whether it was this worker's to end."""
        if not self.holds(worker, claim):
            return False
        task = self.tasks[claim.task_id]
        if outcome in BACK and task.cancel_requested:
            outcome = Outcome.CANCELED
        if task.status != "RUNNING":
            task.tell("started")
        task.tell(EVENT[outcome])
        task.logs.append((task.attempt, outcome))
        task.shown_attempt = task.attempt
        task.version += 1
        task.holder = None
        if outcome in BACK:
            task.status, task.shown_worker, task.due = "QUEUED", None, not far
            task.retries += spends
        else:
            task.status, task.shown_worker, task.seq = outcome, worker, None
        return True

    def untake(self, worker: int, claim: Claimed) -> bool:
        task = self.tasks[claim.task_id]
        if not self.holds(worker, claim) or task.cancel_requested:
            return False
        task.holder, task.attempt = None, task.attempt - 1
        return True

    def cancel(self, task_id: str) -> str:
        task = self.tasks[task_id]
        if task.status == "CANCELED":
            return "CANCELED"
        if task.status in OVER:
            return "TaskOver"
        if task.holder is not None:
            if not task.cancel_requested:
                task.cancel_requested = True
                task.version += 1
            return "RUNNING"
        task.status, task.seq = "CANCELED", None
        task.version += 1
        task.logs.append((0, "CANCELED"))
        task.tell("canceled")
        return "CANCELED"

    def retry(self, task_id: str, seq: int | None) -> str:
        task = self.tasks[task_id]
        if task.status not in OVER:
            return "TaskNotOver"
        if task.status == "SUCCEEDED":
            return "TaskOver"
        task.status, task.seq, task.attempt = "QUEUED", seq, task.shown_attempt
        task.retries, task.due, task.shown_worker, task.cancel_requested = 0, True, None, False
        task.version += 1
        task.logs.append((0, "RETRIED"))
        task.tell("retried")
        return "QUEUED"

    def reap(self, *, but_task: str | None = None, but_worker: int | None = None) -> tuple[int, int]:
        """Lapsed workers are given up, except what is locked; gives how many, and how many tasks they held."""
        settled = dead = 0
        for number in [number for number, state in self.workers.items() if state == "lapsed" and number != but_worker]:
            for task_id in self.held_by(number):
                if task_id != but_task:
                    self._lose(task_id, number)
                    settled += 1
            if not self.held_by(number):
                self.workers[number] = "DEAD"
                dead += 1
        return dead, settled

    def _lose(self, task_id: str, worker: int) -> None:
        task = self.tasks[task_id]
        assert task.seq is not None
        claim = _stub(task.seq, task_id, task.attempt)
        outcome = Outcome.INTERRUPTED if task.retries + 1 < task.max_attempts else Outcome.FAILED
        outcome = Outcome.CANCELED if task.cancel_requested else outcome
        self.end(worker, claim, outcome, spends=True, far=False)

    def stop(self, worker: int) -> bool:
        if self.workers[worker] in ("alive", "lapsed") and not self.held_by(worker):
            self.workers[worker] = "STOPPED"
            return True
        return False


def _stub(seq: int, task_id: str, attempt: int) -> Claimed:
    return Claimed(seq, task_id, attempt, "", "", None, 0, 1, None, None, datetime.now(UTC))


# -- the database


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
            worker = await store.register(
                tx,
                ids.new("wrk"),
                host="here",
                pid=1,
                queues=None,
                types=self.registry.names,
                labels={},
                concurrency=10,
                lease=FAR,
            )
        self.identities[worker.number] = worker
        self.reporters[worker.number] = LeaseReporter(
            self.db, worker, self.registry, self.followers, self.writer, 100_000
        )
        return worker.number

    async def take(self, worker: int, most: int, *, once: bool) -> list[Claimed] | str:
        """Take what there is; ``once`` only of the first priority, for that is one transaction and the rest others."""
        sweep = Sweep(self.db, queues=None, types=self.registry.names, labels={})
        if once:
            await sweep._survey()
            sweep._lanes = [lane for lane in sweep._lanes if lane.precedence == sweep._lanes[0].precedence]
        try:
            rows = await sweep.take(self.identities[worker], most=most, now_startable=most)
        except WorkerGone:
            return "gone"
        return [_claimed(row) for row in rows]

    async def end(self, worker: int, endings: Sequence[Ending]) -> int:
        while True:
            try:
                return await self.writer.write(self.identities[worker], endings)
            except store.TakenMeanwhile:
                continue  # as a worker does

    async def finish_in(self, worker: int, claim: Claimed, *, roll_back: bool) -> str:
        try:
            async with self.db.transaction() as tx:
                await self.reporters[worker].finish_in(tx, claim, {"by": worker})
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


# -- the machine

CHOICE = st.integers(min_value=0, max_value=999)
OUTCOMES = st.sampled_from(
    [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELED, Outcome.RETRIED, Outcome.SNOOZED, Outcome.INTERRUPTED]
)
SPECS = st.tuples(
    st.sampled_from(["plain", "once", "quiet", "limited", "limited"]),
    st.sampled_from([0, 0, 0, 5]),
    st.sampled_from([True, True, True, False]),  # due
    st.sampled_from("ab"),
)


class Machine(RuleBasedStateMachine):
    def __init__(self, run: Callable[[Awaitable[Any]], Any], engine: Engine) -> None:
        super().__init__()
        self._run = run
        self._engine = engine
        self._model = Model()
        self._claims: list[tuple[int, Claimed]] = []
        self._keys: list[tuple[TaskSpec, str]] = []

    def _do(self, op: Op) -> None:
        async def step() -> None:
            op.fits(self._model, await op.act())
            await self._engine.check(self._model)

        self._run(step())

    def _race(self, one: Op, other: Op) -> None:
        """Both at once: as if one had come first, or the other."""

        async def step() -> None:
            results = await asyncio.gather(one.act(), other.act())
            objections = []
            ways = product((one.fits, *one.other_ways), (other.fits, *other.other_ways))
            for fits, order in product(ways, ((0, 1), (1, 0))):
                model = copy.deepcopy(self._model)
                try:
                    for index in order:
                        fits[index](model, results[index])
                    await self._engine.check(model)
                except Mismatch as exc:
                    objections.append(f"{exc}")
                else:
                    self._model = model
                    return
            raise Mismatch(f"{one.name} and {other.name} gave {results}:\n" + "\n".join(objections))

        self._run(step())

    # Rules are chosen at random, and some runs have no submissions or no claims at all: so what a rule needs is made.

    def _worker(self, choice: int) -> int:
        """Mostly a living one."""
        alive = [number for number, state in self._model.workers.items() if state == "alive"]
        if not alive:
            self.hire()
            return list(self._model.workers)[-1]
        some = alive if choice % 5 else list(self._model.workers)
        return some[choice % len(some)]

    def _task(self, choice: int) -> str:
        """Any, but mostly one of the last."""
        if not self._model.tasks:
            self._do(self._submitting([("plain", 0, True, "a"), ("limited", 0, True, "b")]))
        some = list(self._model.tasks) if choice % 4 == 0 else list(self._model.tasks)[-5:]
        return some[choice % len(some)]

    def _claim(self, choice: int) -> tuple[int, Claimed]:
        """Mostly one that holds; often one that was lost, perhaps long ago."""
        held = [(worker, claim) for worker, claim in self._claims if self._model.holds(worker, claim)]
        if not held:
            for queue in list(self._model.paused):
                self.pause_or_resume(queue)
            types = ("plain", "once", "quiet", "limited")
            self._do(self._submitting([(types[choice % 4], choice % 2, True, "a"), ("plain", 0, True, "a")]))
            self._do(self._taking(self._worker(1), 5, alone=True))
            held = self._claims[-1:]
        some = self._claims if choice % 4 == 0 else held
        return some[choice % len(some)]

    @initialize()
    def begin(self) -> None:
        self._run(self._engine.clean())
        self._model.workers[self._run(self._engine.hire())] = "alive"

    # -- what may happen

    def _submitting(self, specs: Sequence[tuple[str, int, bool, str]], *, key: str | None = None) -> Op:
        later = datetime.now(UTC) + FAR
        given = [
            TaskSpec(
                name,
                {"key": group},
                priority=priority,
                run_at=None if due else later,
                idempotency_key=None if key is None else f"{key}{number}",
            )
            for number, (name, priority, due, group) in enumerate(specs)
        ]

        async def act() -> tuple[list[str], dict[str, int]]:
            made = await self._engine.submit(given)
            return made, await self._engine.seqs()

        def fits(model: Model, made: tuple[list[str], dict[str, int]]) -> None:
            for (name, priority, due, group), task_id in zip(specs, made[0], strict=True):
                model.tasks[task_id] = Task(
                    name, priority, 1 if name == "once" else 3, group, due, made[1][task_id], events=[]
                )
                model.tasks[task_id].tell("created")

        return Op(act, fits, "submit")

    def _taking(self, worker: int, most: int, *, alone: bool) -> Op:
        async def act() -> list[Claimed] | str:
            taken = await self._engine.take(worker, most, once=not alone)
            if not isinstance(taken, str):
                self._claims += [(worker, claim) for claim in taken]
            return taken

        def fits(model: Model, taken: list[Claimed] | str) -> None:
            if isinstance(taken, str) or model.workers[worker] not in ("alive", "lapsed"):
                # Whoever finds nothing to take is not told that it is a worker no more; its heart is.
                if taken == "gone" and model.workers[worker] in ("alive", "lapsed"):
                    raise Mismatch("a living worker was told that it is gone")
                if taken and taken != "gone":
                    raise Mismatch("a dead worker took something")
                return
            could = sum(map(model.takeable, model.tasks.values()))
            first = _first_of_lanes(model)
            model.take(worker, taken)
            if len(taken) > most or (alone and could and not taken):
                raise Mismatch(f"{len(taken)} taken of {could}, with room for {most}")
            if alone and any(_lane(model.tasks[claim.task_id]) in first for claim in taken[:1]):
                head = taken[0].task_id
                if first[_lane(model.tasks[head])] != head:
                    raise Mismatch(f"{head} was taken before its turn")

        return Op(act, fits, f"take by {worker}")

    def _ending(self, worker: int, claims: Sequence[Claimed], outcome: Outcome, *, spends: bool, far: bool) -> Op:
        endings = [
            Ending(
                claim,
                outcome,
                error_code=None if outcome is Outcome.SUCCEEDED else ErrorCode.ERROR,
                delay=FAR if far else timedelta(0),
                spends_attempt=spends,
            )
            for claim in claims
        ]

        def fits(model: Model, written: int) -> None:
            count = sum(model.end(worker, claim, outcome, spends=spends, far=far) for claim in claims)
            if count != written:
                raise Mismatch(f"{written} were written, {count} were ours")

        return Op(lambda: self._engine.end(worker, endings), fits, f"{outcome} by {worker}")

    def _canceling(self, task_id: str, *, alone: bool) -> Op:
        def fits(model: Model, said: str) -> None:
            if said == "TaskChanged" and not alone:
                return
            if said != (expected := model.cancel(task_id)):
                raise Mismatch(f"cancel said {said}, not {expected}")

        return Op(lambda: self._engine.by_hand(cancel_task, task_id), fits, "cancel")

    def _retrying(self, task_id: str, *, alone: bool) -> Op:
        async def act() -> tuple[str, dict[str, int]]:
            return await self._engine.by_hand(retry_task, task_id), await self._engine.seqs()

        def fits(model: Model, said: tuple[str, dict[str, int]]) -> None:
            if said[0] == "TaskChanged" and not alone:
                return
            if said[0] != (expected := model.retry(task_id, said[1].get(task_id))):
                raise Mismatch(f"retry said {said[0]}, not {expected}")

        return Op(act, fits, "retry by hand")

    def _reaping(self, *, against: Claimed | int | None = None) -> Op:
        """What somebody else has locked at the moment, a claim or a worker, may be left out."""

        async def act() -> tuple[int, int]:
            reaped = await self._engine.reaper.run_once()
            return reaped.workers, reaped.tasks

        def all_but(**left: Any) -> Callable[[Model, tuple[int, int]], None]:
            def fits(model: Model, reaped: tuple[int, int]) -> None:
                if reaped != (expected := model.reap(**left)):
                    raise Mismatch(f"reaped {reaped}, not {expected}")

            return fits

        left = {"but_task": against.task_id} if isinstance(against, Claimed) else {"but_worker": against}
        return Op(act, all_but(), "reap", other_ways=[all_but(**left)])

    # -- alone

    @rule(specs=st.lists(SPECS, min_size=1, max_size=4))
    def submit(self, specs: list[tuple[str, int, bool, str]]) -> None:
        self._do(self._submitting(specs))

    @rule()
    def hire(self) -> None:
        if sum(state == "alive" for state in self._model.workers.values()) >= 3:
            return
        self._model.workers[self._run(self._engine.hire())] = "alive"

    @rule(choice=CHOICE, most=st.integers(1, 5))
    def take(self, choice: int, most: int) -> None:
        self._do(self._taking(self._worker(choice), most, alone=True))

    @rule(choice=CHOICE, outcome=OUTCOMES, spends=st.booleans(), far=st.booleans())
    def end(self, choice: int, outcome: Outcome, spends: bool, far: bool) -> None:
        worker, claim = self._claim(choice)
        self._do(self._ending(worker, [claim], outcome, spends=spends, far=far))

    @rule(choice=CHOICE, outcome=OUTCOMES)
    def end_all_that_a_worker_ever_took(self, choice: int, outcome: Outcome) -> None:
        worker, _ = self._claim(choice)
        latest = {claim.seq: claim for number, claim in self._claims if number == worker}
        self._do(self._ending(worker, list(latest.values()), outcome, spends=True, far=False))

    @rule(choice=CHOICE)
    def show_start(self, choice: int) -> None:
        worker, claim = self._claim(choice)

        def fits(model: Model, _: Any) -> None:
            model.show(worker, claim)

        self._do(Op(lambda: self._engine.reporters[worker].start([claim]), fits, "start"))

    @rule(choice=CHOICE, verb=st.sampled_from(["progress", "log"]))
    def report(self, choice: int, verb: str) -> None:
        worker, claim = self._claim(choice)
        known = claim.start_told

        def fits(model: Model, said: str) -> None:
            if verb == "progress" and not known:
                model.show(worker, claim)
            held = model.holds(worker, claim)
            if said != ("done" if held else "lost"):
                raise Mismatch(f"{verb} was {said}, and the lease was {'held' if held else 'lost'}")
            if held and verb == "progress":
                task = model.tasks[claim.task_id]
                task.version += 1
                task.status, task.shown_attempt, task.shown_worker = "RUNNING", task.attempt, worker

        self._do(Op(lambda: self._engine.report(worker, claim, verb), fits, verb))

    @rule(choice=CHOICE, roll_back=st.booleans())
    def finish_in(self, choice: int, roll_back: bool) -> None:
        worker, claim = self._claim(choice)

        def fits(model: Model, said: str) -> None:
            tried = copy.deepcopy(model) if roll_back else model
            ours = tried.end(worker, claim, Outcome.SUCCEEDED, spends=True, far=False)
            if said != (expected := ("undone" if roll_back else "done") if ours else "lost"):
                raise Mismatch(f"finishing was {said}, not {expected}")

        self._do(Op(lambda: self._engine.finish_in(worker, claim, roll_back=roll_back), fits, "finish_in"))

    @rule(choice=CHOICE)
    def untake(self, choice: int) -> None:
        worker, claim = self._claim(choice)
        if self._model.holds(worker, claim) and self._model.tasks[claim.task_id].status != "QUEUED":
            return  # a worker gives back only what it has not started

        def fits(model: Model, went: set[int]) -> None:
            if bool(went) != model.untake(worker, claim):
                raise Mismatch(f"{went} went back")

        self._do(Op(lambda: store.untake(self._engine.db, self._engine.identities[worker], [claim]), fits, "untake"))
        # Its number is given out again: what was never started must not look like a later start.
        self._claims.remove((worker, claim))

    @rule(choice=CHOICE)
    def cancel(self, choice: int) -> None:
        self._do(self._canceling(self._task(choice), alone=True))

    @rule(choice=CHOICE)
    def retry_by_hand(self, choice: int) -> None:
        self._do(self._retrying(self._task(choice), alone=True))

    @rule(choice=CHOICE)
    def lapse(self, choice: int) -> None:
        worker = self._worker(choice)

        async def act() -> Any:
            await self._engine.db.fetch_alone(LAPSE, worker)
            return await self._engine.db.fetch_alone(store.BEAT, worker, 0, 0)

        def fits(model: Model, beat: Any) -> None:
            if beat:
                raise Mismatch("a lease that was over went on")
            if model.workers[worker] == "alive":
                model.workers[worker] = "lapsed"

        self._do(Op(act, fits, "lapse"))

    @rule()
    def reap(self) -> None:
        self._do(self._reaping())

    @rule(choice=CHOICE)
    def stop(self, choice: int) -> None:
        worker = self._worker(choice)

        def fits(model: Model, stopped: bool) -> None:
            if stopped != model.stop(worker):
                raise Mismatch(f"stopped: {stopped}")

        self._do(Op(lambda: store.say_stopped(self._engine.db, self._engine.identities[worker]), fits, "stop"))

    @rule(queue=st.sampled_from(["default", "side", "side"]))
    def pause_or_resume(self, queue: str) -> None:
        verb = resume_queue if queue in self._model.paused else partial(pause_queue, create=True)

        async def act() -> None:
            async with self._engine.db.transaction() as tx:
                await verb(tx, ADMIN, queue)

        def fits(model: Model, _: Any) -> None:
            model.paused ^= {queue}

        self._do(Op(act, fits, "pause"))

    @rule()
    def time_passes(self) -> None:
        def fits(model: Model, _: Any) -> None:
            for task in model.tasks.values():
                task.due = True

        self._do(Op(lambda: self._engine.db.fetch_alone(TIME_PASSES), fits, "time"))

    @rule(spec=SPECS, again=st.booleans())
    def submit_with_a_key(self, spec: tuple[str, int, bool, str], again: bool) -> None:
        """The same key twice is the same task, whatever became of it."""
        if again and self._keys:
            known, task_id = self._keys[-1]
            assert self._run(self._engine.submit([known])) == [task_id]
            self._run(self._engine.check(self._model))
            return
        name, priority, _, group = spec
        given = TaskSpec(name, {"key": group}, priority=priority, idempotency_key=ids.new("key"))
        (task_id,) = self._run(self._engine.submit([given]))
        seq = self._run(self._engine.seqs())[task_id]
        task = Task(name, priority, 1 if name == "once" else 3, group, True, seq)
        task.tell("created")
        self._model.tasks[task_id] = task
        self._keys.append((given, task_id))
        self._run(self._engine.check(self._model))

    # -- two at once

    @rule(one=CHOICE, other=CHOICE, most=st.integers(1, 5))
    def two_take(self, one: int, other: int, most: int) -> None:
        self._race(
            self._taking(self._worker(one), most, alone=False), self._taking(self._worker(other), most, alone=False)
        )

    @rule(choice=CHOICE, outcome=OUTCOMES)
    def an_end_and_a_cancellation(self, choice: int, outcome: Outcome) -> None:
        worker, claim = self._claim(choice)
        self._race(
            self._ending(worker, [claim], outcome, spends=True, far=False),
            self._canceling(claim.task_id, alone=False),
        )

    @rule(choice=CHOICE, outcome=OUTCOMES)
    def an_end_and_a_reaper(self, choice: int, outcome: Outcome) -> None:
        worker, claim = self._claim(choice)
        self._lapse_quietly(worker)
        self._race(self._ending(worker, [claim], outcome, spends=True, far=False), self._reaping(against=claim))
        self._do(self._reaping())  # what was locked for a moment is left to a later look

    @rule(choice=CHOICE)
    def a_cancellation_and_a_reaper(self, choice: int) -> None:
        worker, claim = self._claim(choice)
        self._lapse_quietly(worker)
        self._race(self._canceling(claim.task_id, alone=False), self._reaping(against=claim))
        self._do(self._reaping())

    @rule(choice=CHOICE, most=st.integers(1, 5))
    def a_claim_and_a_reaper(self, choice: int, most: int) -> None:
        worker = self._worker(choice)
        self._lapse_quietly(worker)
        self._race(self._taking(worker, most, alone=False), self._reaping(against=worker))
        self._do(self._reaping())

    @rule(choice=CHOICE, worker=CHOICE)
    def a_claim_and_a_cancellation(self, choice: int, worker: int) -> None:
        self._race(self._taking(self._worker(worker), 5, alone=False), self._canceling(self._task(choice), alone=False))

    @rule(choice=CHOICE)
    def an_end_twice(self, choice: int) -> None:
        """The same claim ends twice at once: a worker that does not know whether its first word arrived."""
        worker, claim = self._claim(choice)
        self._race(
            self._ending(worker, [claim], Outcome.SUCCEEDED, spends=True, far=False),
            self._ending(worker, [claim], Outcome.RETRIED, spends=True, far=True),
        )

    @rule(choice=CHOICE)
    def two_retries_by_hand(self, choice: int) -> None:
        task_id = self._task(choice)
        self._race(self._retrying(task_id, alone=False), self._retrying(task_id, alone=False))

    def _lapse_quietly(self, worker: int) -> None:
        self._run(self._engine.db.fetch_alone(LAPSE, worker))
        if self._model.workers[worker] == "alive":
            self._model.workers[worker] = "lapsed"


def _lane(task: Task) -> tuple[object, ...]:
    return task.type, task.priority, task.key if task.type == "limited" else ""


def _first_of_lanes(model: Model) -> dict[tuple[object, ...], str]:
    """Of each lane that never had anything put back: there the order of submission is the order of taking."""
    lanes: dict[tuple[object, ...], list[str]] = {}
    for task_id, task in model.tasks.items():
        if task.seq is not None and task.holder is None:
            lanes.setdefault(_lane(task), []).append(task_id)
    return {
        lane: waiting[0]
        for lane, waiting in lanes.items()
        if all(model.tasks[task_id].due and not model.tasks[task_id].logs for task_id in waiting)
    }


@pytest.fixture
def engine(database_url: str) -> Iterator[tuple[Callable[[Awaitable[Any]], Any], Engine]]:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        db = loop.run_until_complete(Database.connect(DatabaseConfig(database_url, role="test", pool_max=4)))
        real = Engine(db)
        loop.run_until_complete(real.prepare())
        yield loop.run_until_complete, real
        loop.run_until_complete(db.close())


def drive(engine: tuple[Callable[[Awaitable[Any]], Any], Engine], *, examples: int, steps: int, again: bool) -> None:
    run_state_machine_as_test(
        lambda: Machine(*engine),  # type: ignore[arg-type] # any factory will do
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=again,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            # A race may go the other way next time: a failure cannot be made smaller, its steps are the report.
            phases=[Phase.generate],
        ),
    )


def test_the_engine_does_what_the_model_says(engine: tuple[Callable[[Awaitable[Any]], Any], Engine]) -> None:
    drive(engine, examples=20, steps=40, again=True)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_engine_does_what_the_model_says_for_thousands_of_steps(
    engine: tuple[Callable[[Awaitable[Any]], Any], Engine],
) -> None:
    drive(engine, examples=200, steps=60, again=False)
