"""Prefetching for the worker: neither empty while there is work, nor hoarding what others could run."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

import asyncpg

from headrace import logs
from headrace.database import Database, Row
from headrace.errors import HeadraceError, Unavailable
from headrace.tasks.errors import WorkerGone
from headrace.tasks.model import Claimed, Ending, Outcome
from headrace.tasks.worker import store
from headrace.tasks.worker.claiming import Claimer, Room
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.lost_replies import LostReplies
from headrace.tasks.worker.slots import Load, Slots
from headrace.tasks.worker.store import Identity
from headrace.tasks.worker.writing import WriteBehind

log = logs.get(__name__)

TASKS_CHANNEL, CANCEL_CHANNEL = "headrace_tasks", "headrace_cancel"

# A worker that has been busy for this long needs no wake-up calls: submitters are spared them.
_BUSY_AFTER_S = 0.5
_FIRST_PATIENCE_S = 0.002
# A worker at rest that gets notifications polls this many times less often: only what no notification announces waits.
_LISTENING_POLL_FACTOR = 5
_AFTER_FAILURE_SECONDS = 0.3
_AFTER_REFUSAL_SECONDS = 2.0
# How long a stop waits for a claim under way; one that takes longer is left to the reaper.
_CLAIM_WITHIN_S = 5.0


class Feeder:
    def __init__(
        self,
        db: Database,
        config: WorkerConfig,
        *,
        load: Load,
        ends: WriteBehind,
        gone: Callable[[], None],
    ) -> None:
        self._db = db
        self._config = config
        self._load = load
        self._ends = ends
        self._gone = gone
        types = {slots.pool: slots.types for slots in load}
        self._claimer = Claimer(db, queues=config.queues, types=types, labels=dict(config.labels))
        self._full: frozenset[str] = frozenset()  # pools that had no slot free when it went to rest
        self._asleep = False
        self._patience = _FIRST_PATIENCE_S
        self._busy_since: float | None = None
        self._woken = asyncio.Event()
        self._stopping = False
        self._claiming = asyncio.Lock()
        self._lost_replies = LostReplies(db)
        self._to_cancel: list[Claimed] = []
        self._put_back: list[Claimed] = []
        self.worker: Identity | None = None
        self.failure: str | None = None  # of the last claim
        self.room = asyncio.Event()
        self.cancels = asyncio.Event()

    def enter(self, worker: Identity) -> None:
        """Take tasks as this worker from now on; a new one has not recorded yet that it sleeps."""
        self.worker = worker
        self._asleep = False
        self._put_back.clear()  # they were another worker's
        self.room.set()
        self._woken.set()

    def freed(self, slots: Slots | None = None) -> None:
        """Something is over or has started, in these slots: there may be room for more."""
        self.room.set()
        if slots is not None and slots.pool in self._full:
            self._claimer.refresh()
            self._woken.set()

    def put_back(self, claimed: Claimed) -> None:
        """Give back a task that must not start here now; the next round of the feeder does it."""
        self._put_back.append(claimed)

    def _startable(self, slots: Slots) -> int:
        if self._ends.full:  # nothing starts before something is written
            return 0
        return max(0, slots.size - len(slots))

    def _room(self, slots: Slots) -> Room:
        """How many to take now: what starts at once, and what will have started before the next claim is back."""
        ahead = slots.size * self._config.ahead.total_seconds() / max(slots.task_seconds, 1e-6)
        target = min(self._config.most_prefetched, slots.size + int(ahead))
        taken_on, startable = len(slots), self._startable(slots)
        # Not before half of the tasks are used up: small claims cost as much as large ones.
        wanted = min(self._config.batch, target - taken_on) if taken_on <= target // 2 or startable else 0
        return Room(wanted, startable)

    def _rooms(self) -> dict[str, Room]:
        rooms = {slots.pool: self._room(slots) for slots in self._load}
        return {pool: room for pool, room in rooms.items() if room.most > 0}

    async def run(self) -> None:
        while True:
            self.room.clear()
            worker = self.worker
            await self._return_put_back(worker)
            if worker is None or self._stopping or not (rooms := self._rooms()):
                await self.room.wait()
                continue
            self._woken.clear()
            async with self._claiming:
                taken = await self._claim(worker, rooms)
            if taken is None:
                await asyncio.sleep(_AFTER_FAILURE_SECONDS)
            elif self._claimer.exhausted:
                await self._pause(worker, rooms.keys(), taken)

    async def _return_put_back(self, worker: Identity | None) -> None:
        if not self._put_back or worker is None:
            return
        tasks, self._put_back = self._put_back, []
        try:
            gone = await store.unclaim(self._db, worker, tasks)
        except HeadraceError as exc:
            log.warning("worker.tasks_not_put_back", error=exc.code, count=len(tasks))
            self._put_back += tasks  # the next round tries again: while this worker lives, no reaper gives them back
            return
        if worker is self.worker:
            for each in tasks:
                if each.seq not in gone:
                    self._ends.add(Ending(each, Outcome.CANCELED))

    async def _pause(self, worker: Identity, requested: Collection[str], taken: int) -> None:
        """Nothing more can be taken now: until one of ours is over, or until there is something else."""
        full = self._load.slots.keys() - requested
        if full & self._rooms().keys():  # there is room in them by now
            return
        held_back = {pool for pool in self._claimer.held_back if self._startable(self._load.slots[pool]) == 0}
        self._full = frozenset(full | held_back)
        if len(self._full) == len(self._load.slots):
            await self.room.wait()
        elif not (self._claimer.held_back and taken):
            await self._rest(worker)
        self._full = frozenset()

    async def _claim(self, worker: Identity, rooms: Mapping[str, Room]) -> int | None:
        """Claim tasks ahead of their start; gives how many, None if that did not work."""
        try:
            rows = await self._lost_replies.find(worker)
            if not rows:
                rows = await self._claimer.claim(worker, rooms, held=self._ends.blocked.held_users)
                self._lost_replies.note(rows)
        except WorkerGone:
            self.worker = None
            self._gone()
            return None
        except HeadraceError as exc:
            log.warning("worker.claim_failed", error=exc.code)
            self._lost_replies.expect()
            self.failure = exc.message
            return None
        except asyncpg.PostgresError as exc:
            # A migration is being undone, or an administrator changes the database by hand. Running tasks continue.
            log.exception("worker.claim_failed", error=type(exc).__name__)
            self.failure = f"PostgreSQL refuses it ({type(exc).__name__})."
            await asyncio.sleep(_AFTER_REFUSAL_SECONDS)
            return None
        self.failure = None
        await self._receive(worker, rows)
        return len(rows)

    async def _receive(self, worker: Identity, rows: Sequence[Row]) -> None:
        if not rows:
            self._busy_since = None
            return
        tasks = [_claimed(row) for row in rows]
        if self._stopping or worker is not self.worker:
            self._to_cancel += await self._unclaim(worker, tasks)
            return
        self._load.add(tasks)
        await asyncio.sleep(0)  # they begin before anything else is asked for
        await self._note_busy(worker)

    async def _note_busy(self, worker: Identity) -> None:
        now = time.monotonic()
        self._busy_since = self._busy_since or now
        if self._asleep and now - self._busy_since > _BUSY_AFTER_S:
            # Set before the statement: if its answer is lost the row's state is unknown, and the next rest writes it.
            self._asleep = False
            with suppress(HeadraceError):  # then submitters keep sending wake-ups, which costs them a little
                await store.set_asleep(self._db, worker, asleep=False)

    async def _rest(self, worker: Identity) -> None:
        """The queue has nothing left: sleep until a wake-up, the next due time, or the next poll."""
        self._busy_since = None
        if self._config.listen and not self._asleep:
            with suppress(HeadraceError):
                await store.set_asleep(self._db, worker, asleep=True)
                self._asleep = worker is self.worker
            # A process that submitted before this row was visible sends no wake-up, and may commit only in a
            # moment: poll again soon, and then less and less often.
            self._patience = _FIRST_PATIENCE_S
            return
        longest = self._config.poll_every.total_seconds() * (_LISTENING_POLL_FACTOR if self._asleep else 1)
        self._patience = min(self._patience * 2, longest)
        due = self._claimer.next_due
        pause = self._patience if due is None else min(self._patience, max(0.001, due - time.monotonic()))
        with suppress(TimeoutError):
            # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with the event.
            async with asyncio.timeout(pause):
                await self._woken.wait()

    def notified(self, channel: str | None) -> None:
        """A notification has come; None: some may have been missed."""
        if channel != TASKS_CHANNEL:
            self.cancels.set()
        if channel != CANCEL_CHANNEL:
            self._claimer.wake()
            self._woken.set()

    async def stop(self) -> list[Claimed]:
        """Stop claiming and return unstarted tasks; gives those whose cancellation was requested instead."""
        self._stopping = True
        prefetched = self._load.drop_prefetched() + self._put_back
        self._put_back = []
        left = await self._unclaim(self.worker, prefetched) if prefetched and self.worker else []
        # A claim under way may have been carried out already: it is given back when its answer is here.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLAIM_WITHIN_S), self._claiming:
                left += self._to_cancel
        return left

    async def _unclaim(self, worker: Identity, tasks: list[Claimed]) -> list[Claimed]:
        with suppress(Unavailable):
            gone = await store.unclaim(self._db, worker, tasks)
            return [each for each in tasks if each.seq not in gone]
        return []  # the reaper will find them


def _claimed(row: Row) -> Claimed:
    return Claimed(
        row["seq"],
        row["task_id"],
        row["attempt"],
        row["task_type"],
        row["user_id"],
        row["payload"],
        row["retries"],
        row["max_attempts"],
        row["timeout_seconds"],
        row["trace_id"],
        row["claimed_at"],
        row["schedule_uid"],
        row["grace_seconds"],
        row["extension_seconds"],
        time.monotonic(),
    )
