"""Limits one user's concurrent changes in a process, so that few connections wait for that user's locks.

All submissions of a user lock one row, their entitlement. Each waiting one holds a connection, and a pool has ten: 200
orders of one user delayed all others for seconds. Waiting for a turn holds no connection.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from headrace.edge.errors import TooManyAtOnce

_RETRY_AFTER = timedelta(seconds=1)


@dataclass(eq=False, slots=True)
class _Line:
    turns: asyncio.Semaphore
    members: int = 0  # callers that have their turn or wait for it


@dataclass(frozen=True, slots=True)
class UserTurns:
    """``at_once`` callers have their turn; up to ``most`` wait for it, for at most ``patience``."""

    at_once: int = 3
    most: int = 500
    patience: timedelta = timedelta(seconds=20)
    _lines: dict[str, _Line] = field(default_factory=dict, init=False)

    @asynccontextmanager
    async def of(self, user_id: str | None) -> AsyncIterator[None]:
        """Wait for one turn of this user; ``TooManyAtOnce`` if too many wait. Callers without a user need none."""
        if user_id is None:
            yield
            return
        line = self._lines.setdefault(user_id, _Line(asyncio.Semaphore(self.at_once)))
        if line.members >= self.at_once + self.most:
            raise TooManyAtOnce(retry_after=_RETRY_AFTER)
        line.members += 1
        try:
            try:
                async with asyncio.timeout(self.patience.total_seconds()):
                    await line.turns.acquire()
            except TimeoutError:
                raise TooManyAtOnce(retry_after=_RETRY_AFTER) from None
            try:
                yield
            finally:
                line.turns.release()
        finally:
            line.members -= 1
            if line.members == 0:
                self._lines.pop(user_id, None)
