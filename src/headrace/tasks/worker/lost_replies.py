"""Claims whose answer was lost: the connection broke, and the tasks may be ours anyway.

No other worker would ever find them: this worker renews its lease, and live workers' tasks are not searched. So it asks
until the statement can no longer be in flight. Claims are distinguished by their time, one for each lane of a claim.
"""

import time
from collections.abc import Sequence
from datetime import datetime

from headrace.database import Database, Row
from headrace.tasks.worker import store
from headrace.tasks.worker.store import Identity

# Asking walks through the whole queue.
_ASK_EVERY_S = 1.0


class LostReplies:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._last: datetime | None = None  # every claim up to this one was answered
        self._answered: set[datetime] = set()  # and of the later ones these
        self._until: float | None = None
        self._ask_at = 0.0

    def expect(self) -> None:
        """A claim failed, and it is not known how far it came."""
        self._until = time.monotonic() + self._db.config.statement_timeout.total_seconds() + 5
        self._ask_at = 0.0

    def note(self, rows: Sequence[Row]) -> None:
        """These came: the rows of several lanes, in any order."""
        times = {row["claimed_at"] for row in rows}
        if self._until is not None:
            self._answered |= times
        elif times:
            # Never back, should the clock be set back: known claims must not be found again.
            self._last = max(times if self._last is None else times | {self._last})

    async def find(self, worker: Identity) -> list[Row]:
        """What this worker holds without having heard of it; costs nothing unless that is to be expected."""
        now = time.monotonic()
        if self._until is None or now < self._ask_at:
            return []
        lost = await store.lost_claims(self._db, worker, after=self._last, exclude=self._answered)
        self._ask_at = now + _ASK_EVERY_S
        self._answered.update(row["claimed_at"] for row in lost)
        if now > self._until:
            self._last = max(self._answered, default=self._last)
            self._answered.clear()
            self._until = None
        return lost
