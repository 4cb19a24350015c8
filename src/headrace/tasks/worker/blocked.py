"""Ends that cannot be written yet, because another transaction has locked the units of the tasks' owner.

A program that has submitted for a user and has not committed keeps that user's entitlement locked, and a task that
fails releases its units there. Such ends wait here, user by user and on a connection of their own, while the writer
continues with all other users'. They stay the worker's: its lease and its fence hold for them as for any other end.

Their number and size are bounded by users: a user with many ends waiting here starts no further task on this worker,
while all other users' tasks continue.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta

from headrace import logs
from headrace.database_errors import RowsLocked
from headrace.errors import Unavailable
from headrace.tasks.model import Ending
from headrace.tasks.worker.endings import Writer
from headrace.tasks.worker.store import Identity

log = logs.get(__name__)

# For one user the loop waits in the database, where the wait and its cause are visible, and continues with the commit.
_WAIT = timedelta(seconds=1)
# The others are only tried in each round, so that one user's transaction does not hold up another's ends.
_TRY = timedelta(milliseconds=20)
_TRIED_IN_A_ROUND = 50
_AT_ONCE = 200
_PAUSE_S = 0.2
# Of one user, and of all together: beyond it no further task of a blocked user starts here.
MAX_ENDS_OF_USER = 500
MANY_ENDS = 5_000
MANY_BYTES = 64 * 1024**2
# Additional room: tasks that already ran, and one end for each further user. Beyond it no task starts at all.
MAX_ENDS = 2 * MANY_ENDS
MAX_BYTES = 4 * MANY_BYTES


class BlockedEnds:
    """The blocked ends of one worker, by user, and the loop that writes them when their locks are gone."""

    def __init__(
        self,
        writer: Writer,
        *,
        worker: Callable[[], Identity],
        wrote: Callable[[Sequence[Ending], int], None],
        hand_back: Callable[[Ending], None],
    ) -> None:
        self._writer = writer
        self._worker = worker
        self._wrote = wrote
        self._hand_back = hand_back
        self._by_user: dict[str, list[Ending]] = {}
        self._count = 0
        self._bytes = 0
        self._added = asyncio.Event()

    def __len__(self) -> int:
        return self._count

    def concerns(self, ending: Ending) -> bool:
        """Whether this end would have to wait, as others of the same user do already."""
        return ending.claimed.user_id in self._by_user and ending.may_release_units and not ending.refused

    @property
    def full(self) -> bool:
        return self._count >= MAX_ENDS or self._bytes >= MAX_BYTES

    def is_held(self, user_id: str) -> bool:
        """Whether tasks of this user's must not start here before some of their ends are written."""
        endings = self._by_user.get(user_id)
        if endings is None:
            return False
        return len(endings) >= MAX_ENDS_OF_USER or self._count >= MANY_ENDS or self._bytes >= MANY_BYTES

    @property
    def held_users(self) -> AbstractSet[str]:
        return frozenset(filter(self.is_held, self._by_user))

    def add(self, endings: Iterable[Ending]) -> None:
        for each in endings:
            if each.claimed.user_id not in self._by_user:
                log.warning("worker.ends_blocked", user_id=each.claimed.user_id, task_id=each.claimed.task_id)
            each.claimed.payload = None  # it runs no more, and there may be many
            self._by_user.setdefault(each.claimed.user_id, []).append(each)
            self._count += 1
            self._bytes += each.size
        self._added.set()

    def drop(self) -> Sequence[Ending]:
        """Forget them, and give them: the lease is lost, and with it the right to write them; or the worker stops."""
        dropped = [each for endings in self._by_user.values() for each in endings]
        self._by_user.clear()
        self._count = self._bytes = 0
        return dropped

    async def run(self) -> None:
        while True:
            await self._added.wait()
            self._added.clear()
            while self._by_user:
                began = time.monotonic()
                locked = await self._round()
                if locked and time.monotonic() - began < _PAUSE_S:  # it was refused without a wait
                    await asyncio.sleep(_PAUSE_S)

    async def _round(self) -> bool:
        """Try each user once, the first of them patiently; gives whether any user's ends still have to wait."""
        locked = False
        for number, user_id in enumerate(list(self._by_user)[:_TRIED_IN_A_ROUND]):
            endings = self._by_user.get(user_id, [])[:_AT_ONCE]
            if endings and not await self._write(endings, _TRY if number else _WAIT):
                locked = True
                if user_id in self._by_user:  # to the end: in the next round another one is waited for
                    self._by_user[user_id] = self._by_user.pop(user_id)
        return locked

    async def _write(self, endings: Sequence[Ending], wait: timedelta) -> bool:
        """Write some of one user's ends; False if they have to wait on."""
        worker = self._worker()
        try:
            written = await self._writer.write(worker, endings, wait=wait)
        except RowsLocked:
            return False
        except Unavailable as exc:
            log.warning("worker.write_failed", error=exc.code, count=len(endings))
            return False
        except Exception:
            log.exception("worker.blocked_ends_failed", count=len(endings))
            if self._remove(worker, endings):  # the writer finds out which of them is to blame
                for each in endings:
                    each.refused = True
                    self._hand_back(each)
            return True
        if self._remove(worker, endings):
            self._wrote(endings, written)
        return True

    def _remove(self, worker: Identity, endings: Sequence[Ending]) -> bool:
        """Take these out; False if they were dropped with the lease meanwhile."""
        user_id = endings[0].claimed.user_id
        waiting = self._by_user.get(user_id)
        if worker is not self._worker() or not waiting or waiting[0] is not endings[0]:
            return False
        if rest := waiting[len(endings) :]:
            self._by_user[user_id] = rest
        else:
            del self._by_user[user_id]
        self._count -= len(endings)
        self._bytes -= sum(each.size for each in endings)
        return True
