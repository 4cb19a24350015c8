"""The worker: one process, one event loop; it claims ahead, runs, and writes behind, on connections of their own."""

import asyncio
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from headrace import ids, logs
from headrace.database import Database
from headrace.database_errors import DatabaseUnavailable
from headrace.errors import HeadraceError
from headrace.figures import Figure
from headrace.tasks import settling
from headrace.tasks.catalog import known_type
from headrace.tasks.context import Facts, forget_scratch
from headrace.tasks.followers import Followers
from headrace.tasks.model import Claimed, Ending, Outcome
from headrace.tasks.reaping import Reaper
from headrace.tasks.registry import Registry
from headrace.tasks.worker import store
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.declaring import declare_patiently
from headrace.tasks.worker.endings import FINAL, Writer
from headrace.tasks.worker.feeding import Feeder
from headrace.tasks.worker.figures import Figures, blocked_figure, slots_figure
from headrace.tasks.worker.handing_over import fall_silent
from headrace.tasks.worker.heartbeat import Heartbeat
from headrace.tasks.worker.isolated import Isolated
from headrace.tasks.worker.reporting import LeaseReporter
from headrace.tasks.worker.result_files import ResultStore
from headrace.tasks.worker.runs import Run, StopReason, ending_when_stopped, execute
from headrace.tasks.worker.slots import Load, Slots
from headrace.tasks.worker.starts import Starts
from headrace.tasks.worker.store import Counts, Identity
from headrace.tasks.worker.writing import WriteBehind

log = logs.get(__name__)

# How often the lease and the deadlines of what runs are watched; and the lease while nothing runs.
_TICK_S = 0.05
_IDLE_TICK_S = 1.0
# No-op handlers never wait: after this many in a row the loop gets a turn, so that claims and writes continue.
_TURNS = 100
# How long a worker that stops waits for ends that are blocked, once all else is over.
_BLOCKED_PATIENCE_S = 2.0
# A worker that starts while the database is away tries again after this.
_JOIN_AGAIN_S = 1.0


class Worker:
    """Runs tasks until ``stop`` is called. ``run`` returns when everything is settled."""

    def __init__(
        self,
        db: Database,
        registry: Registry,
        followers: Followers,
        config: WorkerConfig,
        *,
        results: ResultStore | None = None,
    ) -> None:
        registry.freeze()
        followers.require(map(known_type, registry))
        self._db = db
        self._registry = registry
        self._followers = followers
        self._config = config
        self._results = results
        self.figures = Figures(registry.names)
        self._writer = Writer(db, registry, followers, wrote=self.figures.wrote)
        self._isolated = Isolated(config)
        self._load = Load(config, registry)
        self._stopping = False
        self._settled = asyncio.Event()
        self._runners: set[asyncio.Task[None]] = set()
        self._closed = False
        # Runners of handlers that ignore every request to stop, while they run. The loop does not wait for them.
        self.abandoned: set[asyncio.Task[None]] = set()
        self._ends = WriteBehind(
            self._writer,
            config,
            self.figures,
            worker=lambda: self.identity,
            more_to_come=lambda: bool(self._load.prefetched),
            wrote=self._on_written,
        )
        self._reaper = Reaper(db, registry, followers)
        self.identity: Identity
        self._heartbeat: Heartbeat
        self._feeder = Feeder(
            db,
            config,
            load=self._load,
            ends=self._ends,
            gone=self._given_up,
        )
        self._reporter: LeaseReporter
        self._starts = Starts(self._load, lambda: self._reporter)
        self._lease_lost = asyncio.Event()

    @property
    def running(self) -> int:
        return len(self._load.runs)

    @property
    def blocked_ends(self) -> int:
        """How many ends wait for another transaction that has locked the units of the tasks' owners."""
        return len(self._ends.blocked)

    def reasons_not_ready(self) -> list[str]:
        """Why this worker runs nothing new, for probes and people; empty while it does."""
        if self._lease_lost.is_set():
            return ["Its lease is lost; it takes tasks again when the database lets it in."]
        return [] if (failure := self._feeder.failure) is None else [f"It cannot claim tasks: {failure}"]

    def read_figures(self) -> list[Figure]:
        """What this worker does and has done, for `/metrics`."""
        return [
            *self.figures.read(),
            slots_figure(self._load),
            blocked_figure(self.blocked_ends),
            *self._reaper.read_figures(),
        ]

    # -- life

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop``, then return unstarted tasks, wait for the rest, and settle it."""
        if not await self._join(stop):
            return
        try:
            await self._work_until(stop)
        finally:
            # Also when a loop of ours died: a heartbeat that continued would keep orphaned tasks from other workers.
            await self._heartbeat.stop()
            await self._isolated.close()
        with suppress(HeadraceError):
            if not await store.say_stopped(self._db, self.identity):
                log.warning("worker.not_settled", worker_id=self.identity.id)
                await fall_silent(self._db, self.identity)

    async def _join(self, stop: asyncio.Event) -> bool:
        """Become a worker, as soon as the database answers; False if it is to stop before that."""
        while not stop.is_set():
            try:
                await declare_patiently(self._db, self._registry)
                await self._enter()
            except DatabaseUnavailable as exc:
                log.warning("worker.waits_for_database", error=exc.code)
            else:
                return True
            with suppress(TimeoutError):
                async with asyncio.timeout(_JOIN_AGAIN_S):
                    await stop.wait()
        return False

    async def _work_until(self, stop: asyncio.Event) -> None:
        self._runner_failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            await self._loop_until(stop)
        finally:
            await self._cancel_runners()

    async def _loop_until(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(self._feeder.run(), name="feed"),
                group.create_task(self._watch_runs(), name="watch runs"),
                group.create_task(self._enter_again(), name="enter again"),
                group.create_task(self._starts.run(), name="show starts"),
                group.create_task(self._poll_cancels(), name="poll cancels"),
                group.create_task(self._ends.run(), name="write endings"),
                group.create_task(self._ends.blocked.run(), name="write blocked endings"),
                group.create_task(self._reaper.run(self._config.beat_every), name="reap"),
                group.create_task(self._watch_runners(), name="watch runners"),
                group.create_task(
                    settling.run(self._db, self._registry.names, self._config.beat_every), name="settle early tasks"
                ),
            ]
            for slots in self._load:
                for _ in range(slots.size):
                    self._add_runner(slots)
            await stop.wait()
            await self._wind_down()
            for task in loops:
                task.cancel()

    async def _cancel_runners(self) -> None:
        """Cancel the runners. One that ignores it gets its grace and is abandoned: it must not block the worker."""
        self._closed = True
        grace = max((run.grace.total_seconds() for run in self._load.runs.values()), default=0.0)
        for runner in self._runners:
            runner.cancel()
        if self._runners:
            await asyncio.wait(self._runners, timeout=grace + 1)
        self.abandoned |= self._runners
        if self.abandoned:
            log.error("worker.handlers_left", worker_id=self.identity.id, count=len(self.abandoned))

    async def _enter(self) -> None:
        """Register as a worker, or as another one after other workers declared this one dead."""
        config = self._config
        async with self._db.transaction() as tx:
            self.identity = await store.register(
                tx,
                ids.new("wrk"),
                host=socket.gethostname(),
                pid=os.getpid(),
                queues=config.queues,
                labels=dict(config.labels),
                slots=[(slots.pool, slots.size, slots.types) for slots in self._load],
                lease=config.lease,
            )
        self._heartbeat = Heartbeat(
            self._db.config,
            self.identity,
            config.lease,
            self._counts,
            notified=self._feeder.notified if config.listen else None,
        )
        self._heartbeat.start()
        self._reporter = LeaseReporter(
            self._db, self.identity, self._registry, self._followers, self._writer, config, self._results
        )
        self._feeder.enter(self.identity)
        log.info("worker.entered", worker_id=self.identity.id, types=len(self._registry))

    async def _wind_down(self) -> None:
        self._stopping = True
        log.info(
            "worker.stopping",
            worker_id=self.identity.id,
            running=len(self._load.runs),
            prefetched=len(self._load.prefetched),
        )
        with suppress(HeadraceError):
            await store.say_stopping(self._db, self.identity)
        for each in await self._feeder.stop():
            self._ends.add(Ending(each, Outcome.CANCELED))
        await self._until_settled(self._config.shutdown_timeout.total_seconds())
        for run in self._load.runs.values():
            run.ask_to_stop(StopReason.SHUTDOWN)
        # A handler that does not stop within its grace is abandoned; then nothing runs any more and all is written.
        grace = max((run.grace.total_seconds() for run in self._load.runs.values()), default=0.0)
        await self._until_settled(grace + 10)
        # The transaction that blocks them may stay open for longer than an operator waits for a worker to stop.
        await self._until(lambda: not self.blocked_ends, _BLOCKED_PATIENCE_S)
        await self._ends.hand_over()

    async def _until_settled(self, seconds: float) -> None:
        await self._until(lambda: not self._load.runs and not self._ends.unwritten, seconds)

    async def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait, but no longer than this, for the end of a run or a write."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    self._settled.clear()
                    await self._settled.wait()

    # -- running

    def _given_up(self) -> None:
        self._heartbeat.given_up = True  # the next tick sees it

    def _add_runner(self, slots: Slots) -> None:
        # Not in the group, which waits for all of its own: a handler may never end.
        runner = asyncio.create_task(self._run_tasks(slots), name="run")
        self._runners.add(runner)
        runner.add_done_callback(self._runner_ended)

    def _runner_ended(self, runner: "asyncio.Task[None]") -> None:
        self._runners.discard(runner)
        self.abandoned.discard(runner)
        if not runner.cancelled() and (fault := runner.exception()) is not None and not self._runner_failure.done():
            self._runner_failure.set_exception(fault)

    async def _watch_runners(self) -> None:
        """A runner that dies takes the worker down, as any other loop does."""
        await self._runner_failure

    async def _run_tasks(self, slots: Slots) -> None:
        me = asyncio.current_task()
        assert me is not None
        turns = 0
        while True:
            while not slots.prefetched or self._ends.full:
                self._feeder.freed(slots)
                slots.idle.append(waiting := asyncio.get_running_loop().create_future())
                await waiting
            claimed = slots.prefetched.popleft()
            self._feeder.freed()
            if self._ends.blocked.is_held(claimed.user_id):
                self._feeder.put_back(claimed)
                continue
            run = self._begin(claimed, me)
            ending = await execute(run, self._reporter, self._isolated, self._config)
            if run.abandoned or self._closed:
                return  # given up long ago, and another runner has this one's place; or the worker has ended
            run.task = None
            while me.cancelling():
                me.uncancel()
            self._over(run, ending)
            turns += 1
            if turns % _TURNS == 0:
                await asyncio.sleep(0)

    def _begin(self, claimed: Claimed, me: "asyncio.Task[None]") -> Run:
        task_type = self._registry.get(claimed.task_type)
        facts = Facts(claimed, task_type.steps, self._config.scratch, stop := asyncio.Event())
        on_loop = me if task_type.isolation == "async" else None
        run = Run(claimed, task_type, facts, stop, time.monotonic(), task=on_loop)
        # It may have waited behind slow ones; its deadline counts from here, or from when it has a process.
        run.begin()
        run.waiting = task_type.isolation == "process"
        self._load.begin(run)
        self.figures.began(claimed.task_type)
        return run

    def _over(self, run: Run, ending: Ending | None) -> None:
        took = time.monotonic() - run.started
        self._load.end(run, took)
        self.figures.ended(run.claimed.task_type, took)
        if ending is None or run.reason is StopReason.LEASE_LOST:
            self._settled.set()
            return
        if ending.outcome in FINAL and run.facts.scratch_made:
            forget_scratch(self._config.scratch, run.claimed.task_id)
        self._ends.add(ending)

    def _on_written(self) -> None:
        self._settled.set()
        self._feeder.freed()
        for slots in self._load:
            slots.wake_runners()

    async def _watch_runs(self) -> None:
        """Watch the lease and the deadlines by our own clock. It awaits nothing else: a database that does not answer
        must not keep what runs from being stopped."""
        while True:
            await self._tick()
            self._heartbeat.loop_turned()
            if self._heartbeat.lost and not self._lease_lost.is_set():
                self._drop_lease()
            for run in list(self._load.runs.values()):
                if run.out_of_time:
                    run.ask_to_stop(StopReason.TIMEOUT)
                if run.overdue and run.task is not None:
                    self._abandon(run)

    async def _tick(self) -> None:
        """Ten idle workers on one machine must not wake it 200 times a second."""
        if self._load.runs or self._load.prefetched:
            await asyncio.sleep(_TICK_S)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(min(_IDLE_TICK_S, self._heartbeat.margin.total_seconds() / 2)):
                await self._load.running.wait()

    def _drop_lease(self) -> None:
        """The lease is over, or will be in a moment: nothing that was claimed is ours any more."""
        self._lease_lost.set()
        self.figures.leases_lost += 1
        log.warning("worker.lease_lost", worker_id=self.identity.id, running=len(self._load.runs))
        self._feeder.worker = None
        self._load.drop_prefetched()
        self._ends.drop()
        for run in list(self._load.runs.values()):
            run.lose_lease(self._heartbeat.margin)

    def _counts(self) -> Counts:
        """For the heartbeat, in its thread."""
        return Counts({slots.pool: slots.running for slots in self._load}, self.figures.finished)

    async def _enter_again(self) -> None:
        """Become another worker after the lease was lost, as soon as the database answers."""
        while True:
            await self._lease_lost.wait()
            if self._stopping:
                return
            try:
                await self._heartbeat.stop()
                await self._enter()
                self._ends.drop()  # what a write under way has set aside meanwhile
            except HeadraceError as exc:
                log.warning("worker.not_entered", error=exc.code)
                await asyncio.sleep(_JOIN_AGAIN_S)
            else:
                self._lease_lost.clear()

    def _abandon(self, run: Run) -> None:
        """A handler on the loop that does not stop cannot be killed: record its end, and let nothing it does count."""
        log.error("task.abandoned", task_id=run.claimed.task_id, attempt=run.claimed.attempt, reason=run.reason)
        run.abandoned = True
        assert run.task is not None  # only those on the loop are
        self._runners.discard(run.task)
        self.abandoned.add(run.task)
        self._over(run, ending_when_stopped(run))
        self._add_runner(self._load.of(run.claimed.task_type))

    async def _poll_cancels(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.poll_every.total_seconds()):
                    await self._feeder.cancels.wait()
            self._feeder.cancels.clear()
            if not self._load.runs and not self._load.prefetched:
                continue
            try:
                wanted = await store.cancels(self._db, self.identity)
            except HeadraceError as exc:
                log.warning("worker.cancels_unread", error=exc.code)
                continue
            self._cancel(wanted)

    def _cancel(self, seqs: set[int]) -> None:
        for run in self._load.runs.values():
            if run.claimed.seq in seqs:
                run.ask_to_stop(StopReason.CANCELED)
        for each in [each for each in self._load.prefetched if each.seq in seqs]:
            self._load.remove(each)
            self._ends.add(Ending(each, Outcome.CANCELED))
