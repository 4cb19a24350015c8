"""Something lent for a time, kept while a block runs: renewed in the background, and its loss raised in the block.

When it is lost, or might be by now, the block is canceled: a tenth of its time before others can have it, by this
machine's monotonic clock, counted from before whoever lends it was asked.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Protocol

from headrace.errors import HeadraceError

RENEWED_AFTER = 1 / 3  # of its time
_TRIED_AGAIN_AFTER = 1 / 20  # when nobody answered
_SAFE_FOR = 0.9


class Lease(Protocol):
    """What is kept. Both verbs raise ``lost`` when it is."""

    ttl: timedelta
    lost: type[HeadraceError]

    async def renew(self) -> None:
        """Have it for all its time from now; another error than ``lost`` says that nobody answered."""

    async def release(self) -> None:
        """Give it back; whoever cannot reach its lender leaves it to expire, without an error."""

    def loss(self) -> HeadraceError:
        """What to raise in the block when its time has run out."""


@asynccontextmanager
async def holding(lease: Lease, *, asked_at: float) -> AsyncIterator[None]:
    """Keep what was asked for at ``asked_at``, by the loop's clock, while the block runs, and let it go at its end.

    The block's own errors pass. When it was lost, that is raised in the place of the block's end: then the block was
    canceled, or had just ended. The block must not keep the event loop busy for long, or nothing is renewed.
    """
    scope = asyncio.timeout_at(asked_at + lease.ttl.total_seconds() * _SAFE_FOR)
    keeping: asyncio.Task[None] | None = None
    try:
        async with scope:
            keeping = asyncio.create_task(_keep(lease, scope))
            yield
    except BaseException as exc:
        await _stop(keeping)
        if scope.expired() and isinstance(exc, TimeoutError):
            raise lease.loss() from None
        if not scope.expired():
            with suppress(lease.lost):  # the block's own failure is told
                await lease.release()
        raise
    await _stop(keeping)
    if scope.expired():  # just as the block ended
        raise lease.loss()
    await lease.release()


async def _keep(lease: Lease, scope: asyncio.Timeout) -> None:
    """Renew it, and move the end of the scope with it; end the scope at once when it is lost."""
    loop = asyncio.get_running_loop()
    whole = lease.ttl.total_seconds()
    pause = whole * RENEWED_AFTER
    while True:
        await asyncio.sleep(pause)
        asked_at = loop.time()
        try:
            await lease.renew()
        except lease.lost:
            _end_at(scope, asked_at)
            return
        except (HeadraceError, TimeoutError):
            pause = whole * _TRIED_AGAIN_AFTER
        else:
            _end_at(scope, asked_at + whole * _SAFE_FOR)
            pause = whole * RENEWED_AFTER


def _end_at(scope: asyncio.Timeout, when: float) -> None:
    if not scope.expired():  # else the block is being canceled already
        scope.reschedule(when)


async def _stop(keeping: asyncio.Task[None] | None) -> None:
    if keeping is not None and not keeping.done():
        keeping.cancel()
        await asyncio.wait({keeping}, timeout=1)
