"""The rules by which moves are chosen: one alone, or two at once."""

import copy
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from headrace import ids
from headrace.tasks.model import Outcome, TaskSpec
from headrace.tasks.worker import store
from tests.tasks.state_machine.engine import LAPSE, TIME_PASSES, Op
from tests.tasks.state_machine.model import Mismatch, Model, Task
from tests.tasks.state_machine.moves import Moves

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


class Machine(Moves):
    # -- alone

    @rule(specs=st.lists(SPECS, min_size=1, max_size=4))
    def submit(self, specs: list[tuple[str, int, bool, str]]) -> None:
        self._do(self._submitting(specs))

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
        known = claim.start_reported

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
    def unclaim(self, choice: int) -> None:
        worker, claim = self._claim(choice)
        if self._model.holds(worker, claim) and self._model.tasks[claim.task_id].status != "QUEUED":
            return  # a worker gives back only what it has not started

        def fits(model: Model, went: set[int]) -> None:
            if bool(went) != model.unclaim(worker, claim):
                raise Mismatch(f"{went} went back")

        self._do(Op(lambda: store.unclaim(self._engine.db, self._engine.identities[worker], [claim]), fits, "unclaim"))
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
            return await self._engine.db.fetch_alone(store.BEAT, worker, 0, 0, {})

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

    @rule()
    def time_passes(self) -> None:
        def fits(model: Model, _: Any) -> None:
            for task in model.tasks.values():
                task.was_delayed |= not task.due
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
