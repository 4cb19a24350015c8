"""Writing how attempts ended: gathered while the last batch is being written, then as one set-based transaction."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from headrace import logs
from headrace.database import Database, Tx
from headrace.tasks import storable
from headrace.tasks.catalog import KnownType, StoredCatalog, known_type
from headrace.tasks.followers import Followers
from headrace.tasks.model import Change, Claimed, Ending, ErrorCode, Outcome, Transition
from headrace.tasks.registry import Registry, TaskType
from headrace.tasks.worker import store
from headrace.tasks.worker.handing_over import hand_over
from headrace.tasks.worker.store import Identity
from headrace.tasks.worker.unit_locks import wait_for_units

log = logs.get(__name__)

# Beyond what fence() can hold a claim would be refused, and with it everybody's: ck_task_queue_attempt.
_MAX_ATTEMPTS = 1_000_000
FINAL = {Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELED}
_CHANGES = {
    Outcome.SUCCEEDED: Change.SUCCEEDED,
    Outcome.FAILED: Change.FAILED,
    Outcome.CANCELED: Change.CANCELED,
    Outcome.RETRIED: Change.RETRIED,
    Outcome.INTERRUPTED: Change.RETRIED,
    Outcome.SNOOZED: Change.RETRIED,
}


class Writer:
    """Writes endings with their followers. A task whose lease is lost is left out; that is no error here."""

    def __init__(
        self,
        db: Database,
        registry: Registry,
        followers: Followers,
        *,
        wrote: Callable[[Sequence[Ending]], None] | None = None,
    ) -> None:
        self._db = db
        self._followers = followers
        self._wrote = wrote
        self._known = {declared.name: known_type(declared) for declared in registry}
        self._stored = StoredCatalog()
        # Whether a type has followers is asked for every task: so it is answered once.
        self._unfollowed = {name for name, known in self._known.items() if not followers.of(known)}
        self._metered = {declared.name for declared in registry if declared.units is not None}
        self._emitting = {
            name for name, known in self._known.items() if followers.emits(known) and followers.needs_no_call(known)
        }

    async def write(self, worker: Identity, endings: Sequence[Ending], *, wait: timedelta | None = None) -> int:
        """Write a batch; gives how many were still ours.

        ``RowsLocked`` if another transaction has locked the units of one of their users: it names
        them, and nothing is written. With ``wait`` not before that time is over.
        """
        for each in endings:
            each.claimed.over = True  # no start is sent from here on
        if wait is not None:
            async with self._db.transaction() as tx:
                await wait_for_units(tx, worker, endings, wait=wait)
                done = await self._write_in(tx, worker, endings)
        elif self._all_of(self._unfollowed, endings):
            done = _among(endings, await store.finish(self._db, worker, endings))
        elif self._all_of(self._emitting, endings):
            done = _among(endings, await store.finish_and_emit(self._db, worker, endings))
        else:
            async with self._db.transaction() as tx:
                done = await self._write_in(tx, worker, endings)
        if (lost := len(endings) - len(done) - finished_by_handlers(endings)) > 0:
            log.warning("tasks.lost", worker_id=worker.id, count=lost)
        if self._wrote is not None:
            self._wrote([*done, *(each for each in endings if each.claimed.finished_in)])
        return len(done)

    async def write_in(self, tx: Tx, worker: Identity, endings: Sequence[Ending]) -> int:
        """Write a batch in a transaction of the caller's; gives how many were still ours."""
        return len(await self._write_in(tx, worker, endings))

    async def _write_in(self, tx: Tx, worker: Identity, endings: Sequence[Ending]) -> Sequence[Ending]:
        counted = [_worn_out(each) if each.claimed.attempt >= _MAX_ATTEMPTS else each for each in endings]
        final = [each for each in counted if each.outcome in FINAL]
        back = [each for each in counted if each.outcome not in FINAL]
        started = await self._find_started(tx, worker, counted)
        done: list[Ending] = []
        if back:
            returned = await store.requeue_tasks(tx, worker, back)
            done += [each for each in back if each.claimed.seq in returned]
            # What did not go back is canceled, or no longer ours; for the latter this changes nothing either.
            final += [_canceled(each) for each in back if each.claimed.seq not in returned]
        if final:
            finished = await store.finish(tx, worker, final)
            done += [each for each in final if each.claimed.seq in finished]
        unsuccessful = [each.claimed.task_id for each in done if each.outcome is not Outcome.SUCCEEDED]
        await store.end_open_steps(tx, unsuccessful)
        await self._follow(tx, worker, done, started)
        return done

    async def hand_over(self, worker: Identity, endings: Sequence[Ending]) -> int:
        """Leave ends with their claims for the reaper to write; gives how many were still ours."""
        return await hand_over(self._db, worker, endings)

    async def put_aside(self, worker: Identity, ending: Ending) -> bool:
        """Return a task whose end cannot be written to the queue, without followers: they refused its end.

        False if it did not go back: its cancellation was requested, or it is no longer ours.
        """
        waiting = replace(
            ending,
            outcome=Outcome.INTERRUPTED,
            error_code=ErrorCode.ERROR,
            error_message="Its end could not be written; the worker's log says why.",
            delay=timedelta(seconds=30),
        )
        async with self._db.transaction() as tx:
            return bool(await store.requeue_tasks(tx, worker, [waiting]))

    async def _find_started(self, tx: Tx, worker: Identity, endings: Sequence[Ending]) -> set[int]:
        """The tasks whose start was already reported, by seq. It reads only those that this process cannot know."""
        claims = [each.claimed for each in endings if not self._is_unfollowed(each.claimed)]
        unsure = [each for each in claims if not each.start_reported and (each.start_sent or not each.over)]
        known = {each.seq for each in claims if each.start_reported}
        return known | await store.find_started(tx, worker, unsure) if unsure else known

    async def _follow(self, tx: Tx, worker: Identity, done: Sequence[Ending], started: set[int]) -> None:
        moves: list[tuple[KnownType, Transition]] = []
        for each in done:
            if self._is_unfollowed(each.claimed):
                continue
            known = await self._type(tx, each.claimed.task_type)
            if each.claimed.seq not in started:
                moves.append((known, transition(Change.STARTED, each.claimed, worker)))
            moves.append((known, _transition_of(each, worker)))
        if moves:
            await self._followers.follow(tx, moves)

    def locks_own_rows_only(self, endings: Sequence[Ending]) -> bool:
        """Whether writing these locks nothing but the rows of their tasks: no units of users, nothing of followers."""
        plain = (self._unfollowed | self._emitting) - self._metered
        return self._all_of(plain, endings)

    def _all_of(self, types: set[str], endings: Sequence[Ending]) -> bool:
        """Whether all have succeeded, are of these types, saved no file, and no schedule waits for one of them."""
        return all(
            each.outcome is Outcome.SUCCEEDED
            and each.claimed.schedule_uid is None
            and each.claimed.saved is None
            and each.claimed.task_type in types
            for each in endings
        )

    def _is_unfollowed(self, claimed: Claimed) -> bool:
        return claimed.schedule_uid is None and claimed.saved is None and claimed.task_type in self._unfollowed

    async def _type(self, tx: Tx, name: str) -> KnownType:
        # A type of another program: the worker that settles its dead worker's tasks must move its followers, too.
        return self._known.get(name) or await self._stored.get(tx, name)


def _among(endings: Sequence[Ending], seqs: set[int]) -> Sequence[Ending]:
    if len(seqs) == len(endings):
        return endings
    return [each for each in endings if each.claimed.seq in seqs]


def finished_by_handlers(endings: Sequence[Ending]) -> int:
    """How many of these were over before their ends came, unless their handlers took that back."""
    return sum(each.claimed.finished_in for each in endings)


def transition(change: Change, claimed: Claimed, worker: Identity, **facts: Any) -> Transition:
    return Transition(
        change,
        claimed.task_id,
        claimed.task_type,
        claimed.user_id,
        claimed.attempt,
        worker_id=worker.id,
        schedule_uid=claimed.schedule_uid,
        started_at=claimed.begun_at or claimed.claimed_at,
        timeout_seconds=claimed.timeout_seconds,
        **facts,
    )


def _transition_of(ending: Ending, worker: Identity) -> Transition:
    return transition(
        _CHANGES[ending.outcome],
        ending.claimed,
        worker,
        result=ending.result,
        error_code=ending.error_code,
        error_message=ending.error_message,
        saved=ending.claimed.saved if ending.outcome is Outcome.SUCCEEDED else None,
    )


def _worn_out(ending: Ending) -> Ending:
    if ending.outcome in FINAL:
        return ending
    message = f"It was taken {ending.claimed.attempt:,} times, which is the most: a snooze counts, too."
    return replace(ending, outcome=Outcome.FAILED, error_code=ErrorCode.FATAL, error_message=message)


def _canceled(ending: Ending) -> Ending:
    return replace(ending, outcome=Outcome.CANCELED, result=None)


def succeeded(claimed: Claimed, result: Any, *, limit: int) -> Ending:
    """The ending of a handler that gave this back; if it cannot be stored the attempt has failed, for good."""
    try:
        return Ending(claimed, Outcome.SUCCEEDED, result=storable.encode(result, limit=limit))
    except storable.NotStorable as exc:
        return failed(claimed, ErrorCode.BAD_RESULT, f"The result {exc}.", retry=None)


def failed(claimed: Claimed, code: str, message: str, *, retry: TaskType | None) -> Ending:
    """The ending of a failure: tried again by the rules of ``retry`` while attempts are left, for good without it."""
    text = storable.text(message)
    if retry is None or claimed.retries + 1 >= claimed.max_attempts:
        return Ending(claimed, Outcome.FAILED, error_code=code, error_message=text)
    delay = retry.backoff.delay(claimed.retries)
    return Ending(claimed, Outcome.RETRIED, error_code=code, error_message=text, delay=delay)
