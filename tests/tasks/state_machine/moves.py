"""What may happen to tasks, each as a move: it is made on the database and on the model, alone or two at a time."""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from headrace.tasks.model import Claimed, Ending, ErrorCode, Outcome, TaskSpec
from headrace.tasks.queues import pause_queue, resume_queue
from headrace.tasks.service import cancel_task, retry_task
from tests.tasks.state_machine.engine import ADMIN, FAR, LAPSE, Engine, Op
from tests.tasks.state_machine.model import Mismatch, Model, Task


class Moves(RuleBasedStateMachine):
    """The state of a run, what it can do, and what a rule of it needs."""

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

    # -- what others need, and is a rule as well

    @rule()
    def hire(self) -> None:
        if sum(state == "alive" for state in self._model.workers.values()) >= 3:
            return
        self._model.workers[self._run(self._engine.hire())] = "alive"

    @rule(queue=st.sampled_from(["default", "side", "side"]))
    def pause_or_resume(self, queue: str) -> None:
        verb = resume_queue if queue in self._model.paused else partial(pause_queue, create=True)

        async def act() -> None:
            async with self._engine.db.transaction() as tx:
                await verb(tx, ADMIN, queue)

        def fits(model: Model, _: Any) -> None:
            model.paused ^= {queue}

        self._do(Op(act, fits, "pause"))

    def _lapse_quietly(self, worker: int) -> None:
        self._run(self._engine.db.fetch_alone(LAPSE, worker))
        if self._model.workers[worker] == "alive":
            self._model.workers[worker] = "lapsed"


def _lane(task: Task) -> tuple[object, ...]:
    return task.type, task.priority, task.key if task.type == "limited" else ""


def _first_of_lanes(model: Model) -> dict[tuple[object, ...], str]:
    """The first task of each lane without returned or delayed tasks: it is claimed in the order of submission."""
    lanes: dict[tuple[object, ...], list[str]] = {}
    for task_id, task in model.tasks.items():
        if task.seq is not None and task.holder is None:
            lanes.setdefault(_lane(task), []).append(task_id)
    return {
        lane: waiting[0]
        for lane, waiting in lanes.items()
        if all(_keeps_its_place(model.tasks[task_id]) for task_id in waiting)
    }


def _keeps_its_place(task: Task) -> bool:
    return task.due and not task.was_delayed and not task.logs
